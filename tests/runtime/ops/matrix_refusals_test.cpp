#include <gtest/gtest.h>

#include "runtime/ops/attention.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/ops/refusals.hpp"

namespace pascaline::testing {
namespace {

using ops::Epilogue;
using ops::Matmul;

// Arguments that are taken; each case spoils them in one place.

Matmul product() { return {placed(0, {9, 8}), placed(1, {6, 8}), placed(2, {9, 6}), {}, {}, Epilogue::none}; }

Matmul finished_product() {
  return {placed(0, {9, 8}), placed(1, {6, 8}), placed(2, {9, 6}),
          placed(3, {6}),    placed(4, {9, 6}), Epilogue::bias_residual};
}

ops::AttentionPrefill prefill() {
  return {placed(0, {3, 4, 16}), placed(1, {5, 2, 16}), placed(2, {5, 2, 16}), placed(3, {3, 4, 16}), {}, true};
}

ops::AttentionPrefill segments() {
  return {placed(0, {5, 4, 16}), placed(1, {5, 2, 16}), placed(2, {5, 2, 16}),
          placed(3, {5, 4, 16}), placed(4, {3}, kInt),  false};
}

ops::AttentionDecode decode() {
  return {placed(0, {4, 16}), placed(1, {5, 2, 16}), placed(2, {5, 2, 16}), placed(3, {1}, kInt), placed(4, {4, 16})};
}

void* moved(const TensorView& view, std::ptrdiff_t bytes) { return static_cast<std::byte*>(view.data) + bytes; }

const Refusal kMatmulRefusals[] = {
    {"depths", bad(product, [](auto& of) { of.b.shape[1] = 9; }), "matmul: B is [6,9]; it must be [N,K] = [6,8]"},
    {"rows", bad(product, [](auto& of) { of.c.shape[0] = 8; }), "matmul: C is [8,6]; it must be [M,N] = [9,6]"},
    {"rank", bad(product, [](auto& of) { of.a.rank = 3; }), "A has 3 dimensions; it must be [M,K]"},
    {"no tensor", bad(product, [](auto& of) { of.a = {}; }), "A has 0 dimensions"},
    {"negative", bad(product, [](auto& of) { of.b.shape[0] = -1; }), "extent N of B is -1; it must be from 0 to"},
    {"above", bad(product, [](auto& of) { of.a.shape[0] = kLarge + 1; }), "extent M of A is 1073741825"},
    {"beyond 32 bits", bad(product, [](auto& of) { of.b.shape[0] = kLarge * 4; }), "extent N of B is 4294967296"},
    {"result's type", bad(product, [](auto& of) { of.c.type = kHalf; }), "C is float16; it must be float32"},
    {"integers", bad(product, [](auto& of) { of.a.type = kInt; }), "A is int32; it must be float32 or float16"},
    {"weight's type", bad(product, [](auto& of) { of.b.type = ElementType::float64; }), "B is float64"},
    {"no depth", bad(product, [](auto& of) { of.a.shape[1] = of.b.shape[1] = 0; }), "K is 0"},
    {"null", bad(product, [](auto& of) { of.b.data = nullptr; }), "the address of B is"},
    {"misaligned", bad(product, [](auto& of) { of.a.data = moved(of.a, 8); }), "aligned to 16 bytes"},
    {"stride", bad(product, [](auto& of) { of.a.row_stride = 12; }),
     "rows of A are 12 elements apart; they must follow"},
    {"short stride", bad(product, [](auto& of) { of.b.row_stride = 4; }), "rows of B are 4 elements apart; it must"},
    {"overlap", bad(product, [](auto& of) { of.c.data = of.a.data; }),
     "C overlaps A; it must lie in memory of its own"},
    {"tail", bad(product, [](auto& of) { of.c.data = moved(of.b, 6 * 8 * 4 - 16); }), "C overlaps B"},
    {"bias too many", bad(product, [](auto& of) { of.bias = placed(3, {6}); }), "bias is given, but"},
    {"residual too many",
     bad(product,
         [](auto& of) {
           of.residual = placed(3, {9, 6});
         }),
     "residual is given, but"},
    {"epilogue", bad(product, [](auto& of) { of.epilogue = static_cast<Epilogue>(7); }), "none of ops::Epilogue"},
    {"odd gates",
     bad(product,
         [](auto& of) {
           of.epilogue = Epilogue::swiglu;
           of.b.shape[0] = 7;
         }),
     "N is odd"},
    {"whole for half", bad(product, [](auto& of) { of.epilogue = Epilogue::swiglu; }), "[M,N/2] = [9,3]"},
    {"bias of patches", call(ops::PatchEmbed{placed(0, {3, 8}), placed(1, {6, 8}), placed(2, {5}), placed(3, {3, 6})}),
     "patch_embed: bias is [5]; it must be [WIDTH] = [6]"},
    {"no bias", bad(finished_product, [](auto& of) { of.bias = {}; }), "bias has 0 dimensions; it must be [N] = [6]"},
    {"bias's type", bad(finished_product, [](auto& of) { of.bias.type = kHalf; }),
     "bias is float16; it must be float32"},
    {"residual's shape", bad(finished_product, [](auto& of) { of.residual.shape[1] = 5; }), "residual is [9,5]"},
    {"shifted residual", bad(finished_product, [](auto& of) { of.residual.data = moved(of.c, 16); }),
     "C overlaps residual; it must be the same tensor"},
    {"written bias", bad(finished_product, [](auto& of) { of.bias.data = of.c.data; }), "C overlaps bias"},
};

const Refusal kAttentionRefusals[] = {
    {"head sizes", bad(prefill, [](auto& of) { of.k.shape[2] = 32; }), "k is [5,2,32]; it must be [KEYS,KV_HEADS,"},
    {"value rows", bad(prefill, [](auto& of) { of.v.shape[0] = 4; }), "attention_prefill: v is [4,2,16]"},
    {"value type", bad(prefill, [](auto& of) { of.v.type = kHalf; }), "v is float16; it must be float32"},
    {"bfloat", bad(prefill, [](auto& of) { of.q.type = ElementType::bfloat16; }), "q is bfloat16"},
    {"groups", bad(prefill, [](auto& of) { of.k.shape[1] = of.v.shape[1] = 3; }),
     "HEADS is not a multiple of KV_HEADS"},
    {"no key heads", bad(prefill, [](auto& of) { of.k.shape[1] = of.v.shape[1] = 0; }), "KV_HEADS is 0"},
    {"head of 20", bad(prefill, [](auto& of) { of.q.shape[2] = of.k.shape[2] = of.v.shape[2] = of.out.shape[2] = 20; }),
     "HEAD_DIM must be a multiple of 8"},
    {"head of 264",
     bad(prefill, [](auto& of) { of.q.shape[2] = of.k.shape[2] = of.v.shape[2] = of.out.shape[2] = 264; }),
     "HEAD_DIM must be a multiple of 8 from 8 to 256"},
    {"no keys", bad(prefill, [](auto& of) { of.k.shape[0] = of.v.shape[0] = 0; }), "nothing to attend to"},
    {"strides", bad(prefill, [](auto& of) { of.k.row_stride = 40; }), "rows of k and v must be equally far apart"},
    {"short rows", bad(prefill, [](auto& of) { of.q.row_stride = 60; }), "rows of q are 60 elements apart"},
    {"long rows", bad(prefill, [](auto& of) { of.q.row_stride = kLarge + 1; }), "to 1073741824"},
    {"out apart", bad(prefill, [](auto& of) { of.out.row_stride = 128; }), "rows of out are 128 elements apart"},
    {"in place", bad(prefill, [](auto& of) { of.out.data = of.q.data; }), "out overlaps q"},
    {"between rows",
     bad(prefill,
         [](auto& of) {
           of.q.row_stride = 128;
           of.out.data = moved(of.q, 4 * 64);
         }),
     "out overlaps q"},
    {"causal segments", bad(segments, [](auto& of) { of.causal = true; }), "segments see themselves"},
    {"segments in a cache", bad(segments, [](auto& of) { of.q.shape[0] = of.out.shape[0] = 3; }), "as many keys"},
    {"one start", bad(segments, [](auto& of) { of.segment_starts.shape[0] = 1; }), "at least 2 elements"},
    {"starts' type", bad(segments, [](auto& of) { of.segment_starts.type = kFloat; }), "segment_starts is float32"},
    {"odd address", bad(segments, [](auto& of) { of.segment_starts.data = moved(of.segment_starts, 2); }),
     "the address of segment_starts"},
    {"length", bad(decode, [](auto& of) { of.length.shape[0] = 2; }), "attention_decode: length is [2]"},
    {"no length", bad(decode, [](auto& of) { of.length.data = nullptr; }), "the address of length"},
    {"no cache", bad(decode, [](auto& of) { of.k.shape[0] = of.v.shape[0] = 0; }), "KEYS is 0"},
    {"decode in place", bad(decode, [](auto& of) { of.out.data = of.q.data; }), "out overlaps q"},
    {"rounded heads of 16", bad(decode, [](auto& of) { of.out.type = ElementType::int8; }),
     "out is int8, and HEAD_DIM no multiple of 32"},
    {"scales of floats", bad(decode, [](auto& of) { of.scales = of.length; }), "out is not int8"},
    {"half result", bad(decode, [](auto& of) { of.out.type = kHalf; }), "out is float16"},
    {"scales too many", bad(decode, [](auto& of) { of.v_scales = of.length; }), "given, but only int8 has scales"},
    {"no scales", bad(prefill, [](auto& of) { of.k.type = of.v.type = ElementType::int8; }), "k_scales has 0"},
    {"cache of integers", bad(decode, [](auto& of) { of.k.type = kInt; }), "k is int32"},
};

TEST_F(RefusalsTest, Matmul) { expect_refusals(kMatmulRefusals); }
TEST_F(RefusalsTest, Attention) { expect_refusals(kAttentionRefusals); }

// Were they refused as they are, no case above would tell anything.
TEST_F(RefusalsTest, UnspoiledMatricesAreTaken) {
  expect_taken(product());
  expect_taken(finished_product());
  expect_taken(prefill());
  expect_taken(segments());
  expect_taken(decode());
  EXPECT_EQ(device_.launches, 5);
}

TEST_F(RefusalsTest, EmptyProductsAndAttentionAreNothingToDo) {
  const TensorView none(nullptr, kFloat, {0, 8});
  expect_taken(ops::Matmul{none, placed(1, {6, 8}), {nullptr, kFloat, {0, 6}}});
  expect_taken(ops::Matmul{placed(0, {9, 8}), none, {nullptr, kFloat, {9, 0}}});
  expect_taken(ops::Matmul{{nullptr, kFloat, {0, 0}}, TensorView(nullptr, kFloat, {6, 0}), {nullptr, kFloat, {0, 6}}});
  auto attention = prefill();
  attention.q.shape[0] = attention.out.shape[0] = 0;
  expect_taken(attention);
  EXPECT_EQ(device_.launches, 0);
}

}  // namespace
}  // namespace pascaline::testing
