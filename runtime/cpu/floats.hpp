#pragma once

#include <cstdint>

#include "runtime/cpu/vector_kernels.hpp"
#include "runtime/ops/tensor.hpp"

namespace pascaline::cpu {

/// Memory of a thread that is kept from one operation to the next: one region for each purpose, so that those of one
/// operation are apart.
enum class Scratch : std::uint8_t { first, second, third, fourth, fifth, shared, shared_too, kCount };

/// At least `count` floats, aligned to 64 bytes, of this thread; what they hold is anything. Valid until the next call
/// of this thread for the same region. Throws std::bad_alloc.
[[nodiscard]] float* scratch(Scratch region, std::int64_t count);

/// Address of element `index`, after the header that a matrix of float16x has.
[[nodiscard]] void* element_at(const TensorView& tensor, std::int64_t index);
/// `count` elements from `first` on as float32: where they lie, or widened into `room`. Of the three real types,
/// float16x and int8.
[[nodiscard]] const float* floats_at(const TensorView& tensor, std::int64_t first, std::int64_t count, float* room);
/// The same into `room` in any case.
void widen_to(const TensorView& tensor, std::int64_t first, std::int64_t count, float* room);
/// A row of a matrix as float32: where it lies, or widened into `room`. Of the three real types and formats of
/// matrices.
[[nodiscard]] const float* row_floats(const TensorView& matrix, std::int64_t row, float* room);
/// Writes `count` values to the elements from `first` on, rounded to the tensor's type; for int8 they are at most 127
/// in magnitude.
void store_floats(const float* values, const TensorView& tensor, std::int64_t first, std::int64_t count);

/// Calls `use` with the elements from `first` on and the inner loops for their type, not float16x.
template <typename Use>
void with_elements(const TensorView& tensor, std::int64_t first, const Use& use) {
  const VectorKernels& kernels = vector_kernels();
  void* const data = element_at(tensor, first);
  switch (tensor.type) {
    case ElementType::float16:
      return use(static_cast<Half*>(data), kernels.float16);
    case ElementType::bfloat16:
      return use(static_cast<Bfloat*>(data), kernels.bfloat16);
    case ElementType::int8:
      return use(static_cast<std::int8_t*>(data), kernels.int8);
    default:
      return use(static_cast<float*>(data), kernels.float32);
  }
}

}  // namespace pascaline::cpu
