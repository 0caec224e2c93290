#pragma once

#include <cstring>

#include "pascaline/language.h"

// Barriers of the block and collectives of the warp.

inline void __syncthreads() { pascaline_host::self().block->services->barrier(pascaline_host::current, false); }

inline int __syncthreads_count(int predicate) {
  pascaline_host::BlockView& block = *pascaline_host::self().block;
  block.services->barrier(pascaline_host::current, predicate != 0);
  return static_cast<int>(block.barrier_votes);
}

inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }

inline int __syncthreads_and(int predicate) {
  const int votes = __syncthreads_count(predicate);
  return votes == static_cast<int>(pascaline_host::self().block->barrier_threads);
}

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  pascaline_host::self().block->services->sync_warp(pascaline_host::current, mask);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return pascaline_host::self().block->services->ballot(pascaline_host::current, mask, predicate != 0);
}

inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }

// Lanes that have exited are in no ballot, neither for nor against.
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }

inline unsigned pascaline_active_mask(const void* pascaline_site) {
  return pascaline_host::self().block->services->active_mask(pascaline_host::current, pascaline_site);
}

#define __activemask()                               \
  ([]() -> unsigned {                                \
    static const char pascaline_site = 0;            \
    return ::pascaline_active_mask(&pascaline_site); \
  }())

namespace pascaline_host {

template <typename T>
inline T exchange(unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) <= sizeof(unsigned long long), "a shuffled value has at most 8 bytes");
  unsigned long long bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = self().block->services->shuffle(current, mask, bits, source);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The lane `__shfl_sync` and its kin read; a lane outside the segment of `width` lanes reads itself.
inline unsigned indexed_lane(int source, int width) {
  const unsigned lane = self().lane;
  return (lane & ~static_cast<unsigned>(width - 1)) |
         (static_cast<unsigned>(source) & static_cast<unsigned>(width - 1));
}

inline unsigned lane_above(unsigned delta, int width) {
  const unsigned lane = self().lane;
  const unsigned first = lane & ~static_cast<unsigned>(width - 1);
  return lane - first >= delta ? lane - delta : lane;
}

inline unsigned lane_below(unsigned delta, int width) {
  const unsigned lane = self().lane;
  const unsigned last = lane | static_cast<unsigned>(width - 1);
  return last - lane >= delta ? lane + delta : lane;
}

inline unsigned lane_across(int lane_mask, int width) {
  const unsigned lane = self().lane;
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  const unsigned last = lane | static_cast<unsigned>(width - 1);
  return source <= last ? source : lane;
}

}  // namespace pascaline_host

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return pascaline_host::exchange(mask, value, pascaline_host::indexed_lane(source, width));
}

template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return pascaline_host::exchange(mask, value, pascaline_host::lane_above(delta, width));
}

template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return pascaline_host::exchange(mask, value, pascaline_host::lane_below(delta, width));
}

template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  return pascaline_host::exchange(mask, value, pascaline_host::lane_across(lane_mask, width));
}

// Without a mask, as up to compute capability 6.x: of the lanes that are here.
#define __ballot(predicate) __ballot_sync(__activemask(), predicate)
#define __any(predicate) __any_sync(__activemask(), predicate)
#define __all(predicate) __all_sync(__activemask(), predicate)
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)
