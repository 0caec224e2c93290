#pragma once

// Rows of an embedding table, of plain elements or in a packed format: what `gather` and `sample_next` share.

#include "formats.cuh"
#include "matrix.cuh"
#include "row.cuh"

// What a table is given as: elements, or the bytes of a format.
template <typename T, bool PACKED = is_packed<T>()>
struct TableOf {
  using Type = T;
};
template <typename T>
struct TableOf<T, true> {
  using Type = unsigned char;
};

// The N values of a row that begin at `column`; those at or behind `end` read as zeros. ALIGNED as for load_floats.
template <typename Format, bool ALIGNED, int N>
__device__ __forceinline__ void load_table_row(float (&value)[N], const typename TableOf<Format>::Type* table, int row,
                                               int column, int end, int width) {
  if constexpr (is_packed<Format>()) {
    const long long group_bytes = packed_group_bytes<Format>(width);
    const unsigned char* group = table + row / kPackedRows * group_bytes;
#pragma unroll
    for (int v = 0; v < N; ++v) {
      value[v] = column + v < end ? packed_value<Format>(group, group_bytes, row % kPackedRows, column + v) : 0.0f;
    }
  } else {
    const Matrix<Format> matrix(table);
    load_floats<ALIGNED>(value, matrix.elements + static_cast<long long>(row) * width, column, end, 0.0f, matrix);
  }
}

#ifdef PASCALINE_REFERENCE

template <typename Format>
__device__ float element_of(const unsigned char* table, int row, int column, int width) {
  const long long group_bytes = packed_group_bytes<Format>(width);
  return packed_value<Format>(table + row / kPackedRows * group_bytes, group_bytes, row % kPackedRows, column);
}
template <typename Format>
__device__ float element_of(const Format* table, int row, int column, int width) {
  const Matrix<Format> matrix(table);
  return matrix(matrix.elements[static_cast<long long>(row) * width + column]);
}

#endif
