#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/checkpoint/hf/quantization_config.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {

// Matrices [rows, columns] as other programs' quantizers store them in safetensors files (docs/formats.md).

/// Number of an E4M3 code: a sign, 4 bits of exponent with bias 7, 3 of fraction; no infinities, and NaN for 0x7F and
/// 0xFF alone.
[[nodiscard]] float float_of_e4m3(std::uint8_t code) noexcept;

/// A matrix of E4M3 codes with scales [⌈rows / 128⌉, ⌈columns / 128⌉] of F32, F16 or BF16; a value is code · scale.
struct Fp8Matrix {
  std::span<const std::byte> codes;
  const StoredTensor* scales = nullptr;
};

/// A row's values in float32, exact for scales of BF16 and F16.
void read_fp8_row(const Fp8Matrix& matrix, std::int64_t row, std::span<float> values);

/// A matrix as AWQ's GEMM kernel takes it: transposed, eight outputs in an int32.
struct AwqMatrix {
  const StoredTensor* codes = nullptr;   ///< qweight, I32 [columns, rows / 8]
  const StoredTensor* zeros = nullptr;   ///< qzeros, I32 [columns / 128, rows / 8]
  const StoredTensor* scales = nullptr;  ///< F16 [columns / 128, rows]
};

/// Writes a row in the file form of int4_g128, bit for bit.
void read_awq_row(const AwqMatrix& matrix, std::int64_t row, std::span<std::byte> out);

/// What a tensor of a folder that was quantized in that way is of a matrix.
enum class MatrixPart : std::uint8_t { codes, scales, zeros };

/// A tensor as a part of a matrix.
struct PartOfMatrix {
  std::string matrix;  ///< the name that the whole matrix would have in this file
  MatrixPart part{};
};

/// Nothing of a tensor that stands for itself.
[[nodiscard]] std::optional<PartOfMatrix> part_of_matrix(const StoredTensor& tensor, FolderQuantization quantization);

/// The tensors of a quantized matrix; null where none was found.
struct MatrixParts {
  const StoredTensor* codes = nullptr;
  const StoredTensor* scales = nullptr;
  const StoredTensor* zeros = nullptr;  ///< of AWQ

  [[nodiscard]] const StoredTensor*& of(MatrixPart part) noexcept {
    return part == MatrixPart::codes ? codes : part == MatrixPart::scales ? scales : zeros;
  }
};

/// What is wrong with the parts of the matrix `spec`, as one line that names the tensor; empty if nothing is.
[[nodiscard]] std::string fault_of_parts(const MatrixParts& parts, const TensorSpec& spec,
                                         FolderQuantization quantization);

}  // namespace pascaline
