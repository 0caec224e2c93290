#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/formats/int8_rows.hpp"
#include "runtime/model/device_weights.hpp"
#include "runtime/model/model.hpp"
#include "runtime/ops/matmul.hpp"
#include "tests/runtime/model/golden.hpp"
#include "tests/runtime/ops/host_buffer.hpp"

namespace pascaline::testing {
namespace {

constexpr WeightStorage kInt8{ElementType::float16, WeightFormat::int8_rows};

std::vector<float> drawn(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> result(static_cast<std::size_t>(count));
  std::generate(result.begin(), result.end(), [&] { return values(generator); });
  return result;
}

TEST(Int8Rows, ValuesAreWithinHalfAStepOfTheScale) {
  std::vector<std::vector<float>> rows{drawn(1000, 1), {3}, {-2, 1, 0}, {1e-30F, -5e-31F}, {3e38F, 1, -3e38F}};
  rows.push_back(drawn(100, 2));
  rows.back()[7] = -50;  // all others are small against it
  for (const std::vector<float>& row : rows) {
    const float scale = int8_row_scale(row);
    std::vector<std::int8_t> values(row.size());
    quantise_to_int8(row, scale, values);
    int largest = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_LE(std::fabs(double{row[i]} - double{scale} * values[i]), 0.50001 * scale) << row[i];
      largest = std::max(largest, std::abs(int{values[i]}));
    }
    EXPECT_EQ(largest, 127) << row[0];
    std::vector<float> back(row.size());
    widen_int8(values.data(), scale, back.data(), static_cast<std::int64_t>(row.size()));
    EXPECT_EQ(back[0], static_cast<float>(values[0]) * scale);
  }
}

TEST(Int8Rows, ZerosAndTheSmallestNumbersStayInRange) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const std::vector<float>& row : {std::vector<float>{0, 0}, {tiny, -tiny}, {190 * tiny, -190 * tiny}}) {
    const float scale = int8_row_scale(row);
    std::vector<std::int8_t> values(row.size(), 99);
    quantise_to_int8(row, scale, values);
    EXPECT_EQ(values[0], -values[1]);
    EXPECT_EQ(values[0], scale > 0 ? 127 : 0);
  }
}

// A weight in int8 and what it stands for; each row's magnitude is another.
struct Int8Weight {
  Int8Weight(std::int64_t rows, std::int64_t width) : n(rows), k(width), values(rows * width), scales(rows) {
    const std::vector<float> all = drawn(rows * width, 3);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::vector<float> part(all.begin() + row * width, all.begin() + (row + 1) * width);
      for (float& value : part) {
        value *= 1.0F + 0.37F * static_cast<float>(row % 11);
      }
      scales[static_cast<std::size_t>(row)] = int8_row_scale(part);
      quantise_to_int8(part, scales[static_cast<std::size_t>(row)],
                       std::span(values).subspan(static_cast<std::size_t>(row * width), part.size()));
    }
  }
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return double{scales[static_cast<std::size_t>(row)]} * values[static_cast<std::size_t>(row * k + column)];
  }
  std::int64_t n;
  std::int64_t k;
  std::vector<std::int8_t> values;
  std::vector<float> scales;
};

template <typename T>
HostBuffer buffer_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return HostBuffer({bytes.begin(), bytes.end()});
}

void expect_products(std::int64_t m, const Int8Weight& weight) {
  const std::int64_t n = weight.n;
  const std::int64_t k = weight.k;
  const std::vector<float> a = drawn(m * k, 4);
  const std::vector<float> bias = drawn(n, 5);
  const HostBuffer a_memory = buffer_of(a);
  const HostBuffer values = buffer_of(weight.values);
  const HostBuffer scales = buffer_of(weight.scales);
  const HostBuffer bias_memory = buffer_of(bias);
  const HostBuffer c_memory = buffer_of(std::vector<float>(static_cast<std::size_t>(m * n)));
  const WeightView b{TensorView(values.data(), ElementType::int8, {n, k}),
                     TensorView(scales.data(), ElementType::float32, {n}),
                     {},
                     WeightFormat::int8_rows};
  ops::compute(ops::Matmul{.a = TensorView(a_memory.data(), ElementType::float32, {m, k}),
                           .b = b,
                           .c = TensorView(c_memory.data(), ElementType::float32, {m, n}),
                           .bias = TensorView(bias_memory.data(), ElementType::float32, {n}),
                           .epilogue = ops::Epilogue::bias});
  EXPECT_TRUE(c_memory.intact() && values.intact() && scales.intact());
  const auto* c = static_cast<const float*>(c_memory.data());
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      double expected = double{bias[static_cast<std::size_t>(column)]};
      double magnitude = std::fabs(expected);
      for (std::int64_t i = 0; i < k; ++i) {
        const double term = double{a[static_cast<std::size_t>(row * k + i)]} * weight.at(column, i);
        expected += term;
        magnitude += std::fabs(term);
      }
      ASSERT_NEAR(double{c[row * n + column]}, expected, 2e-6 * magnitude) << m << " rows: " << row << ", " << column;
    }
  }
}

TEST(Int8Rows, ProductsAreThoseOfTheWidenedWeight) {
  for (const std::int64_t k : {1, 33, 700}) {  // the last is deeper than a panel
    const Int8Weight weight(90, k);
    for (const std::int64_t m : {1, 3, 8, 9, 70}) {  // to 8 rows, the weight is streamed
      expect_products(m, weight);
    }
  }
}

TEST(Int8Rows, AWeightWithoutItsScalesIsRefused) {
  std::vector<float> floats(64);
  void* const data = floats.data();
  const TensorView values(data, ElementType::int8, {4, 8});
  const TensorView scales(data, ElementType::float32, {4});
  const auto accepts = [&](const WeightView& weight) {
    try {
      return ops::Matmul{.a = TensorView(data, ElementType::float32, {1, 8}),
                         .b = weight,
                         .c = TensorView(data, ElementType::float32, {1, 4})}
          .check();
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(accepts({values, scales, {}, WeightFormat::int8_rows}));
  EXPECT_FALSE(accepts({values, {}, {}, WeightFormat::int8_rows}));
  EXPECT_FALSE(accepts({values, TensorView(data, ElementType::float32, {8}), {}, WeightFormat::int8_rows}));
  EXPECT_FALSE(accepts({values, TensorView(data, ElementType::float16, {4}), {}, WeightFormat::int8_rows}));
  EXPECT_FALSE(accepts({values, scales, scales, WeightFormat::int8_rows}));
  EXPECT_FALSE(accepts(TensorView(data, ElementType::int8, {4, 8}))) << "dense weights are no int8";
}

class Int8Model : public ::testing::Test {
 protected:
  std::unique_ptr<Device> host_ = open_device("emulator");
  Executor executor_{*host_};
  ModelConfig config_ = golden_model_a().config;

  [[nodiscard]] DeviceWeights loaded(WeightStorage storage) const {
    WeightSource source = hash_weights(config_);
    return load_weights(config_, source, host_->memory(), storage);
  }
  // Memory of the emulated device is the host's.
  static void expect_close(const char* name, const WeightView& got, const WeightView& expected) {
    ASSERT_EQ(got.format, WeightFormat::int8_rows) << name;
    ASSERT_EQ(got.values.shape, expected.values.shape) << name;
    const std::int64_t width = expected.values.shape[1];
    for (std::int64_t row = 0; row < expected.values.shape[0]; ++row) {
      const float* const all = static_cast<const float*>(expected.values.data) + row * width;
      const std::span floats(all, static_cast<std::size_t>(width));
      const float scale = static_cast<const float*>(got.scales.data)[row];
      ASSERT_EQ(scale, int8_row_scale(floats)) << name << ", row " << row;
      std::vector<std::int8_t> values(floats.size());
      quantise_to_int8(floats, scale, values);
      ASSERT_EQ(
          std::memcmp(static_cast<const std::int8_t*>(got.values.data) + row * width, values.data(), values.size()), 0)
          << name << ", row " << row;
    }
  }
  void expect_decoder_in_int8() const {
    const DeviceWeights int8 = loaded(kInt8);
    const DeviceWeights full = loaded(ElementType::float32);
    for (std::size_t i = 0; i < full.text.layers.size(); ++i) {
      expect_close("qkv", int8.text.layers[i].qkv, full.text.layers[i].qkv);
      expect_close("output", int8.text.layers[i].output, full.text.layers[i].output);
      expect_close("gate_up", int8.text.layers[i].gate_up, full.text.layers[i].gate_up);
      expect_close("down", int8.text.layers[i].down, full.text.layers[i].down);
    }
    if (!config_.text.tied) {
      expect_close("head", int8.text.head, full.text.head);
    }
    for (const WeightView& dense : {int8.text.embedding, int8.vision.blocks[0].qkv.weight}) {
      EXPECT_EQ(dense.format, WeightFormat::dense);
      EXPECT_EQ(dense.values.type, ElementType::float16);
    }
    EXPECT_EQ(int8.bytes, device_weight_bytes(config_, kInt8));
  }
  // Logits of the last token of a prompt, and of one after it.
  [[nodiscard]] std::vector<float> logits_of(WeightStorage storage) {
    WeightSource source = hash_weights(config_);
    ModelOptions options{.context = 64, .chunk = 32};
    options.weights = storage;
    options.cache = ElementType::float32;
    Model model(executor_, config_, source, options);
    EXPECT_EQ(model.memory().weights, device_weight_bytes(config_, storage));
    const std::vector<std::int32_t> prompt{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};
    model.append({prompt, {}});
    std::vector<float> all = model.logits();
    model.append({std::span(prompt).first(1), {}});
    const std::vector<float> next = model.logits();
    all.insert(all.end(), next.begin(), next.end());
    return all;
  }
};

TEST_F(Int8Model, EachRowIsQuantisedWhereItBelongs) {
  expect_decoder_in_int8();
  config_.text.tied = false;
  expect_decoder_in_int8();
}

TEST_F(Int8Model, RowsMayBeBroughtInParts) {
  config_.text.layers = 1;
  config_.text.intermediate = 70000;  // a piece of 4 MiB ends within a row
  expect_decoder_in_int8();
}

TEST_F(Int8Model, LogitsAreCloseToThoseInFull) {
  const std::vector<float> full = logits_of(ElementType::float32);
  const std::vector<float> int8 = logits_of(kInt8);
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    difference += std::pow(double{full[i]} - double{int8[i]}, 2);
    norm += std::pow(double{full[i]}, 2);
  }
  const double error = std::sqrt(difference / norm);
  RecordProperty("relative_error", std::to_string(error));
  EXPECT_LT(error, 0.03);
  EXPECT_GT(error, 1e-4) << "weights were not rounded";
}

TEST_F(Int8Model, MemoryIsAQuarterOfFullAndAScaleForEachRow) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : required_tensors(config_)) {
    const auto elements = static_cast<std::uint64_t>(tensor.elements());
    if (tensor.kind != TensorKind::matrix) {
      bytes += 4 * elements;
    } else if (tensor.name.find("language_model.layers") != std::string::npos) {
      bytes += elements + 4 * static_cast<std::uint64_t>(tensor.shape[0]);
    } else {
      bytes += 2 * elements;
    }
  }
  EXPECT_EQ(device_weight_bytes(config_, kInt8), bytes);
  EXPECT_LT(bytes, device_weight_bytes(config_, ElementType::float16));
}

TEST_F(Int8Model, DevicesRefuseThemBeforeWeightsAreRead) {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  Dispatcher dispatcher(*host_, options);
  Executor kernels(dispatcher);
  WeightSource source(
      hash_weights(config_).tensors(),
      [](std::size_t, ElementType, std::int64_t, std::span<std::byte>) { ADD_FAILURE() << "weights were read"; });
  ModelOptions in_int8;
  in_int8.weights = kInt8;
  try {
    const Model model(kernels, config_, source, in_int8);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "int8 weights run on the processor only so far; give --device cpu, or --weights float16");
  }
}

}  // namespace
}  // namespace pascaline::testing
