#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "core/problem.hpp"
#include "model/checkpoint/hf/folder_codings.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/weight_table.hpp"
#include "runtime/formats/float16x.hpp"

namespace pascaline {

/// A format of matrices; of float16x with exponent width and bias.
struct StoredFormat {
  ElementType type{};
  Float16x float16x = {};
  friend bool operator==(const StoredFormat&, const StoredFormat&) = default;
};

/// Notes on the matrices of a model that are stored in formats of matrices, kept as a safetensors file's metadata
/// (docs/formats.md).
class FormatNotes {
 public:
  /// Of a file to be written with that recipe's matrices.
  explicit FormatNotes(const std::string& recipe);
  /// Notes that the model keeps a matrix of that shape in that format.
  void add(const std::string& tensor, ElementType format, std::span<const std::int64_t> shape);
  /// Likewise of one that is stored in float16x.
  void add(const std::string& tensor, Float16x format, std::span<const std::int64_t> shape);
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }

  /// Whether a file has such notes. Throws ModelError if they are of another version, or of a tensor that it has not.
  [[nodiscard]] static bool are_in(const Safetensors& file);
  /// The name of the recipe that the file was made with; empty if it does not say.
  [[nodiscard]] static std::string recipe_of(const Safetensors& file);
  /// The format that the file notes for a tensor, or nothing. Throws ModelError, with file and tensor, for one that is
  /// not known, of something that is no matrix, or for another shape than the model's; if the tensor is of U8 but not
  /// as many rows of as many bytes as the format needs; and of float16x without exponent width and bias in their
  /// ranges.
  [[nodiscard]] static std::optional<StoredFormat> format_of(const Safetensors& file, const StoredTensor& tensor,
                                                             const TensorSpec& spec);

 private:
  std::map<std::string, std::string> metadata_;
};

/// Where the rows of a matrix are stored. GGUF files of some models have the rows of each head of queries and keys in
/// another order: those of the two halves, which rotary embedding turns together, in turn.
struct RowOrder {
  std::int64_t head_rows = 0;  ///< of a head; 0 where rows are stored in their order

  [[nodiscard]] std::int64_t place_of(std::int64_t row) const noexcept {
    if (head_rows == 0) {
      return row;
    }
    const std::int64_t inside = row % head_rows;
    const std::int64_t half = head_rows / 2;
    return row - inside + inside % half * 2 + inside / half;
  }
  /// The row that is stored at that place.
  [[nodiscard]] std::int64_t row_at(std::int64_t place) const noexcept {
    if (head_rows == 0) {
      return place;
    }
    const std::int64_t inside = place % head_rows;
    return place - inside + inside % 2 * (head_rows / 2) + inside / 2;
  }
};

/// How the bytes of a stored row are to be read: in a format of matrices, or as one that no matrix is kept in.
enum class RowCoding : std::uint8_t {
  format,
  fp8,  ///< codes whose scales stand in another tensor
  awq   ///< int4_g128 out of three tensors, transposed
};

/// A matrix in its file form: rows of `columns` values each.
struct StoredMatrix {
  const StoredTensor* tensor = nullptr;
  StoredFormat format;
  std::int64_t columns = 0;
  RowOrder order = {};
  RowCoding coding = RowCoding::format;
  MatrixParts parts = {};  ///< of fp8 and awq
};

/// Writes a row of a matrix in a format of matrices in its file form.
void read_file_row(const StoredMatrix& matrix, std::int64_t row, std::span<std::byte> out);

/// Writes elements from `first` on, as many as `out` holds, as float32, float16 or bfloat16. Throws as `read_weights`.
void read_matrix(const StoredMatrix& matrix, std::int64_t first, ElementType to, std::span<std::byte> out);

}  // namespace pascaline
