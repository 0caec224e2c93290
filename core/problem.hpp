#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pascaline {

/// Element types of buffers and scalars that kernels take; after `uint8`, formats of whole matrices, whose values share
/// scales, or an exponent width and a bias (docs/formats.md).
enum class ElementType : std::uint8_t {
  float32,
  float16,
  bfloat16,
  float64,
  int32,
  int64,
  uint32,
  int8,
  uint8,
  q8_0,
  q4_0,
  q4_1,
  q4_k,
  q6_k,
  int8_row,
  int4_g128,
  float16x,
};

/// Whether the value is one of those above.
[[nodiscard]] bool is_element_type(ElementType type) noexcept;
/// Whether it is a format of matrices: what its bytes mean is kept with the matrix, so that elements by themselves are
/// no values.
[[nodiscard]] bool is_matrix_format(ElementType type) noexcept;
/// Whether it is a format of matrices whose values share scales and are packed (docs/formats.md), so that none has an
/// address of its own: all but float16x, whose values lie row by row after a header.
[[nodiscard]] bool is_packed_format(ElementType type) noexcept;
/// Size of one element in bits, scales not counted; throws Error for a value that is no element type.
[[nodiscard]] std::size_t bits_of(ElementType type);
/// Size of one element in bytes; throws as `bits_of`, and Error for a packed format.
[[nodiscard]] std::size_t size_of(ElementType type);
/// Bytes that `count` elements of so many bits take without gaps between them; the last byte may be filled in part.
[[nodiscard]] constexpr std::size_t packed_bytes(std::size_t bits, std::size_t count) noexcept {
  // By eights, whose bytes are as many as an element has bits, so that no sum of bits overflows.
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}
/// The same of elements of that type; throws as `bits_of`, and Error for a format of matrices.
[[nodiscard]] std::size_t bytes_of(ElementType type, std::size_t count);

/// How a matrix lies in memory: `head_bytes` that the matrix has once, then its groups: `group_rows` rows together, in
/// chunks of `chunk_columns` columns of all these rows, then `tail_bytes` that the group has once. What a matrix lacks
/// of a last group or chunk is there, too. For plain element types and float16x a group is a row and a chunk an
/// element.
struct MatrixLayout {
  std::int64_t group_rows;
  std::int64_t chunk_columns;
  std::int64_t chunk_bytes;
  std::int64_t tail_bytes;
  std::int64_t head_bytes = 0;

  [[nodiscard]] constexpr std::int64_t chunks(std::int64_t columns) const noexcept {
    return (columns + chunk_columns - 1) / chunk_columns;
  }
  [[nodiscard]] constexpr std::int64_t group_bytes(std::int64_t columns) const noexcept {
    return chunks(columns) * chunk_bytes + tail_bytes;
  }
  [[nodiscard]] constexpr std::int64_t bytes(std::int64_t rows, std::int64_t columns) const noexcept {
    return head_bytes + (rows + group_rows - 1) / group_rows * group_bytes(columns);
  }
};
/// Throws as `bits_of`.
[[nodiscard]] MatrixLayout layout_of(ElementType type);
/// The field's name of the type (`float32`, `float16`, …); throws as `bits_of`.
[[nodiscard]] std::string_view name_of(ElementType type);
/// The type of that name, or nothing.
[[nodiscard]] std::optional<ElementType> element_type_from(std::string_view name) noexcept;

/// What is to be computed: a kernel, the values of its dimensions and its element types.
/// It is the key a shape is stored and dispatched under.
struct Problem {
  std::string kernel;
  std::vector<std::pair<std::string, std::int64_t>> dimensions;  ///< in the space's order
  std::vector<std::pair<std::string, ElementType>> types;        ///< in the space's order

  /// The dimension's value; throws Error if there is none of that name.
  [[nodiscard]] std::int64_t dimension(std::string_view name) const;
  /// The type bound to that type variable; throws Error if there is none of that name.
  [[nodiscard]] ElementType type(std::string_view name) const;
  /// Canonical text `matmul M=512 N=2048 K=2048 STORAGE=float32`, names in the order held.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Problem&, const Problem&) = default;
};

}  // namespace pascaline
