// Keys and values in int8 with a scale for each head of a token: how heads are rounded, and what it does to a model.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "model/model.hpp"
#include "runtime/formats/int8_heads.hpp"
#include "runtime/ops/rope.hpp"
#include "tests/model/golden_run.hpp"

namespace pascaline::testing {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

TEST(Int8Heads, ScaleIsTheLargestMagnitudeOver127) {
  EXPECT_EQ(int8_head_scale(std::vector<float>{1, -254, 3}), 2);
  EXPECT_EQ(int8_head_scale(std::vector<float>{0, -0.0F}), 0);
  EXPECT_EQ(int8_head_scale(std::vector<float>{1e-37F}), 0) << "the scale would be subnormal";
  EXPECT_GT(int8_head_scale(std::vector<float>{1.5e-36F}), 0);
  EXPECT_EQ(int8_head_scale(std::vector<float>{1, -kInfinite}), kInfinite);
  for (const std::vector<float>& head : {std::vector<float>{kNoNumber, 1}, {1, kNoNumber}, {kInfinite, kNoNumber, 2}}) {
    EXPECT_TRUE(std::isnan(int8_head_scale(head)));
  }
}

/// A pass of one token through qk_norm_rope on the processor, whose value head is `head`.
class Int8Store {
 public:
  static constexpr std::int64_t kSize = 16;

  explicit Int8Store(const std::array<float, kSize>& head) {
    std::copy(head.begin(), head.end(), qkv.begin() + 2 * kSize);
    ops::compute(ops::QkNormRope{
        {.q_weight = {weight.data(), ElementType::float32, {kSize}},
         .k_weight = {weight.data(), ElementType::float32, {kSize}},
         .cosine = {cosine.data(), ElementType::float32, {1, kSize / 2}},
         .sine = {sine.data(), ElementType::float32, {1, kSize / 2}},
         .positions = {positions.data(), ElementType::int32, {3, 1}},
         .k_cache = {keys.data(), ElementType::int8, {1, 1, kSize}},
         .v_cache = {values.data(), ElementType::int8, {1, 1, kSize}},
         .k_scales = {key_scale.data(), ElementType::float32, {1, 1}},
         .v_scales = {value_scale.data(), ElementType::float32, {1, 1}},
         .section_h = 0,
         .section_w = 0},
        {qkv.data(), ElementType::float32, {1, 3, kSize}},
        {slots.data(), ElementType::int32, {1}},
        {query.data(), ElementType::float32, {1, 1, kSize}},
    });
  }

  alignas(16) std::array<float, 3 * kSize> qkv{};
  alignas(16) std::array<float, kSize> weight{};
  alignas(16) std::array<float, kSize> query{};
  alignas(16) std::array<float, kSize / 2> cosine{};
  alignas(16) std::array<float, kSize / 2> sine{};
  alignas(16) std::array<std::int32_t, 3> positions{};
  alignas(16) std::array<std::int32_t, 1> slots{};
  alignas(16) std::array<std::int8_t, kSize> keys{};
  alignas(16) std::array<std::int8_t, kSize> values{};
  alignas(16) std::array<float, 1> key_scale{};
  alignas(16) std::array<float, 1> value_scale{};
};

TEST(Int8Heads, ValuesBecomeTheNearestIntegersTiesToEven) {
  const Int8Store stored({127, -127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 63.49F, 63.51F, -126.6F, 0, 1, -1, 100, 99.6F, 3});
  EXPECT_EQ(stored.value_scale[0], 1);
  EXPECT_EQ(stored.values,
            (std::array<std::int8_t, 16>{127, -127, 0, 2, 2, 0, -2, 63, 64, -127, 0, 1, -1, 100, 100, 3}));
  EXPECT_EQ(stored.key_scale[0], 0) << "the weights of keys are zeros";
  EXPECT_EQ(stored.keys, (std::array<std::int8_t, 16>{}));
}

TEST(Int8Heads, WhatIsNotFiniteStaysSo) {
  EXPECT_TRUE(std::isnan(Int8Store({1, kNoNumber}).value_scale[0]));
  EXPECT_EQ(Int8Store({1, -kInfinite}).value_scale[0], kInfinite);
}

// Of the difference, in parts of the norm of `expected`.
double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double{got[i]} - double{expected[i]}, 2);
    norm += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

/// The golden model on the processor and with kernels on the emulated device.
class Int8CacheModel : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  Dispatcher dispatcher_{*host_, [] {
                           DispatcherOptions options;
                           options.cache = PASCALINE_TEST_CACHE;
                           return options;
                         }()};
  Executor processor_{*host_};
  Executor kernels_{dispatcher_};
  ModelConfig config_ = golden_model_a().config;

  // Logits after the tokens, given `at_once` at a time, in a context of 600, of which the cache first gets 256.
  [[nodiscard]] std::vector<float> logits_of(const Tokens& tokens, ElementType cache, std::size_t at_once) {
    WeightSource source = hash_weights(config_);
    ModelOptions options{.context = 600, .chunk = 64};
    options.weights = ElementType::float32;
    options.cache = cache;
    Model model(GetParam() ? kernels_ : processor_, config_, source, options);
    for (std::size_t first = 0; first < tokens.size(); first += at_once) {
      model.append({std::span(tokens).subspan(first, std::min(at_once, tokens.size() - first)), {}});
    }
    return model.logits();
  }
  [[nodiscard]] static Tokens prompt(std::size_t count) {
    Tokens tokens(count);
    for (std::size_t i = 0; i < count; ++i) {
      tokens[i] = static_cast<std::int32_t>(1 + i * 37 % 400);
    }
    return tokens;
  }
};

TEST_P(Int8CacheModel, LogitsAreCloseToThoseOfAFullCache) {
  const Tokens tokens = prompt(40);
  const double error =
      relative_error(logits_of(tokens, ElementType::int8, 40), logits_of(tokens, ElementType::float32, 40));
  RecordProperty("relative_error", fmt::format("{:.3g}", error));
  EXPECT_LT(error, 0.02);
  EXPECT_GT(error, 1e-5) << "nothing was rounded";
}

// With kernels a single token's own key and value count before they are rounded.
TEST_P(Int8CacheModel, TokensOneByOneGiveWhatTheyGiveTogether) {
  const Tokens tokens = prompt(24);
  const double error =
      relative_error(logits_of(tokens, ElementType::int8, 1), logits_of(tokens, ElementType::int8, 24));
  RecordProperty("relative_error", fmt::format("{:.3g}", error));
  EXPECT_LT(error, GetParam() ? 4e-3 : 2e-3);
}

// Beyond 256 tokens the scales move to a larger buffer.
TEST_P(Int8CacheModel, GrowingKeepsWhatWasRead) {
  const Tokens tokens = prompt(300);
  const double error =
      relative_error(logits_of(tokens, ElementType::int8, 100), logits_of(tokens, ElementType::int8, 300));
  EXPECT_LT(error, 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Executors, Int8CacheModel, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "kernels" : "processor"; });

}  // namespace
}  // namespace pascaline::testing
