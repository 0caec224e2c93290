#pragma once

#include "pascaline/integer.h"
#include "pascaline/language.h"
#include "pascaline/sync.h"
#include "pascaline/vectors.h"

// CUDA's groups of threads on the emulated device: blocks, tiles of a warp and the threads that are here.
namespace cooperative_groups {

class thread_block {
 public:
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return dim3(blockIdx); }
  static dim3 thread_index() { return dim3(threadIdx); }
  static dim3 group_dim() { return dim3(blockDim); }
  static dim3 dim_threads() { return dim3(blockDim); }
};

inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static unsigned long long thread_rank() {
    const unsigned long long block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    return block * thread_block::size() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z * thread_block::size();
  }
  static unsigned long long size() { return num_threads(); }
  static dim3 group_dim() { return dim3(gridDim); }
};

inline grid_group this_grid() { return {}; }

// Threads of a warp, by the lanes in `lanes`.
class pascaline_warp_group {
 public:
  explicit pascaline_warp_group(unsigned lanes) : lanes_(lanes) {}
  void sync() const { __syncwarp(lanes_); }
  [[nodiscard]] unsigned num_threads() const { return static_cast<unsigned>(__popc(lanes_)); }
  [[nodiscard]] unsigned size() const { return num_threads(); }
  [[nodiscard]] unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(lanes_ & ((1u << pascaline_host::self().lane) - 1u)));
  }
  [[nodiscard]] int any(int predicate) const { return __any_sync(lanes_, predicate); }
  [[nodiscard]] int all(int predicate) const { return __all_sync(lanes_, predicate); }
  [[nodiscard]] unsigned ballot(int predicate) const {
    const unsigned votes = __ballot_sync(lanes_, predicate);
    unsigned packed = 0;
    for (unsigned lane = 0, rank = 0; lane < 32; ++lane) {
      if ((lanes_ >> lane & 1u) != 0) {
        packed |= (votes >> lane & 1u) << rank++;
      }
    }
    return packed;
  }
  template <typename T>
  [[nodiscard]] T shfl(T value, unsigned rank) const {
    return pascaline_host::exchange(lanes_, value, lane_of(rank % num_threads()));
  }
  template <typename T>
  [[nodiscard]] T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return pascaline_host::exchange(lanes_, value, lane_of(rank >= delta ? rank - delta : rank));
  }
  template <typename T>
  [[nodiscard]] T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return pascaline_host::exchange(lanes_, value, lane_of(rank + delta < num_threads() ? rank + delta : rank));
  }
  template <typename T>
  [[nodiscard]] T shfl_xor(T value, unsigned mask) const {
    const unsigned rank = thread_rank();
    return pascaline_host::exchange(lanes_, value, lane_of((rank ^ mask) < num_threads() ? rank ^ mask : rank));
  }

 private:
  [[nodiscard]] unsigned lane_of(unsigned rank) const {
    unsigned lane = 0;
    for (; lane < 31 && ((lanes_ >> lane & 1u) == 0 || rank-- != 0); ++lane) {
    }
    return lane;
  }

  unsigned lanes_;
};

using coalesced_group = pascaline_warp_group;

template <unsigned Size, typename Parent = void>
class thread_block_tile : public pascaline_warp_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  thread_block_tile() : pascaline_warp_group(Size == 32 ? 0xffffffffu : ((1u << Size % 32) - 1u) << first_lane()) {}
  template <typename Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : thread_block_tile() {}
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  [[nodiscard]] static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
  [[nodiscard]] static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }

 private:
  static unsigned first_lane() { return pascaline_host::self().lane / Size * Size; }
};

template <unsigned Size, typename Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

inline coalesced_group pascaline_coalesced(unsigned lanes) { return coalesced_group(lanes); }
#define coalesced_threads() pascaline_coalesced(__activemask())

template <typename Group>
inline void sync(const Group& group) {
  group.sync();
}

template <typename T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};

template <typename Group, typename T, typename Operation>
inline T reduce(const Group& group, T value, Operation operation) {
  T result = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.num_threads(); ++rank) {
    result = operation(result, group.shfl(value, rank));
  }
  return result;
}

}  // namespace cooperative_groups
