#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/util/paths.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/model.hpp"
#include "model/residency/device_weights.hpp"
#include "model/residency/filled_rows.hpp"
#include "runtime/formats/float16x_search.hpp"
#include "runtime/formats/packed_matrix.hpp"
#include "tests/model/golden.hpp"
#include "tests/runtime/formats/all_formats.hpp"

namespace pascaline::testing {
namespace {

class WeightFormatsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  Executor executor_{*host_};
  ModelConfig config_ = golden_model_a().config;

  [[nodiscard]] DeviceWeights loaded(const WeightRecipe& recipe) const {
    WeightSource source = hash_weights(config_);
    return load_weights(config_, source, host_->memory(), recipe);
  }

  // Memory of the emulated device is the host's. Each row is what its floats are quantized to, at its place.
  static void expect_quantized(const char* name, const TensorView& got, const TensorView& floats, ElementType type) {
    SCOPED_TRACE(name);
    ASSERT_EQ(got.type, type);
    ASSERT_EQ(got.shape, floats.shape);
    const std::int64_t width = floats.shape[1];
    const auto group = static_cast<std::size_t>(layout_of(type).group_bytes(width));
    const auto bytes = static_cast<std::size_t>(layout_of(type).bytes(got.shape[0], width));
    const std::span<const std::byte> all(static_cast<const std::byte*>(got.data), bytes);
    std::vector<std::byte> row(file_row_bytes(type, width));
    std::vector<std::byte> expected(row.size());
    for (std::int64_t i = 0; i < got.shape[0]; ++i) {
      const std::span values(static_cast<const float*>(floats.data) + i * width, static_cast<std::size_t>(width));
      ASSERT_FALSE(quantize_row(type, values, expected));
      unpack_row(type, all.subspan(static_cast<std::size_t>(i / 32) * group, group), width, i % 32, row);
      ASSERT_EQ(row, expected) << "row " << i;
    }
  }

  void expect_all_quantized(ElementType type) const {
    const DeviceWeights packed = loaded(type);
    const DeviceWeights full = loaded(ElementType::float32);
    for (std::size_t i = 0; i < full.text.layers.size(); ++i) {
      expect_quantized("qkv", packed.text.layers[i].qkv.parts[0], full.text.layers[i].qkv.parts[0], type);
      expect_quantized("output", packed.text.layers[i].output, full.text.layers[i].output, type);
      expect_quantized("gate_up", packed.text.layers[i].gate_up, full.text.layers[i].gate_up, type);
      expect_quantized("down", packed.text.layers[i].down, full.text.layers[i].down, type);
    }
    for (std::size_t i = 0; i < full.vision.blocks.size(); ++i) {
      expect_quantized("vision qkv", packed.vision.blocks[i].qkv.weight, full.vision.blocks[i].qkv.weight, type);
      expect_quantized("vision projection", packed.vision.blocks[i].projection.weight,
                       full.vision.blocks[i].projection.weight, type);
    }
    expect_quantized("embedding", packed.text.embedding, full.text.embedding, type);
    expect_quantized("head", packed.text.head, full.text.head, type);
    EXPECT_EQ(packed.text.norm.type, ElementType::float32);
    EXPECT_EQ(packed.vision.positions.type, ElementType::float32);
    EXPECT_EQ(packed.bytes, device_weight_bytes(config_, type));
    EXPECT_LT(packed.bytes, full.bytes);
  }

  // A header with the best choice for all of the matrix, then its rows.
  static void expect_float16x(const char* name, const TensorView& got, const TensorView& floats) {
    SCOPED_TRACE(name);
    ASSERT_EQ(got.type, ElementType::float16x);
    ASSERT_EQ(got.shape, floats.shape);
    const std::span values(static_cast<const float*>(floats.data),
                           static_cast<std::size_t>(floats.shape[0] * floats.shape[1]));
    const Float16x format = float16x_header(got.data);
    EXPECT_EQ(format, best_float16x(values));
    EXPECT_EQ(format.exponent_bits, 4);
    std::vector<std::byte> expected(128 + 2 * values.size());
    put_float16x_header(format, expected);
    to_float16x(format, values, std::span(expected).subspan(128));
    ASSERT_EQ(std::memcmp(got.data, expected.data(), expected.size()), 0);
  }

  // Hashed weights that float16 does not hold exactly; tensors differ in size.
  [[nodiscard]] WeightSource spread_weights() const {
    const auto hashed = std::make_shared<const WeightSource>(hash_weights(config_));
    return {hashed->tensors(),
            [hashed](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
              const TensorSpec& tensor = hashed->tensors()[index];
              hashed->read(tensor, type, first, out);
              if (type == ElementType::float32 && tensor.kind == TensorKind::matrix) {
                for (std::size_t i = 0; i < out.size() / sizeof(float); ++i) {
                  float value = 0;
                  std::memcpy(&value, out.data() + i * sizeof value, sizeof value);
                  value = value * value * value * std::pow(1.37F, static_cast<float>(index % 11)) * 50;
                  std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
                }
              }
            }};
  }

  void expect_all_float16x() const {
    WeightSource spread = spread_weights();
    const DeviceWeights coded = load_weights(config_, spread, host_->memory(), ElementType::float16x, 3);
    WeightSource again = spread_weights();
    const DeviceWeights full = load_weights(config_, again, host_->memory(), ElementType::float32);
    for (std::size_t i = 0; i < full.text.layers.size(); ++i) {
      expect_float16x("qkv", coded.text.layers[i].qkv.parts[0], full.text.layers[i].qkv.parts[0]);
      expect_float16x("gate_up", coded.text.layers[i].gate_up, full.text.layers[i].gate_up);
      expect_float16x("down", coded.text.layers[i].down, full.text.layers[i].down);
    }
    for (std::size_t i = 0; i < full.vision.blocks.size(); ++i) {
      expect_float16x("vision qkv", coded.vision.blocks[i].qkv.weight, full.vision.blocks[i].qkv.weight);
      expect_float16x("vision projection", coded.vision.blocks[i].projection.weight,
                      full.vision.blocks[i].projection.weight);
    }
    expect_float16x("embedding", coded.text.embedding, full.text.embedding);
    EXPECT_EQ(coded.bytes, device_weight_bytes(config_, ElementType::float16x));
    EXPECT_LT(coded.bytes, full.bytes);
  }

  // Logits of the last token of a prompt, and of one after it.
  [[nodiscard]] std::vector<float> logits_of(const WeightRecipe& recipe) {
    WeightSource source = hash_weights(config_);
    ModelOptions options{.context = 64, .chunk = 32};
    options.weights = recipe;
    options.cache = ElementType::float32;
    Model model(executor_, config_, source, options);
    EXPECT_EQ(model.memory().weights, device_weight_bytes(config_, recipe));
    const std::vector<std::int32_t> prompt{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};
    model.append({prompt, {}});
    std::vector<float> all = model.logits();
    model.append({std::span(prompt).first(1), {}});
    const std::vector<float> next = model.logits();
    all.insert(all.end(), next.begin(), next.end());
    return all;
  }

  // What loading says of hashed weights of which one element of that tensor is another.
  [[nodiscard]] std::string refusal_of(const std::string& name, std::int64_t element, float value,
                                       ElementType type_kept = ElementType::q4_k) const {
    const WeightSource hashed = hash_weights(config_);
    WeightSource spoiled(hashed.tensors(),
                         [&](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
                           const TensorSpec& tensor = hashed.tensors()[index];
                           hashed.read(tensor, type, first, out);
                           const std::int64_t at = (element - first) * static_cast<std::int64_t>(sizeof value);
                           if (tensor.name == name && at >= 0 && at < std::ssize(out)) {
                             std::memcpy(out.data() + at, &value, sizeof value);
                           }
                         });
    try {
      static_cast<void>(load_weights(config_, spoiled, host_->memory(), type_kept));
    } catch (const ModelError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
};

TEST_F(WeightFormatsTest, EachRowIsQuantizedWhereItBelongs) {
  for (const ElementType type : kPackedTypes) {
    SCOPED_TRACE(name_of(type));
    expect_all_quantized(type);
  }
}

TEST_F(WeightFormatsTest, AHeadOfItsOwnIsQuantizedToo) {
  config_.text.tied = false;
  expect_all_quantized(ElementType::q6_k);
}

TEST_F(WeightFormatsTest, PaddedHeadsAreQuantizedWithTheirZeros) {
  config_.vision->hidden = 40;  // two heads of 20 elements, padded to 24
  expect_all_quantized(ElementType::q4_0);
}

TEST_F(WeightFormatsTest, GroupsMayBeBroughtInParts) {
  config_.text.layers = 1;
  config_.text.intermediate = 70000;  // pieces of 4 MiB end within a group
  expect_all_quantized(ElementType::q8_0);
}

TEST_F(WeightFormatsTest, Float16xIsChosenForEachMatrix) { expect_all_float16x(); }

TEST_F(WeightFormatsTest, Float16xOfPaddedHeadsHasTheirZeros) {
  config_.vision->hidden = 40;
  expect_all_float16x();
}

TEST_F(WeightFormatsTest, Float16xMayBeBroughtInParts) {
  config_.text.layers = 1;
  config_.text.intermediate = 70000;  // several pieces of 4 MiB
  expect_all_float16x();
}

TEST_F(WeightFormatsTest, ZerosInFloat16xStayZeros) {
  const WeightSource hashed = hash_weights(config_);
  WeightSource zeros(hashed.tensors(), [](std::size_t, ElementType, std::int64_t, std::span<std::byte> out) {
    std::fill(out.begin(), out.end(), std::byte{0});
  });
  const DeviceWeights weights = load_weights(config_, zeros, host_->memory(), ElementType::float16x);
  const TensorView& down = weights.text.layers.front().down;
  EXPECT_EQ(float16x_header(down.data), (Float16x{5, 15}));
  const std::span<const std::byte> all(
      static_cast<const std::byte*>(down.data),
      static_cast<std::size_t>(layout_of(down.type).bytes(down.shape[0], down.shape[1])));
  for (const double value : widen_matrix(down.type, all, down.shape[0], down.shape[1])) {
    ASSERT_EQ(value, 0);
  }
}

// Hashed weights are exact in it, so that it is as good as float32 but for the order of sums.
TEST_F(WeightFormatsTest, LogitsInFloat16xAreThoseInFull) {
  const std::vector<float> full = logits_of(ElementType::float32);
  const std::vector<float> coded = logits_of(ElementType::float16x);
  ASSERT_EQ(coded.size(), full.size());
  for (std::size_t i = 0; i < full.size(); ++i) {
    ASSERT_NEAR(coded[i], full[i], 1e-4F * (1 + std::fabs(full[i])));
  }
}

TEST_F(WeightFormatsTest, LogitsAreCloseToThoseInFull) {
  const std::vector<float> full = logits_of(ElementType::float32);
  const auto error_of = [&](const WeightRecipe& recipe) {
    const std::vector<float> rounded = logits_of(recipe);
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < full.size(); ++i) {
      difference += std::pow(double{full[i]} - double{rounded[i]}, 2);
      norm += std::pow(double{full[i]}, 2);
    }
    return std::sqrt(difference / norm);
  };
  for (const std::string_view name : WeightRecipe::names()) {
    const WeightRecipe recipe = WeightRecipe::named(name);
    if (recipe.has_packed_formats()) {
      const double error = error_of(recipe);
      RecordProperty(std::string(name), std::to_string(error));
      const std::size_t bits = bits_of(recipe.rules().back().type);
      EXPECT_LT(error, bits < 4 ? 0.8 : bits == 4 ? 0.3 : bits < 8 ? 0.1 : 0.03) << name;
      EXPECT_GT(error, 1e-4) << name << ": weights were not rounded";
    }
  }
}

TEST_F(WeightFormatsTest, RulesSayWhatEachMatrixIsKeptIn) {
  const WeightRecipe recipe("mine", {{"*visual.*", ElementType::float16},
                                     {"*layers.0.*", ElementType::q8_0},
                                     {"*embed_tokens*", ElementType::q6_k},
                                     {"*", ElementType::q4_k}});
  const DeviceWeights weights = loaded(recipe);
  EXPECT_EQ(weights.vision.blocks[0].qkv.weight.type, ElementType::float16);
  EXPECT_EQ(weights.text.layers[0].qkv.parts[0].type, ElementType::q8_0);
  EXPECT_EQ(weights.text.layers[1].qkv.parts[0].type, ElementType::q4_k);
  EXPECT_EQ(weights.text.embedding.type, ElementType::q6_k);
  EXPECT_EQ(weights.bytes, device_weight_bytes(config_, recipe));
}

TEST_F(WeightFormatsTest, QueriesKeysAndValuesMayBeOfSeveralTypes) {
  const WeightRecipe recipe("mine", {{"*.0.*v_proj*", ElementType::q8_0}, {"*", ElementType::q4_k}});
  const DeviceWeights weights = loaded(recipe);
  const auto parts = weights.text.layers[0].qkv.all();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].type, ElementType::q4_k);
  EXPECT_EQ(parts[0].shape[0], (config_.text.heads + config_.text.kv_heads) * config_.text.head_dim);
  EXPECT_EQ(parts[1].type, ElementType::q8_0);
  EXPECT_EQ(parts[1].shape[0], config_.text.kv_heads * config_.text.head_dim);
  EXPECT_EQ(weights.text.layers[1].qkv.all().size(), 1U);
  EXPECT_EQ(weights.bytes, device_weight_bytes(config_, recipe));
}

TEST_F(WeightFormatsTest, TensorsWhoseRowsTakeTurnsNeedOneType) {
  const WeightRecipe recipe("mine", {{"*gate_proj*", ElementType::q8_0}, {"*", ElementType::q4_k}});
  try {
    static_cast<void>(loaded(recipe));
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("are one matrix here and need one type, not q8_0 and q4_k"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(WeightFormatsTest, WeightsThatCannotBeKeptAreNamedWithTensorAndRow) {
  const std::string layer = "model.language_model.layers.1.";
  const std::string told = "tensor '" + layer;
  const std::int64_t width = config_.text.hidden;
  EXPECT_EQ(refusal_of(layer + "self_attn.v_proj.weight", 3 * width + 7, std::nanf("")),
            told + "self_attn.v_proj.weight': value 7 of row 3 is not finite, so it cannot be kept as q4_k");
  EXPECT_EQ(refusal_of(layer + "mlp.up_proj.weight", 5 * width, -std::numeric_limits<float>::infinity()),
            told + "mlp.up_proj.weight': value 0 of row 5 is not finite, so it cannot be kept as q4_k");
  for (const char* name : {"self_attn.v_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"}) {
    const std::int64_t columns = name[4] == 'd' ? config_.text.intermediate : width;
    EXPECT_EQ(refusal_of(layer + name, 3 * columns + 7, std::nanf(""), ElementType::float16x),
              told + name + "': value 7 of row 3 is not finite, so it cannot be kept as float16x");
  }
  EXPECT_EQ(refusal_of(layer + "mlp.down_proj.weight", 0, 3e38F, ElementType::float16x), "nothing was thrown");
  EXPECT_NE(refusal_of(layer + "mlp.down_proj.weight", 0, 3e38F).find("down_proj.weight': value 0 of row 0"),
            std::string::npos);
}

TEST(FilledRowsTest, ModelsThatPeopleHaveNeedNone) {
  const std::string file = PASCALINE_CHECKPOINT_DATA "/qwen3_vl_2b.json";
  const ModelConfig config = parse_model_config(read_file(file), file);
  for (const std::string_view name : WeightRecipe::names()) {
    EXPECT_EQ(filled_rows_note(config, WeightRecipe::named(name)), std::nullopt) << name;
  }
}

TEST(FilledRowsTest, OthersAreToldWithAnExample) {
  const ModelConfig config = golden_model_a().config;
  EXPECT_EQ(filled_rows_note(config, ElementType::float16), std::nullopt);
  const auto note = filled_rows_note(config, ElementType::q4_k);
  ASSERT_TRUE(note.has_value());
  EXPECT_NE(note->find("are filled up with zeros to what their format packs together (e.g. of 64 columns to 256 in "),
            std::string::npos)
      << *note;
}

}  // namespace
}  // namespace pascaline::testing
