#include <gtest/gtest.h>

#include "runtime/ops/advance.hpp"
#include "runtime/ops/sample.hpp"
#include "tests/runtime/ops/refusals.hpp"

namespace pascaline::testing {
namespace {

constexpr ElementType kLong = ElementType::int64;

// Arguments that are taken; each case spoils them in one place.
ops::Sample choice() {
  return {placed(0, {9}),       placed(1, {5}),       placed(2, {1}, kInt), placed(3, {2}, kLong),
          placed(4, {9}, kInt), placed(5, {1}, kInt), placed(6, {1})};
}

ops::Advance step() { return {placed(0, {1}, kInt), placed(1, {1}, kInt), placed(2, {3, 1}, kInt)}; }

void* at_byte(const TensorView& view, std::ptrdiff_t bytes) { return static_cast<std::byte*>(view.data) + bytes; }

const Refusal kSampleRefusals[] = {
    {"half logits", bad(choice, [](auto& of) { of.logits.type = kHalf; }),
     "sample: logits is float16; it must be float32"},
    {"rows of logits",
     bad(choice,
         [](auto& of) {
           of.logits = placed(0, {1, 9});
         }),
     "logits has 2 dimensions"},
    {"no logits", bad(choice, [](auto& of) { of.logits.shape[0] = of.seen.shape[0] = 0; }), "VOCABULARY is 0"},
    {"too many", bad(choice, [](auto& of) { of.logits.shape[0] = of.seen.shape[0] = (1 << 20) + 1; }), "above 2^20"},
    {"settings", bad(choice, [](auto& of) { of.settings.shape[0] = 4; }), "settings is [4]"},
    {"top_k's type", bad(choice, [](auto& of) { of.top_k.type = kFloat; }), "top_k is float32; it must be int32"},
    {"generator's type", bad(choice, [](auto& of) { of.generator.type = kInt; }), "generator is int32"},
    {"generator", bad(choice, [](auto& of) { of.generator.shape[0] = 1; }), "generator is [1]"},
    {"seen", bad(choice, [](auto& of) { of.seen.shape[0] = 8; }), "seen is [8]; it must be [VOCABULARY] = [9]"},
    {"token's type", bad(choice, [](auto& of) { of.token.type = kLong; }), "token is int64"},
    {"probability", bad(choice, [](auto& of) { of.probability.shape[0] = 2; }), "probability is [2]"},
    {"no token", bad(choice, [](auto& of) { of.token = {}; }), "token has 0 dimensions"},
    {"null seen", bad(choice, [](auto& of) { of.seen.data = nullptr; }), "the address of seen"},
    {"misaligned logits", bad(choice, [](auto& of) { of.logits.data = at_byte(of.logits, 4); }), "aligned to 16 bytes"},
    {"misaligned seen", bad(choice, [](auto& of) { of.seen.data = at_byte(of.seen, 4); }), "seen must be aligned"},
    {"misaligned generator", bad(choice, [](auto& of) { of.generator.data = at_byte(of.generator, 4); }),
     "the address of generator"},
    {"seen over logits", bad(choice, [](auto& of) { of.seen.data = of.logits.data; }), "seen overlaps logits"},
    {"token among seen", bad(choice, [](auto& of) { of.token.data = at_byte(of.seen, 32); }), "seen overlaps token"},
    {"token over top_k", bad(choice, [](auto& of) { of.token.data = of.top_k.data; }), "token overlaps top_k"},
    {"generator over settings", bad(choice, [](auto& of) { of.generator.data = of.settings.data; }),
     "generator overlaps settings"},
    {"probability in settings", bad(choice, [](auto& of) { of.probability.data = of.settings.data; }),
     "probability overlaps settings"},
};

const Refusal kAdvanceRefusals[] = {
    {"length's type", bad(step, [](auto& of) { of.length.type = kLong; }), "advance: length is int64"},
    {"slots", bad(step, [](auto& of) { of.slots.shape[0] = 2; }), "slots is [2]; it must be [1] = [1]"},
    {"axes", bad(step, [](auto& of) { of.positions.shape[0] = 2; }), "positions is [2,1]"},
    {"tokens", bad(step, [](auto& of) { of.positions.shape[1] = 2; }), "positions is [3,2]"},
    {"null", bad(step, [](auto& of) { of.positions.data = nullptr; }), "the address of positions"},
    {"one memory", bad(step, [](auto& of) { of.slots.data = of.length.data; }), "length overlaps slots"},
    {"slot in positions", bad(step, [](auto& of) { of.slots.data = at_byte(of.positions, 8); }),
     "slots overlaps positions"},
};

TEST_F(RefusalsTest, Sample) { expect_refusals(kSampleRefusals); }
TEST_F(RefusalsTest, Advance) { expect_refusals(kAdvanceRefusals); }

// Were they refused as they are, no case above would tell anything.
TEST_F(RefusalsTest, UnspoiledChoicesAreTaken) {
  expect_taken(choice());
  expect_taken(step());
  EXPECT_EQ(device_.launches, 2);
}

}  // namespace
}  // namespace pascaline::testing
