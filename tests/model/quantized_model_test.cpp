#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/stored_formats.hpp"
#include "model/convert/quantized_file.hpp"
#include "model/residency/device_weights.hpp"
#include "runtime/device/device.hpp"
#include "runtime/formats/float16x_search.hpp"
#include "tests/model/model_folder.hpp"
#include "tests/runtime/device/cuda/support.hpp"

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
  // The model with matrices that no format holds exactly, of each tensor as large as none of the others.
  [[nodiscard]] Checkpoint spread_original() {
    const WeightSource source = hash_weights(config_);
    std::vector<std::vector<float>> values;
    std::vector<StoredTensor> tensors;
    for (const TensorSpec& tensor : source.tensors()) {
      std::vector<float>& own = values.emplace_back(static_cast<std::size_t>(tensor.elements()));
      source.read(tensor, ElementType::float32, 0, std::as_writable_bytes(std::span(own)));
      const float scale = std::pow(1.3F, static_cast<float>(values.size() % 29));
      for (std::size_t i = 0; i < own.size() && tensor.kind == TensorKind::matrix; ++i) {
        own[i] *= scale * (own[i] * own[i] + 0.01F);
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      tensors.push_back(
          {source.tensors()[i].name, StoredType::F32, source.tensors()[i].shape, std::as_bytes(std::span(values[i]))});
    }
    write_safetensors(folder_.path() / "original" / "model.safetensors", tensors);
    return Checkpoint::open(folder_.path() / "original", config_);
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

// Heads of 20 values are filled up to 24, so that the projection's blocks are others on the device.
TEST_F(QuantizedModelTest, HeadsThatAreFilledUpGiveTheSameToo) {
  config_.vision->hidden = 40;
  for (const char* name : {"q8_0", "int8", "q6_k", "int4"}) {
    const WeightRecipe recipe = WeightRecipe::named(name);
    const auto expected = on_device(original(), recipe);
    Checkpoint checkpoint = quantized(recipe);
    bool is_kept = false;
    for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
      if (checkpoint.tensors()[i].name == "model.visual.blocks.0.attn.proj.weight") {
        is_kept =
            checkpoint.stored(i).type != StoredType::U8 && checkpoint.format(i) == StoredFormat{ElementType::q8_0};
      }
    }
    EXPECT_TRUE(is_kept) << name;
    const WeightRecipe stored = stored_recipe(checkpoint, ElementType::float32);
    EXPECT_EQ(on_device(std::move(checkpoint), stored), expected) << name;
  }
}

TEST_F(QuantizedModelTest, TensorsOfOneMatrixShareTheChoiceOfFloat16x) {
  for (const std::int64_t hidden : {config_.vision->hidden, std::int64_t{40}}) {  // also heads that are filled up
    config_.vision->hidden = hidden;
    const auto expected = on_device(spread_original(), ElementType::float16x);
    const std::filesystem::path file = folder_.path() / "quantized" / "model.safetensors";
    std::filesystem::remove(file);
    ASSERT_TRUE(write_quantized(spread_original(), config_, ElementType::float16x, file));
    Checkpoint checkpoint = Checkpoint::open(folder_.path() / "quantized", config_);
    ModelWeights unused;
    std::size_t index = 0;
    std::size_t joined = 0;
    for (const WeightEntry& weight : weight_table(config_, unused)) {
      const std::optional<StoredFormat> first = checkpoint.format(index);
      for (const TensorSpec& tensor : weight.tensors) {
        EXPECT_EQ(checkpoint.format(index), first) << tensor.name;
        index += 1;
      }
      if (weight.kind() == TensorKind::matrix) {
        ASSERT_TRUE(first);
        EXPECT_EQ(first->type, ElementType::float16x);
        EXPECT_EQ(first->float16x.exponent_bits, 4) << weight.tensors.front().name;
        joined += weight.tensors.size() > 1 ? 1 : 0;
      }
    }
    EXPECT_GE(joined, 4U);
    const WeightRecipe stored = stored_recipe(checkpoint, ElementType::float32);
    EXPECT_EQ(on_device(std::move(checkpoint), stored), expected);
  }
}

TEST_F(QuantizedModelTest, Float16xCanBeStoppedBeforeAnythingIsWritten) {
  QuantizeSettings settings;
  int calls = 0;
  settings.goes_on = [&](const TensorProgress& at) {
    EXPECT_EQ(at.tensors, 0U);
    EXPECT_GT(at.all_tensors, 0U);
    return ++calls < 3;
  };
  EXPECT_FALSE(write_quantized(original(), config_, ElementType::float16x, folder_.path() / "x", settings));
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "x"));
}

TEST_F(QuantizedModelTest, ValuesThatAreNotFiniteAreNamedWhenFloat16xIsChosen) {
  (void)spread_original();
  const std::filesystem::path file = folder_.path() / "original" / "model.safetensors";
  std::string bytes = read_file(file);
  {
    const Safetensors content(file);
    const StoredTensor& tensor = content.at("model.language_model.layers.0.mlp.up_proj.weight");
    const auto offset = static_cast<std::size_t>(tensor.bytes.data() - content.tensors().front().bytes.data());
    const std::size_t data = bytes.size() - static_cast<std::size_t>(content.tensors().back().bytes.data() +
                                                                     content.tensors().back().bytes.size() -
                                                                     content.tensors().front().bytes.data());
    const float infinity = std::numeric_limits<float>::infinity();
    std::memcpy(bytes.data() + data + offset + (2 * 64 + 5) * sizeof(float), &infinity, sizeof infinity);
  }
  write_file_atomically(file, bytes);
  try {
    (void)write_quantized(Checkpoint::open(folder_.path() / "original", config_), config_, ElementType::float16x,
                          folder_.path() / "x");
    FAIL() << "accepted";
  } catch (const ModelError& error) {
    EXPECT_EQ(error.what(),
              file.string() +
                  ": tensor 'model.language_model.layers.0.mlp.up_proj.weight': value 5 of row 2 is inf; the "
                  "checkpoint is damaged");
  }
}

// A folder of another writer, say: tensors of one matrix with choices of their own are brought to one.
TEST_F(QuantizedModelTest, TensorsWithChoicesOfTheirOwnAreBroughtToOne) {
  const Checkpoint checkpoint = spread_original();
  FormatNotes notes("float16x");
  std::vector<std::vector<std::byte>> bytes;
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const TensorSpec& spec = checkpoint.tensors()[i];
    const StoredTensor& stored = checkpoint.stored(i);
    if (spec.kind != TensorKind::matrix) {
      tensors.push_back(stored);
      continue;
    }
    std::vector<float> values(stored.bytes.size() / sizeof(float));
    std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
    const Float16x format = best_float16x(values);
    to_float16x(format, values, bytes.emplace_back(2 * values.size()));
    notes.add(spec.name, format, spec.shape);
    tensors.push_back(
        {spec.name, StoredType::U8, {spec.shape.front(), 2 * spec.elements() / spec.shape.front()}, bytes.back()});
  }
  write_safetensors(folder_.path() / "quantized" / "model.safetensors", tensors, notes.metadata());
  WeightSource source = checkpoint_weights(Checkpoint::open(folder_.path() / "quantized", config_));
  const DeviceWeights weights = load_weights(config_, source, device_->memory(), ElementType::float16x);
  const TensorView& qkv = weights.text.layers.front().qkv.parts.front();
  const std::string layer = "model.language_model.layers.0.self_attn.";
  std::vector<float> all;
  for (const char* name : {"q_proj.weight", "k_proj.weight", "v_proj.weight"}) {
    const auto spec = std::find_if(source.tensors().begin(), source.tensors().end(),
                                   [&](const TensorSpec& tensor) { return tensor.name == layer + name; });
    ASSERT_NE(spec, source.tensors().end());
    const std::size_t before = all.size();
    all.resize(before + static_cast<std::size_t>(spec->elements()));
    source.read(*spec, ElementType::float32, 0, std::as_writable_bytes(std::span(all).subspan(before)));
  }
  const Float16x format = float16x_header(qkv.data);
  EXPECT_EQ(format, best_float16x(all));
  std::vector<std::byte> codes(2 * all.size());
  to_float16x(format, all, codes);
  EXPECT_EQ(std::memcmp(static_cast<const std::byte*>(qkv.data) + 128, codes.data(), codes.size()), 0);
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
  settings.goes_on = [](const TensorProgress&) { return false; };
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
    EXPECT_EQ(error.what(), file.string() +
                                ": tensor 'model.language_model.layers.0.mlp.up_proj.weight': the block of "
                                "value 32 of row 3 has a scale that is not finite; the checkpoint is damaged");
  }
}

}  // namespace
}  // namespace pascaline::testing
