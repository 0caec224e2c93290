#pragma once

// Rotary embedding of products that are the queries, keys and values of an image's patches: heads of HEAD columns
// whose pairs are neighbours, as the kernel rope_vision takes them.

#include "rotary.cuh"

struct PairRotation {
  const float* cosine;   // [position_count, HEAD / 4]
  const float* sine;     // as cosine
  const int* positions;  // [2, patches]: row and column of each patch
  int position_count;
};

// Turns COUNT values of a patch in neighbouring columns of a query or a key, the first of which is a multiple of COUNT.
// The first quarter of a head's pairs turns by the patch's row, the others by its column.
template <int HEAD, int COUNT>
__device__ __forceinline__ void turn_pairs(float (&value)[COUNT], const PairRotation& by, int patch, int patches,
                                           int column) {
  static_assert(COUNT % 2 == 0 && HEAD % COUNT == 0 && HEAD % 4 == 0, "whole pairs of one head");
  constexpr int kQuarter = HEAD / 4;
  const int of_row = clamp_row(by.positions[patch], by.position_count) * kQuarter;
  const int of_column = clamp_row(by.positions[patches + patch], by.position_count) * kQuarter;
#pragma unroll
  for (int j = 0; j < COUNT / 2; ++j) {
    const int slot = column % HEAD / 2 + j;
    const int place = slot < kQuarter ? of_row + slot : of_column + slot - kQuarter;
    const float cosine = by.cosine[place];
    const float sine = by.sine[place];
    const float low = value[2 * j];
    const float high = value[2 * j + 1];
    value[2 * j] = low * cosine - high * sine;
    value[2 * j + 1] = high * cosine + low * sine;
  }
}
