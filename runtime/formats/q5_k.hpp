#pragma once

#include <cstddef>
#include <span>

namespace pascaline {

// ggml's format of 5 bits is read, but no matrix is kept in it (docs/formats.md).

/// Bytes of so many values, a multiple of 256.
[[nodiscard]] std::size_t q5_k_bytes(std::size_t values) noexcept;

/// The float32 values of whole blocks, bit for bit those of ggml. `bytes` need not be aligned. Throws Error unless
/// `values` is as long as they are.
void dequantize_q5_k(std::span<const std::byte> bytes, std::span<float> values);

}  // namespace pascaline
