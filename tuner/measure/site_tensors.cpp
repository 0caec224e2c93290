#include "tuner/measure/site_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/elements.hpp"
#include "model/tensor_memory.hpp"
#include "runtime/ops/operands.hpp"

namespace pascaline {
namespace {

constexpr std::uint8_t kNotANumber = 0xFF;  // in every byte of a float
constexpr std::uint64_t kNextStream = 0x1000003;

}  // namespace

TensorView SiteTensors::allocate(ElementType type, std::initializer_list<std::int64_t> extents) {
  TensorView tensor(nullptr, type, extents);
  const std::uint64_t bytes = bytes_of(tensor);
  if (bytes == 0) {
    return tensor;
  }
  buffers_.push_back(memory_->allocate_raw(bytes));
  tensor.data = buffers_.back().data();
  return tensor;
}

void SiteTensors::draw(const TensorView& to, std::int64_t rows, std::int64_t columns, double low, double high) {
  seed_ += kNextStream;
  drawing_->draw(span_of(to), {to.type, rows, columns, Fill::uniform, low, high, seed_});
}

void SiteTensors::upload(const TensorView& to, std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    memory_->upload({}, {to.data, bytes.size()}, bytes);
    memory_->synchronize(StreamId{});
  }
}

TensorView SiteTensors::read(ElementType type, std::initializer_list<std::int64_t> extents, double low, double high) {
  const TensorView tensor = allocate(type, extents);
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) {
    count *= extent;
  }
  draw(tensor, 1, count, low, high);
  return tensor;
}

TensorView SiteTensors::weight(ElementType type, std::int64_t rows, std::int64_t columns) {
  const TensorView tensor = allocate(type, {rows, columns});
  const double most = std::sqrt(3.0 / static_cast<double>(columns));
  draw(tensor, rows, columns, -most, most);
  return tensor;
}

TensorView SiteTensors::integers(std::span<const std::int32_t> values, std::initializer_list<std::int64_t> extents) {
  const TensorView tensor = allocate(ElementType::int32, extents);
  upload(tensor, std::as_bytes(values));
  return tensor;
}

TensorView SiteTensors::floats(std::span<const float> values, std::initializer_list<std::int64_t> extents) {
  const TensorView tensor = allocate(ElementType::float32, extents);
  upload(tensor, std::as_bytes(values));
  return tensor;
}

TensorView SiteTensors::changed(const char* name, ElementType type, std::initializer_list<std::int64_t> extents,
                                double low, double high) {
  return kept_as_changed(name, read(type, extents, low, high));
}

TensorView SiteTensors::changed(const char* name, std::span<const float> values,
                                std::initializer_list<std::int64_t> extents) {
  return kept_as_changed(name, floats(values, extents));
}

TensorView SiteTensors::kept_as_changed(const char* name, const TensorView& tensor) {
  Result result{name, tensor, std::vector<std::byte>(bytes_of(tensor)), {}};
  memory_->download({}, result.initial, span_of(tensor));
  memory_->synchronize(StreamId{});
  results_.push_back(std::move(result));
  return tensor;
}

TensorView SiteTensors::written(const char* name, std::initializer_list<std::int64_t> extents) {
  const TensorView tensor = allocate(ElementType::float32, extents);
  results_.push_back({name, tensor, {}, {}});
  return tensor;
}

TensorView SiteTensors::scratch(std::initializer_list<std::int64_t> extents) {
  scratch_.push_back(allocate(ElementType::float32, extents));
  return scratch_.back();
}

void SiteTensors::restore() {
  for (const Result& result : results_) {
    if (result.initial.empty()) {
      memory_->fill({}, span_of(result.tensor), kNotANumber);
    } else {
      memory_->upload({}, span_of(result.tensor), result.initial);
    }
  }
  for (const TensorView& tensor : scratch_) {
    memory_->fill({}, span_of(tensor), kNotANumber);
  }
  memory_->synchronize(StreamId{});
}

std::vector<double> SiteTensors::values_of(const TensorView& tensor) const {
  std::vector<std::byte> bytes(bytes_of(tensor));
  memory_->download({}, bytes, span_of(tensor));
  memory_->synchronize(StreamId{});
  return widen(tensor.type, bytes);
}

void SiteTensors::keep_results() {
  for (Result& result : results_) {
    result.kept = values_of(result.tensor);
  }
}

SiteTensors::Difference SiteTensors::difference() const {
  Difference found;
  for (const Result& result : results_) {
    const std::vector<double> values = values_of(result.tensor);
    double largest = 0;
    for (const double value : result.kept) {
      largest = std::max(largest, std::abs(value));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = std::abs(values[i] - result.kept[i]) / std::max(largest, 1e-30);
      if (!(error <= found.error)) {  // what is not a number is the largest
        found.error = error;
        found.is_number = !std::isnan(error);
        found.where = fmt::format("{}[{}]: {:.6g} instead of {:.6g}", result.name, i, values[i], result.kept[i]);
        if (!found.is_number) {
          return found;
        }
      }
    }
  }
  return found;
}

}  // namespace pascaline
