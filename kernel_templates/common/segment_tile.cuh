#pragma once

// Rows in segments of any length, cut into tiles of ROWS that do not cross from one segment to the next. There are at
// most ceil(rows / ROWS) + segments - 1 tiles, whatever the lengths: as many blocks serve them all.

struct SegmentTile {
  int first;  // row of the tile
  int begin;  // the segment's rows: first and
  int end;    // one past the last
};

// Tile number `tile` of the segments starts[s] … starts[s+1]-1; all zero if there are not so many. A warp's lanes look
// at a segment each; all of them must take part.
template <int ROWS>
__device__ __forceinline__ SegmentTile find_segment_tile(int tile, const int* __restrict__ starts, int segments) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int base = 0; base < segments; base += 32) {
    const bool exists = base + lane < segments;
    const int begin = exists ? starts[base + lane] : 0;
    const int end = exists ? starts[base + lane + 1] : 0;
    const int tiles = (end - begin + ROWS - 1) / ROWS;
    int through = tiles;  // tiles of the segments up to this lane's
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, through, distance);
      through += lane >= distance ? other : 0;
    }
    const unsigned int found = __ballot_sync(0xffffffffu, tile < through);
    if (found != 0) {
      const int source = __ffs(static_cast<int>(found)) - 1;
      const int first = __shfl_sync(0xffffffffu, begin, source);
      const int last = __shfl_sync(0xffffffffu, end, source);
      const int before = __shfl_sync(0xffffffffu, through - tiles, source);
      return {first + (tile - before) * ROWS, first, last};
    }
    tile -= __shfl_sync(0xffffffffu, through, 31);
  }
  return {0, 0, 0};
}
