#include "runtime/cpu/floats.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "runtime/cpu/packed_kernels.hpp"

namespace pascaline::cpu {
namespace {

constexpr std::size_t kCacheLine = 64;

struct FreeMemory {
  void operator()(float* memory) const noexcept { std::free(memory); }
};

struct Region {
  std::unique_ptr<float, FreeMemory> memory;
  std::int64_t count = 0;
};

}  // namespace

float* scratch(Scratch region, std::int64_t count) {
  thread_local std::array<Region, static_cast<std::size_t>(Scratch::kCount)> regions;
  Region& of = regions[static_cast<std::size_t>(region)];
  if (of.count < count) {
    const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(float) + kCacheLine) / kCacheLine * kCacheLine;
    of.count = 0;
    of.memory.reset();
    of.memory.reset(static_cast<float*>(std::aligned_alloc(kCacheLine, bytes)));
    if (!of.memory) {
      throw std::bad_alloc();
    }
    of.count = count;
  }
  return of.memory.get();
}

void* element_at(const TensorView& tensor, std::int64_t index) {
  const std::int64_t head = tensor.type == ElementType::float16x ? layout_of(tensor.type).head_bytes : 0;
  return static_cast<std::byte*>(tensor.data) + head + index * static_cast<std::int64_t>(size_of(tensor.type));
}

const float* floats_at(const TensorView& tensor, std::int64_t first, std::int64_t count, float* room) {
  if (tensor.type == ElementType::float32) {
    return static_cast<const float*>(tensor.data) + first;
  }
  widen_to(tensor, first, count, room);
  return room;
}

void widen_to(const TensorView& tensor, std::int64_t first, std::int64_t count, float* room) {
  if (tensor.type == ElementType::float16x) {
    const auto* const codes = static_cast<const Code16x*>(element_at(tensor, first));
    vector_kernels().float16x.widen(float16x_header(tensor.data), codes, room, count);
    return;
  }
  with_elements(tensor, first, [&](const auto* from, const auto& kernels) { kernels.widen(from, room, count); });
}

const float* row_floats(const TensorView& matrix, std::int64_t row, float* room) {
  const std::int64_t width = matrix.shape[1];
  if (is_packed_format(matrix.type)) {
    packed_kernels().widen(matrix, {row, 1, 0, width}, {room, width});
    return room;
  }
  return floats_at(matrix, row * width, width, room);
}

void store_floats(const float* values, const TensorView& tensor, std::int64_t first, std::int64_t count) {
  if (tensor.type == ElementType::float32) {
    std::copy_n(values, count, static_cast<float*>(tensor.data) + first);
    return;
  }
  with_elements(tensor, first, [&](auto* to, const auto& kernels) { kernels.narrow(values, to, count); });
}

}  // namespace pascaline::cpu
