#pragma once

// A tile of a matrix [m, n]. Tiles go down GROUP rows before they go to the next column of tiles.
template <int BLOCK_ROWS, int BLOCK_COLUMNS, int GROUP>
struct TileOf {
  int first_row;
  int first_column;
  __device__ __forceinline__ TileOf(int index, int m, int n) {
    const int tiles_m = (m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const int tiles_n = (n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    const int group = index / (GROUP * tiles_n);
    const int within = index - group * (GROUP * tiles_n);
    const int left = tiles_m - group * GROUP;
    const int height = left < GROUP ? left : GROUP;
    first_row = (group * GROUP + within % height) * BLOCK_ROWS;
    first_column = within / height * BLOCK_COLUMNS;
  }
};

// How the slices of all tiles, tile after tile, are dealt to `blocks` blocks: each has a run of them.
struct Deal {
  long long slices;
  long long blocks;
  __device__ __forceinline__ long long start_of(long long block) const { return slices * block / blocks; }
  __device__ __forceinline__ int block_of(long long slice) const {
    return static_cast<int>(((slice + 1) * blocks - 1) / slices);
  }
};

// Where partial sums of a tile lie in the workspace, which is divided into places of a whole tile.
// A block works on two tiles in part at most, its first and its last.
struct DealtParts {
  static constexpr int kBatch = 4;
  int tile;
  long long first_slice;
  int first_block;
  int last_block;
  Deal deal;
  __device__ __forceinline__ DealtParts(int index, int slices, Deal dealt)
      : tile(index),
        first_slice(static_cast<long long>(index) * slices),
        first_block(dealt.block_of(first_slice)),
        last_block(dealt.block_of(first_slice + slices - 1)),
        deal(dealt) {}
  __device__ __forceinline__ int place_of(int block) const {
    return 2 * block + (deal.start_of(block) < first_slice ? 1 : 0);
  }
  __device__ __forceinline__ int count() const { return last_block - first_block + 1; }
  __device__ __forceinline__ int own() const { return place_of(static_cast<int>(blockIdx.x)); }
  __device__ __forceinline__ int at(int part) const { return place_of(first_block + part); }
};
