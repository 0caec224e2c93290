#pragma once

// The keys that some neighbouring queries see under a block-sparse mask, numbered 0, 1, … in ascending order of their
// rows of the cache: what attention_sparse_prefill and attention_sparse_decode share. Work is by these numbers, so that
// a tile of keys is full however small the mask's blocks are.
//
// A pattern needs no list: query at position p sees key j ≤ p if p - j < window, or j < sinks, or, with stride > 0, if
// j lies in a block whose number is a multiple of it. A list names blocks of keys in ascending order; it ends before
// the first entry that is negative or behind the queries, and what it leaves out nobody sees.

// What every launch has the same. Blocks are of 2 to the power of `block_log2` keys.
struct SparseMask {
  int window;
  int sinks;
  int stride;
  int block_log2;
  int width;  // entries of a list, counted or not
};

template <bool BY_LIST>
struct SparseKeys {
  SparseMask mask;
  const int* list;  // of the queries, with BY_LIST
  int count;        // of keys that any of the queries sees
  int sinks;        // of them: the first keys of the cache
  int window;       // number of the window's first key, after sinks and strided blocks
  int window_row;   // its row
  int first_block;  // of the strided ones
  int full;         // numbers from `window` on up to here may not be seen by the last query any more
  int open;         // numbers from here on may be beyond the first query

  // Of the queries at positions `first` … `last`. With BY_LIST all threads of a warp must take part.
  __device__ __forceinline__ SparseKeys(const SparseMask& of, const int* entries, int first, int last)
      : mask(of), list(entries), sinks(0), window(0), window_row(0), first_block(0), full(0) {
    const int block = 1 << mask.block_log2;
    if constexpr (BY_LIST) {
      const int entry_count = count_entries(last);
      const int behind = entry_count > 0 ? last + 1 - (list[entry_count - 1] << mask.block_log2) : 0;
      count = (entry_count - 1) * block + (behind < block ? behind : block);
      count = entry_count > 0 ? count : 0;
      // Tiles are no higher than a block, so that only the last two blocks of a list can be beyond the first query.
      open = entry_count > 2 ? (entry_count - 2) * block : 0;
    } else {
      window_row = first - mask.window + 1 > 0 ? first - mask.window + 1 : 0;
      // From the beginning of a strided block on, of which the window takes in the end: so all that a single query is
      // given counts.
      if (mask.stride > 0 && (window_row >> mask.block_log2) % mask.stride == 0) {
        window_row &= ~(block - 1);
      }
      sinks = mask.sinks < window_row ? mask.sinks : window_row;
      int strided = 0;
      if (mask.stride > 0) {
        first_block = ((sinks >> mask.block_log2) + mask.stride - 1) / mask.stride * mask.stride;
        const int blocks = (window_row >> mask.block_log2) - first_block;
        strided = blocks > 0 ? (blocks + mask.stride - 1) / mask.stride : 0;
      }
      window = sinks + (strided << mask.block_log2);
      count = window + last + 1 - window_row;
      const int seen_by_all = last - mask.window + 1;
      full = window + (seen_by_all > window_row ? seen_by_all - window_row : 0);
      open = window + first + 1 - window_row;
    }
  }

  // Whether some of the queries may not see some of the keys `first` … `last`.
  __device__ __forceinline__ bool is_partial(int first, int last) const {
    return last >= open || (!BY_LIST && last >= window && first < full);
  }

  // The row of key `number`; beyond the last one, of the last one. `keys` rows are there, one at least.
  __device__ __forceinline__ int row_of(int number, int keys) const {
    number = number < count ? number : count - 1;
    number = number > 0 ? number : 0;
    int row = 0;
    if constexpr (BY_LIST) {
      const int entry = number >> mask.block_log2;
      row = count > 0 ? (list[entry] << mask.block_log2) + (number & ((1 << mask.block_log2) - 1)) : 0;
    } else if (number < sinks) {
      row = number;
    } else if (number < window) {
      const int beyond = number - sinks;
      const int chosen = first_block + (beyond >> mask.block_log2) * mask.stride;
      row = (chosen << mask.block_log2) + (beyond & ((1 << mask.block_log2) - 1));
    } else {
      row = number - window + window_row;
    }
    row = row < keys ? row : keys - 1;
    return row > 0 ? row : 0;
  }

  // A query at position p sees key `number`, which is row `row`, if 0 ≤ p - row < reach_of.
  __device__ __forceinline__ unsigned int reach_of(int number, int row) const {
    constexpr unsigned int kAll = 0x80000000u;
    if (number >= count) {
      return 0;
    }
    if (BY_LIST || row < mask.sinks) {
      return kAll;
    }
    if (mask.stride > 0 && (row >> mask.block_log2) % mask.stride == 0) {
      return kAll;
    }
    return static_cast<unsigned int>(mask.window);
  }

 private:
  // How many entries the list has that name blocks up to position `last`.
  __device__ __forceinline__ int count_entries(int last) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int entries = 0;
    for (int first = 0; first < mask.width; first += 32) {
      const int entry = first + lane < mask.width ? list[first + lane] : -1;
      const unsigned int ends = ~__ballot_sync(0xffffffffu, entry >= 0 && entry <= last >> mask.block_log2);
      if (ends != 0) {
        return entries + __ffs(static_cast<int>(ends)) - 1;
      }
      entries += 32;
    }
    return entries;
  }
};
