#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pascaline {

/// Element types of buffers and scalars that kernels take; from `float16x` on, formats of whole matrices, whose values
/// share scales, or an exponent width and a bias (docs/formats.md), the most accurate first.
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
  int16,
  uint16,
  uint64,
  boolean,
  float16x,
  q8_0,
  int8_row,
  q6_k,
  q5_k,
  q5_1,
  q5_0,
  q4_k,
  iq4_nl,
  iq4_xs,
  q4_1,
  q4_0,
  int4_g128,
  mxfp4,
  q3_k,
  q2_k,
};

/// How a matrix lies in memory: `head_bytes` that the matrix has once, then its groups: `group_rows` rows together, in
/// chunks of `chunk_columns` columns of all these rows, then `tail_bytes` that the group has once. What a matrix lacks
/// of a last group or chunk is there, too. For plain element types and float16x a group is a row and a chunk an
/// element.
struct MatrixLayout {
  std::int64_t group_rows = 1;
  std::int64_t chunk_columns = 1;
  std::int64_t chunk_bytes = 1;
  std::int64_t tail_bytes = 0;
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

/// Describes an element type, and a format of matrices but for the arithmetic of its blocks (`blocks::Block` in files,
/// `Packed` on a device, `cpu::PackedForm` on the processor).
struct FormatTraits {
  /// A block of a row in a file, with its scales, float16 but for `exponent_reach`. int8_row has blocks of one value
  /// and a scale after the row.
  struct Block {
    std::size_t values = 0;
    std::size_t bytes = 0;
    std::size_t scales_at = 0;      ///< byte of the first scale; others follow it
    std::array<double, 2> reach{};  ///< of each scale there is: about the largest value of a block over it
    double exponent_reach = 0;      ///< the same of a scale that is a power of two in one byte
    [[nodiscard]] constexpr std::size_t scales() const noexcept {
      return static_cast<std::size_t>(reach[0] != 0) + static_cast<std::size_t>(reach[1] != 0);
    }
  };
  /// Numbers of ggml for the same blocks, and of llama.cpp for a file that consists of them.
  struct Gguf {
    std::uint32_t type = 0;
    std::uint32_t file_type = 0;
  };
  /// The mix of types that is named after a format, which the layers have in it.
  struct Recipe {
    std::string_view name;
    ElementType embedding{};  ///< and head; the vision tower is in q8_0
  };

  ElementType type{};
  std::string_view name;
  std::size_t bits = 0;  ///< of an element, scales not counted
  MatrixLayout layout = {};
  Block block = {};    ///< of packed formats
  Gguf gguf = {};      ///< of type 0, that of F32, where ggml has no such blocks
  Recipe recipe = {};  ///< of formats of matrices
};

namespace layouts {
inline constexpr std::int64_t kRows = 32;          // of a group
inline constexpr std::int64_t kUnit = 16 * kRows;  // 16 bytes of each row

constexpr MatrixLayout plain(std::int64_t bytes) noexcept { return {1, 1, bytes, 0, 0}; }
constexpr MatrixLayout packed(std::int64_t columns, std::int64_t units, std::int64_t header_bytes,
                              std::int64_t tail_bytes = 0) noexcept {
  return {kRows, columns, units * kUnit + header_bytes * kRows, tail_bytes * kRows, 0};
}
}  // namespace layouts

/// All element types, in the order of the enumeration. What a format adds elsewhere is in CONTRIBUTING.md.
inline constexpr auto kElementTypes = [] {
  using enum ElementType;
  return std::to_array<FormatTraits>({
      {float32, "float32", 32, layouts::plain(4)},
      {float16, "float16", 16, layouts::plain(2)},
      {bfloat16, "bfloat16", 16, layouts::plain(2)},
      {float64, "float64", 64, layouts::plain(8)},
      {int32, "int32", 32, layouts::plain(4)},
      {int64, "int64", 64, layouts::plain(8)},
      {uint32, "uint32", 32, layouts::plain(4)},
      {int8, "int8", 8, layouts::plain(1)},
      {uint8, "uint8", 8, layouts::plain(1)},
      {int16, "int16", 16, layouts::plain(2)},
      {uint16, "uint16", 16, layouts::plain(2)},
      {uint64, "uint64", 64, layouts::plain(8)},
      {boolean, "bool", 8, layouts::plain(1)},
      // Its head is a cache line of a GPU, so that rows lie in lines as without it.
      {float16x, "float16x", 16, {1, 1, 2, 0, 128}, {}, {}, {"float16x", float16x}},
      {q8_0, "q8_0", 8, layouts::packed(64, 4, 4), {32, 34, 0, {127}}, {8, 7}, {"q8_0", q8_0}},
      {int8_row, "int8_row", 8, layouts::packed(64, 4, 0, 4), {1, 1}, {}, {"int8", q8_0}},
      {q6_k, "q6_k", 6, layouts::packed(256, 13, 2), {256, 210, 208, {128 * 32}}, {14, 18}, {"q6_k", q6_k}},
      {q5_k, "q5_k", 5, layouts::packed(256, 9, 32), {256, 176, 0, {15.5 * 63, 63}}, {13, 17}, {"q5_k", q6_k}},
      {q5_1, "q5_1", 5, layouts::packed(64, 2, 16), {32, 24, 0, {15.5, -1}}, {7, 9}, {"q5_1", q8_0}},
      {q5_0, "q5_0", 5, layouts::packed(64, 2, 12), {32, 22, 0, {16}}, {6, 8}, {"q5_0", q8_0}},
      {q4_k, "q4_k", 4, layouts::packed(256, 9, 0), {256, 144, 0, {7.5 * 63, 63}}, {12, 15}, {"q4_k", q6_k}},
      {iq4_nl, "iq4_nl", 4, layouts::packed(64, 2, 4), {32, 18, 0, {127}}, {20, 25}, {"iq4_nl", q8_0}},
      {iq4_xs, "iq4_xs", 4, layouts::packed(256, 8, 8), {256, 136, 0, {127 * 32}}, {23, 30}, {"iq4_xs", q6_k}},
      {q4_1, "q4_1", 4, layouts::packed(64, 2, 8), {32, 20, 0, {7.5, -1}}, {3, 3}, {"q4_1", q8_0}},
      {q4_0, "q4_0", 4, layouts::packed(64, 2, 4), {32, 18, 0, {8}}, {2, 2}, {"q4_0", q8_0}},
      {int4_g128, "int4_g128", 4, layouts::packed(128, 4, 4), {128, 68, 64, {8}}, {}, {"int4", q8_0}},
      {mxfp4, "mxfp4", 4, layouts::packed(64, 2, 2), {32, 17, 0, {}, 12}, {39, 38}, {"mxfp4", q8_0}},
      {q3_k, "q3_k", 3, layouts::packed(256, 7, 0), {256, 110, 108, {32 * 4}}, {11, 12}, {"q3_k", q6_k}},
      {q2_k, "q2_k", 2, layouts::packed(256, 5, 4), {256, 84, 80, {1.5 * 15, 15}}, {10, 10}, {"q2_k", q6_k}},
  });
}();

/// Tells whether the value is one of those above.
[[nodiscard]] constexpr bool is_element_type(ElementType type) noexcept {
  return static_cast<std::size_t>(type) < kElementTypes.size();
}
/// Tells whether it is a format of matrices: the meaning of its bytes is kept with the matrix, so that elements by
/// themselves have no value.
[[nodiscard]] constexpr bool is_matrix_format(ElementType type) noexcept {
  return is_element_type(type) && type >= ElementType::float16x;
}
/// Tells whether it is a format of matrices whose values share scales and are packed (docs/formats.md), so that none
/// has an address of its own: all but float16x, whose values lie row by row after a header.
[[nodiscard]] constexpr bool is_packed_format(ElementType type) noexcept {
  return is_element_type(type) && type > ElementType::float16x;
}
/// The formats of matrices, and those of them that are packed.
[[nodiscard]] constexpr std::span<const FormatTraits> matrix_formats() noexcept {
  return std::span(kElementTypes).subspan(static_cast<std::size_t>(ElementType::float16x));
}
[[nodiscard]] constexpr std::span<const FormatTraits> packed_formats() noexcept { return matrix_formats().subspan(1); }
/// Names of types, separated by commas.
[[nodiscard]] std::string names_of(std::span<const FormatTraits> types);

/// Throws Error for any other value.
[[nodiscard]] const FormatTraits& traits_of(ElementType type);
/// Calls `use.template operator()<type>()` with a packed format as a constant; all results have one type.
template <std::size_t index = static_cast<std::size_t>(ElementType::float16x) + 1, typename Use>
decltype(auto) with_packed_format(ElementType type, const Use& use) {
  if constexpr (index + 1 < kElementTypes.size()) {
    if (type != kElementTypes[index].type) {
      return with_packed_format<index + 1>(type, use);
    }
  }
  return use.template operator()<kElementTypes[index].type>();
}

/// Size of one element in bits, scales not counted; throws as `traits_of`.
[[nodiscard]] std::size_t bits_of(ElementType type);
/// Size of one element in bytes; throws as `traits_of`, and Error for a packed format.
[[nodiscard]] std::size_t size_of(ElementType type);
/// Bytes that `count` elements of so many bits take without gaps between them; the last byte may be filled in part.
[[nodiscard]] constexpr std::size_t packed_bytes(std::size_t bits, std::size_t count) noexcept {
  // By eights, whose bytes are as many as an element has bits, so that no sum of bits overflows.
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}
/// The same of elements of that type; throws as `traits_of`, and Error for a format of matrices.
[[nodiscard]] std::size_t bytes_of(ElementType type, std::size_t count);
/// Throws as `traits_of`.
[[nodiscard]] MatrixLayout layout_of(ElementType type);
/// The field's name of the type (`float32`, `float16`, …); throws as `traits_of`.
[[nodiscard]] std::string_view name_of(ElementType type);
/// The type of that name, or nothing.
[[nodiscard]] std::optional<ElementType> element_type_from(std::string_view name) noexcept;

}  // namespace pascaline
