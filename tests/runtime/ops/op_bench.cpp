#include "tests/runtime/ops/op_bench.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/elements.hpp"
#include "runtime/formats/draw.hpp"
#include "runtime/ops/checks.hpp"

namespace pascaline::testing {
namespace {

DispatcherOptions with_test_cache() {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  return options;
}

double tolerance_of(ElementType type) {
  switch (type) {
    case ElementType::float16:
      return 2e-3;
    case ElementType::bfloat16:
      return 1.6e-2;
    default:
      return 1e-5;
  }
}

template <typename T>
void store(std::vector<std::byte>& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

}  // namespace

OpBench::OpBench() : device_(open_device("emulator")), dispatcher_(*device_, with_test_cache()) {}

TensorView OpBench::hold(ElementType type, std::initializer_list<std::int64_t> shape, std::size_t count) {
  Buffer buffer = device_->allocate(count * size_of(type));
  void* data = buffer.data();
  held_[data].buffer = std::move(buffer);
  return {data, type, shape};
}

TensorView OpBench::input(ElementType type, std::initializer_list<std::int64_t> shape, double low, double high,
                          std::int64_t row_stride) {
  const TensorView dense(nullptr, type, shape);
  const std::int64_t stride = row_stride != 0 ? row_stride : ops::row_length(dense);
  const auto count = static_cast<std::size_t>((dense.shape[0] - 1) * stride + ops::row_length(dense));
  const TensorView tensor = hold(type, shape, count).with_row_stride(row_stride);
  const std::vector<std::byte> bytes = draw_elements(type, count, Fill::uniform, low, high, ++seed_);
  Held& held = held_.at(tensor.data);
  device_->upload(held.buffer, bytes);
  held.initial = widen(type, bytes);
  return tensor;
}

TensorView OpBench::given(ElementType type, std::initializer_list<std::int64_t> shape,
                          const std::vector<double>& values) {
  const TensorView tensor = hold(type, shape, values.size());
  Held& held = held_.at(tensor.data);
  std::vector<std::byte> bytes(held.buffer.bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == ElementType::int32) {
      store(bytes, i, static_cast<std::int32_t>(values[i]));
    } else if (type == ElementType::float16) {
      store(bytes, i, half_from_float(static_cast<float>(values[i])));
    } else {
      store(bytes, i, static_cast<float>(values[i]));
    }
  }
  device_->upload(held.buffer, bytes);
  held.initial = values;
  return tensor;
}

TensorView OpBench::output(ElementType type, std::initializer_list<std::int64_t> shape) {
  const TensorView dense(nullptr, type, shape);
  const auto count = static_cast<std::size_t>(dense.shape[0] * ops::row_length(dense));
  const TensorView tensor = hold(type, shape, count);
  device_->fill(held_.at(tensor.data).buffer, 0xFF);
  return tensor;
}

std::vector<double> OpBench::values(const TensorView& tensor) {
  const auto held = held_.find(tensor.data);
  if (held == held_.end()) {
    return {};
  }
  std::vector<std::byte> bytes(held->second.buffer.bytes());
  device_->download(bytes, held->second.buffer);
  return widen(tensor.type, bytes);
}

const std::vector<double>& OpBench::initial(const TensorView& tensor) const {
  static const std::vector<double> nothing;
  const auto held = held_.find(tensor.data);
  return held == held_.end() ? nothing : held->second.initial;
}

void OpBench::expect(const TensorView& tensor, const std::vector<double>& expected, const char* what) {
  device_->synchronize();
  const std::vector<double> actual = values(tensor);
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double squares = 0;
  for (const double value : expected) {
    squares += value * value;
  }
  const double scale = std::sqrt(squares / static_cast<double>(expected.size()));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double limit = tolerance_of(tensor.type) * (std::abs(expected[i]) + scale);
    ASSERT_TRUE(std::abs(actual[i] - expected[i]) <= limit)
        << what << ", element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
  for (const auto& [data, held] : held_) {
    EXPECT_TRUE(device_->guards_intact(held.buffer)) << what;
  }
}

}  // namespace pascaline::testing
