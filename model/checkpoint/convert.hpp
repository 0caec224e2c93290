#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/problem.hpp"
#include "model/checkpoint/hf/safetensors.hpp"

namespace pascaline {

/// How float16 is converted: by plain loops, or by the processor's F16C instructions.
enum class HalfPath : std::uint8_t { portable, f16c };

/// The faster one that this processor has.
[[nodiscard]] HalfPath best_half_path() noexcept;

/// A weight that cannot be converted.
struct UnfitWeight {
  std::size_t index = 0;  ///< element, from the first one converted
  float value = 0;        ///< what is stored: NaN, an infinity, or a number beyond the range of the type asked for
};

/// Converts `out.size() / size_of(to)` weights, F32, F16 or BF16 in `in`, to float32, float16 or bfloat16: nearest,
/// ties to even, subnormals kept. Neither side need be aligned. Stops at the first block with a weight that is not
/// finite, or would not be, and gives the first such weight. Throws Error for other types or unequal counts.
[[nodiscard]] std::optional<UnfitWeight> convert_weights(StoredType from, std::span<const std::byte> in, ElementType to,
                                                         std::span<std::byte> out, HalfPath path = best_half_path());

/// Converts the elements of a tensor from `first` on, as many as `out` holds, on all processors. Throws ModelError that
/// names tensor and element for a weight that cannot be converted, Error for a range outside the tensor.
void read_weights(const StoredTensor& tensor, std::int64_t first, ElementType to, std::span<std::byte> out);

}  // namespace pascaline
