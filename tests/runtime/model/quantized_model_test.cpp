#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "runtime/checkpoint/model_error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/model/device_weights.hpp"
#include "runtime/model/quantized_file.hpp"
#include "tests/runtime/device/cuda/support.hpp"
#include "tests/runtime/model/model_folder.hpp"

namespace pascaline::testing {
namespace {

class QuantizedModelTest : public ::testing::Test {
 protected:
  QuantizedModelTest() : device_(open_device("emulator")) {
    config_ = parse_model_config(read_file(std::filesystem::path(PASCALINE_CHECKPOINT_DATA) / "tiny_a.json"), "tiny_a");
    for (const char* name : {"original", "quantized"}) {
      std::filesystem::create_directory(folder_.path() / name);
    }
  }

  [[nodiscard]] Checkpoint original() {
    write_model(folder_.path() / "original", config_);
    return Checkpoint::open(folder_.path() / "original", config_);
  }
  [[nodiscard]] Checkpoint quantized(const WeightRecipe& recipe, int threads = 0) {
    const std::filesystem::path file = folder_.path() / "quantized" / "model.safetensors";
    std::filesystem::remove(file);
    QuantizeSettings settings;
    settings.threads = threads;
    EXPECT_TRUE(write_quantized(original(), config_, recipe, file, settings));
    return Checkpoint::open(folder_.path() / "quantized", config_);
  }
  // All bytes of the weights as they lie on the device.
  [[nodiscard]] std::vector<std::vector<std::byte>> on_device(Checkpoint checkpoint, const WeightRecipe& recipe) {
    WeightSource source = checkpoint_weights(std::move(checkpoint));
    const DeviceWeights weights = load_weights(config_, source, device_->memory(), recipe, 2);
    std::vector<std::vector<std::byte>> all;
    for (const RawBuffer& buffer : weights.buffers) {
      std::vector<std::byte>& bytes = all.emplace_back(buffer.bytes());
      device_->memory().download({}, bytes, buffer.span());
      device_->memory().synchronize(StreamId{});
    }
    return all;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Device> device_;
  ModelConfig config_;
};

TEST_F(QuantizedModelTest, OnTheDeviceItIsWhatQuantizingAtLoadGives) {
  for (const std::string_view name : WeightRecipe::names()) {
    const WeightRecipe recipe = WeightRecipe::named(name);
    const auto expected = on_device(original(), recipe);
    Checkpoint checkpoint = quantized(recipe);
    const WeightRecipe stored = stored_recipe(checkpoint, ElementType::float32);
    EXPECT_EQ(on_device(std::move(checkpoint), stored), expected) << name;
    EXPECT_EQ(on_device(quantized(recipe, 1), recipe), expected) << name;
  }
}

// Heads of 24 values are filled up to 32, so that the projection's blocks are others on the device.
TEST_F(QuantizedModelTest, HeadsThatAreFilledUpGiveTheSameToo) {
  config_.vision->hidden = 48;
  for (const char* name : {"q8_0", "int8", "q6_k", "int4"}) {
    const WeightRecipe recipe = WeightRecipe::named(name);
    const auto expected = on_device(original(), recipe);
    Checkpoint checkpoint = quantized(recipe);
    bool is_kept = false;
    for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
      if (checkpoint.tensors()[i].name == "model.visual.blocks.0.attn.proj.weight") {
        is_kept = checkpoint.stored(i).type != StoredType::U8 && checkpoint.format(i) == ElementType::q8_0;
      }
    }
    EXPECT_TRUE(is_kept) << name;
    const WeightRecipe stored = stored_recipe(checkpoint, ElementType::float32);
    EXPECT_EQ(on_device(std::move(checkpoint), stored), expected) << name;
  }
}

TEST_F(QuantizedModelTest, AnotherTypeIsMadeOfTheStoredValues) {
  const WeightRecipe q8 = WeightRecipe::named("q8_0");
  const auto widened = on_device(quantized(q8), ElementType::float32);
  const auto exact = on_device(original(), ElementType::float32);
  ASSERT_EQ(widened.size(), exact.size());
  std::size_t equal = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(widened[i].size(), exact[i].size());
    equal += widened[i] == exact[i] ? 1 : 0;
    for (std::size_t at = 0; at + sizeof(float) <= exact[i].size(); at += sizeof(float)) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, widened[i].data() + at, sizeof a);
      std::memcpy(&b, exact[i].data() + at, sizeof b);
      ASSERT_NEAR(a, b, 0.002);
    }
  }
  EXPECT_GT(equal, 0U) << "norms and biases are as they were";
  EXPECT_LT(equal, exact.size());
  EXPECT_EQ(on_device(quantized(q8), WeightRecipe::named("q4_0")).size(), exact.size());
}

TEST_F(QuantizedModelTest, ItIsNotQuantizedAgain) {
  const Checkpoint checkpoint = quantized(WeightRecipe::named("q8_0"));
  EXPECT_THROW((void)write_quantized(checkpoint, config_, WeightRecipe::named("q4_k"), folder_.path() / "x"),
               ModelError);
}

TEST_F(QuantizedModelTest, ItCanBeStopped) {
  QuantizeSettings settings;
  settings.goes_on = [](const QuantizeProgress&) { return false; };
  EXPECT_FALSE(write_quantized(original(), config_, WeightRecipe::named("q8_0"), folder_.path() / "x", settings));
}

TEST_F(QuantizedModelTest, DamagedScalesAreSeenWhenTheyArePacked) {
  const WeightRecipe recipe = WeightRecipe::named("q8_0");
  { const Checkpoint checkpoint = quantized(recipe); }
  const std::filesystem::path file = folder_.path() / "quantized" / "model.safetensors";
  std::string bytes = read_file(file);
  const Safetensors content(file);
  const StoredTensor& tensor = content.at("model.language_model.layers.0.mlp.up_proj.weight");
  const std::size_t row = 64 / 32 * 34;
  const auto offset =
      bytes.size() - static_cast<std::size_t>(content.tensors().back().bytes.data() +
                                              content.tensors().back().bytes.size() - tensor.bytes.data());
  bytes[offset + 3 * row + 34] = '\x00';
  bytes[offset + 3 * row + 35] = '\x7E';
  write_file_atomically(file, bytes);
  try {
    (void)on_device(Checkpoint::open(folder_.path() / "quantized", config_), recipe);
    FAIL() << "accepted";
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(),
                 "tensor 'model.language_model.layers.0.mlp.up_proj.weight': the block of value 32 of row 3 has a "
                 "scale that is not finite; the checkpoint is damaged");
  }
}

}  // namespace
}  // namespace pascaline::testing
