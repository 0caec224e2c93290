#pragma once

// A block's work on a weight in a packed format: items of some of its rows, of which the first loads are on their way
// before the rows are there that they are multiplied by (common/packed_products.cuh). What the products of
// common/phase_products.cuh share.

#include "formats.cuh"
#include "packed_products.cuh"

// `C` as for PackedProducts, with kSteady: kPrefetch steps of BLOCKS are on their way all the time, not one at a time.
// Rows of T are multiplied by kItemRows of the weight's at a time; a segment of them is rounded into shared memory.
template <typename C, typename T>
struct PackedShare {
  using Products = PackedProducts<C>;
  using Weight = typename C::Weight;
  static constexpr int kM = C::kM;
  static constexpr int kLaneRows = Products::kLaneRows;
  static constexpr int kItemRows = Products::kBlockRows;
  static constexpr int kItemSums = kItemRows * kM;
  static constexpr bool kRowScales = Products::kRowScales;
  static constexpr int kSumBytes = 4 * Products::kWarpsK * kItemSums;  // of one item, before warps are added up

  const unsigned char* weight;
  int groups;
  long long group_bytes;
  int filled;  // columns, with what rows are filled up with
  const unsigned char* group;
  float of_row;   // its scale, where it has one
  int held = -1;  // the first column of the segment that shared memory has
  typename Products::Segment segment;
  typename Products::Ahead ahead;
  PackedActivations<Products, T> activations;

  __device__ __forceinline__ PackedShare(const unsigned char* matrix, int n, int k, char* memory, const T* a,
                                         const float* norm)
      : weight(matrix),
        groups((n + kPackedRows - 1) / kPackedRows),
        group_bytes(packed_group_bytes<Weight>(k)),
        filled((k + Products::Form::kColumns - 1) / Products::Form::kColumns * Products::Form::kColumns),
        segment{memory},
        activations(a, nullptr, norm, k) {}

  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp_row() { return warp() / C::kWarpsK * kLaneRows; }
  // Of the row's depth.
  static __device__ __forceinline__ int part() { return warp() % C::kWarpsK * C::kLanesK + lane() / kLaneRows; }
  __device__ __forceinline__ int row_of_group(int item) const {
    return (item * kItemRows + warp_row()) % kPackedRows + lane() % kLaneRows;
  }
  __device__ __forceinline__ int segment_end(int first) const {
    return filled - first < C::kSegment ? filled : first + C::kSegment;
  }

  // The first weights of an item begin their way.
  __device__ __forceinline__ void begin(int item) {
    const int wanted = (item * kItemRows + warp_row()) / kPackedRows;
    group = weight + (wanted < groups ? wanted : groups - 1) * group_bytes;
    ahead.load(group, row_of_group(item), part() * C::kBlocks, segment_end(0) / 32, filled / 32);
    if constexpr (kRowScales) {
      of_row = row_scale<Weight>(group, group_bytes, row_of_group(item));
    }
  }

  // Rounds the columns of the first segment into shared memory, which takes about as long as drawing an item does, and
  // where that is all leaves their squares; says whether it is. All threads must take part, and a barrier lie between
  // this and the first product.
  template <typename Squares>
  __device__ __forceinline__ bool prepare(Squares& squares) {
    if constexpr (kRowScales) {
      activations.measure_rows();
    }
    fill(0);
    const bool all = filled <= C::kSegment;
    if (all) {
      activations.leave_squares(squares);
    }
    return all;
  }

  // Rounds the columns from `first` on into shared memory, unless they are there.
  __device__ __forceinline__ void hold(int first) {
    if (held == first) {
      return;
    }
    if constexpr (kRowScales) {
      if (held < 0) {
        activations.measure_rows();
      }
    }
    __syncthreads();  // the segment before was read
    fill(first);
    __syncthreads();
  }

  template <typename Multiply>
  __device__ __forceinline__ void multiply_segment(int row, int block, int last, Multiply multiply_step) {
    if constexpr (C::kSteady) {
      Products::multiply_segment(ahead, group, row, block, last, filled / 32, multiply_step);
    } else {
#pragma unroll 1
      for (; block < last; block += Products::kStride) {
        multiply_step(ahead.steps[0], block);
        if (block + Products::kStride < last) {
          ahead.steps[0].load(group, row, block + Products::kStride, filled / 32);
        }
      }
    }
  }

  // Leaves the sums of the item that was begun last, by warps: row of the item * kM + row of x.
  __device__ __forceinline__ void multiply(float* to, int item) {
    const int row = row_of_group(item);
    float sums[kM] = {};
    int integers[kM] = {};
#pragma unroll 1
    for (int first = 0; first < filled; first += C::kSegment) {
      const int last = segment_end(first) / 32;
      const int block = first / 32 + part() * C::kBlocks;
      if (first > 0) {
        ahead.load(group, row, block, last, filled / 32);
      }
      hold(first);
      multiply_segment(row, block, last, [&](const typename Products::Step& step, int at) {
        if constexpr (kRowScales) {
          Products::multiply_integers(integers, step, segment, first / 32, at);
        } else {
          Products::multiply(sums, step, segment, first / 32, at);
        }
      });
    }
    float* const place = to + warp() % C::kWarpsK * kItemSums + (warp_row() + lane() % kLaneRows) * kM;
#pragma unroll
    for (int m = 0; m < kM; ++m) {
      if constexpr (kRowScales) {
        sums[m] = static_cast<float>(integers[m]);
      }
#pragma unroll
      for (int distance = kLaneRows; distance < 32; distance *= 2) {
        sums[m] += __shfl_xor_sync(0xffffffffu, sums[m], distance);
      }
      if constexpr (kRowScales) {
        sums[m] *= activations.scale_of_row(m) * of_row;
      }
      if (lane() < kLaneRows) {
        place[m] = sums[m];
      }
    }
  }

  __device__ __forceinline__ void fill(int first) {
    const int count = segment_end(first) - first;
    activations.fill(segment, first, (count + Products::kDepthStep - 1) / Products::kDepthStep * Products::kDepthStep,
                     false);
    held = first;
  }

  static __device__ __forceinline__ float total(const float* from, int index) {
    float sum = from[index];
#pragma unroll
    for (int other = 1; other < C::kWarpsK; ++other) {
      sum += from[other * kItemSums + index];
    }
    return sum;
  }
};
