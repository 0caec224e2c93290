#include "model/checkpoint/weight_source.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/elements.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::complaint_of;
using testing::config_of;
using testing::read_all;

constexpr const char* kEmbedding = "model.language_model.embed_tokens.weight";

std::vector<float> floats_of(const WeightSource& source, const TensorSpec& tensor) {
  const std::vector<std::byte> bytes = read_all(source, tensor, ElementType::float32);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> first_four(WeightSource& source, const std::string& name) {
  std::vector<float> values = floats_of(source, source.take(name));
  values.resize(4);
  return values;
}

TEST(HashWeightsTest, FirstValuesAreThePublishedOnes) {
  for (const char* name : {"tiny_a", "tiny_b"}) {
    WeightSource source = hash_weights(config_of(name));
    const std::vector<float> embedding = first_four(source, kEmbedding);
    const std::vector<float> norm = first_four(source, "model.language_model.layers.0.self_attn.q_norm.weight");
    const std::vector<float> bias = first_four(source, "model.visual.blocks.0.attn.qkv.bias");
    const std::array<float, 12> published{-0.124023F, 0.122070F, -0.038086F, 0.065430F,  0.968750F,  0.953125F,
                                          0.890625F,  1.062500F, -0.023926F, -0.026367F, -0.042480F, -0.039062F};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(embedding[i], published[i], 6e-7);
      EXPECT_NEAR(norm[i], published[4 + i], 6e-7);
      EXPECT_NEAR(bias[i], published[8 + i], 6e-7);
    }
  }
  const std::array<float, 4> pixels{-0.937500F, -0.992188F, -0.351562F, 0.304688F};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(hash_pixel(i), pixels[i], 6e-7);
    const TensorSpec embedding{kEmbedding, {512, 64}};
    EXPECT_EQ(hash_weight(embedding, i), floats_of(hash_weights(config_of("tiny_a")), embedding)[i]);
  }
}

// Both kinds of generated weights.
std::vector<WeightSource> generated(const ModelConfig& config) {
  std::vector<WeightSource> sources;
  sources.push_back(hash_weights(config));
  sources.push_back(random_weights(config, 7));
  return sources;
}

TEST(GeneratedWeightsTest, EveryTypeHoldsTheSameValues) {
  for (const WeightSource& source : generated(config_of("tiny_a"))) {
    EXPECT_EQ(source.parameters(), 177'440);
    for (const TensorSpec& tensor : source.tensors()) {
      const std::vector<double> exact = widen(ElementType::float32, read_all(source, tensor, ElementType::float32));
      ASSERT_EQ(exact.size(), static_cast<std::size_t>(tensor.elements()));
      for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
        ASSERT_EQ(widen(type, read_all(source, tensor, type)), exact) << tensor.name;
      }
    }
  }
}

TEST(GeneratedWeightsTest, PartsAreThoseOfTheWhole) {
  for (const WeightSource& source : generated(config_of("tiny_b"))) {
    const TensorSpec& tensor = source.tensors().front();
    const std::vector<float> whole = floats_of(source, tensor);
    for (const std::size_t first : {std::size_t{1}, std::size_t{8}, std::size_t{1003}, whole.size() - 5}) {
      std::vector<float> part(5);
      source.read(tensor, ElementType::float32, static_cast<std::int64_t>(first),
                  std::as_writable_bytes(std::span(part)));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
    }
  }
}

TEST(RandomWeightsTest, ScaleIsThatOfATrainedModel) {
  const ModelConfig config = config_of("tiny_b");
  const WeightSource source = random_weights(config, 1);
  double sum = 0;
  double squares = 0;
  std::size_t count = 0;
  for (const TensorSpec& tensor : source.tensors()) {
    const bool norm = tensor.name.ends_with("norm.weight") || tensor.name.ends_with("norm1.weight") ||
                      tensor.name.ends_with("norm2.weight");
    for (const float value : floats_of(source, tensor)) {
      if (norm) {
        ASSERT_LE(std::fabs(value - 1.0F), 0.125F) << tensor.name;
      } else {
        ASSERT_LE(std::fabs(value), 1.0F / 32.0F) << tensor.name;
        sum += value;
        squares += static_cast<double>(value) * value;
        ++count;
      }
    }
  }
  EXPECT_NEAR(sum / static_cast<double>(count), 0.0, 1e-4);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(count)), 0.018, 1e-3);
}

TEST(RandomWeightsTest, SeedsAndNamesGiveOtherWeights) {
  const ModelConfig config = config_of("tiny_a");
  const WeightSource one = random_weights(config, 1);
  const WeightSource two = random_weights(config, 2);
  const TensorSpec& up = one.tensors()[10];
  const TensorSpec& gate = one.tensors()[9];
  ASSERT_EQ(up.shape, gate.shape);
  EXPECT_EQ(floats_of(one, up), floats_of(random_weights(config, 1), up));
  EXPECT_NE(floats_of(one, up), floats_of(two, up));
  EXPECT_NE(floats_of(one, up), floats_of(one, gate));
}

TEST(WeightSourceTest, EveryTensorIsTakenOnce) {
  WeightSource source = hash_weights(config_of("tiny_a"));
  PASCALINE_EXPECT_SAYS(complaint_of([&] { source.require_all_taken(); }),
                        "63 of the model's 63 tensors were not used");
  const std::vector<TensorSpec> tensors = source.tensors();
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name != kEmbedding) {
      EXPECT_EQ(source.take(tensor.name), tensor);
    }
  }
  PASCALINE_EXPECT_SAYS(complaint_of([&] { source.require_all_taken(); }),
                        "1 of the model's 63 tensors were not used: 'model.language_model.embed_tokens.weight'");
  (void)source.take(kEmbedding);
  EXPECT_NO_THROW(source.require_all_taken());
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)source.take(kEmbedding); }), "was taken before");
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)source.take("lm_head.weight"); }),
                        "the model has no tensor 'lm_head.weight'");
}

TEST(WeightSourceTest, RangesAndTypesAreChecked) {
  const WeightSource source = hash_weights(config_of("tiny_a"));
  const TensorSpec& tensor = source.tensors().front();
  std::vector<std::byte> out(64);
  const auto read = [&](ElementType type, std::int64_t first) { source.read(tensor, type, first, out); };
  EXPECT_NO_THROW(read(ElementType::float32, tensor.elements() - 16));
  EXPECT_THROW(read(ElementType::float32, tensor.elements() - 15), Error);
  EXPECT_THROW(read(ElementType::float32, -1), Error);
  EXPECT_THROW(read(ElementType::float32, INT64_MAX), Error);
  EXPECT_THROW(read(ElementType::int32, 0), Error);
  out.resize(63);
  EXPECT_THROW(read(ElementType::float32, 0), Error);
  EXPECT_NO_THROW(source.announce(tensor));
  EXPECT_THROW(source.announce({"absent", {1}}), ModelError);
  const auto nothing = [](std::size_t, ElementType, std::int64_t, std::span<std::byte>) {};
  EXPECT_THROW(WeightSource({{"w", {1}}, {"w", {1}}}, nothing), Error);
}

}  // namespace
}  // namespace pascaline
