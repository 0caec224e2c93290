#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/problem.hpp"
#include "runtime/formats/block_format.hpp"

namespace pascaline {

// A matrix in a packed format is held in one of two forms (docs/formats.md). In a file each row lies by itself, in
// blocks. In memory it is packed for wide loads: 32 rows side by side, 16 bytes of each in turn, so that 32
// neighbouring threads read 512 bytes together. Packing moves bits and loses none.

/// Bytes of a row in a file, its last block filled up; of float16x its codes. Throws Error if the type is no format of
/// matrices.
[[nodiscard]] std::size_t file_row_bytes(ElementType format, std::int64_t columns);

/// Values of a row of that many that share a scale of their own in a file: of a block, a group, or the whole row.
[[nodiscard]] std::size_t file_block_values(ElementType format, std::size_t columns);

/// Quantizes a row to a packed format; where the last block is longer than the row, as if zeros followed. `row` has
/// `file_row_bytes`. Stops at the first block that cannot be held.
[[nodiscard]] std::optional<UnfitBlock> quantize_row(ElementType format, std::span<const float> values,
                                                     std::span<std::byte> row);

/// The row's values, as many as `values` holds, as docs/formats.md defines them.
void dequantize_row(ElementType format, std::span<const std::byte> row, std::span<float> values);

/// Writes a row to place `index`, from 0 to 31, of a packed group of 32 rows; `group` has
/// `layout_of(format).group_bytes(columns)` bytes, of which those of no row should be zeros before.
void pack_row(ElementType format, std::span<const std::byte> row, std::int64_t columns, std::int64_t index,
              std::span<std::byte> group);

/// The inverse of `pack_row`.
void unpack_row(ElementType format, std::span<const std::byte> group, std::int64_t columns, std::int64_t index,
                std::span<std::byte> row);

/// Values of a matrix [rows, columns] as it is in memory, row by row, or of elements by themselves.
[[nodiscard]] std::vector<double> widen_matrix(ElementType type, std::span<const std::byte> bytes, std::int64_t rows,
                                               std::int64_t columns);

/// Bytes of a row that lie together in its packed group, at most 16, in numbers of the group's first chunk.
struct PackedPiece {
  std::size_t at = 0;        ///< of the group's first row
  std::size_t row_step = 0;  ///< from one row to the next
  std::size_t bytes = 0;
  /// The block that the bytes belong to; for int8_row their first column; kNoPlace for zeros that fill up.
  std::size_t place = 0;

  static constexpr std::size_t kNoPlace = std::numeric_limits<int>::max();
};

/// Where packing puts the bytes of a row's chunk: all of them, but for what a group has once at its end.
struct PackedPieces {
  std::vector<PackedPiece> pieces;
  PackedPiece scales;  ///< of the first block; 0 bytes if blocks have none
  std::size_t scale_block_step = 0;
};
[[nodiscard]] PackedPieces packed_pieces(ElementType format);

}  // namespace pascaline
