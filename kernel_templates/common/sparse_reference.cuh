#pragma once

// Which keys a query sees under a block-sparse mask, as plainly as possible: what the kernels are verified against.

#include "attention_reference.cuh"
#include "sparse_keys.cuh"

struct SparseSight {
  SparseMask mask;
  const int* list;  // of the query's block; null: by pattern
  int position;

  __device__ bool operator()(int key) const {
    const int block = key >> mask.block_log2;
    if (key > position) {
      return false;
    }
    if (list == nullptr) {
      return position - key < mask.window || key < mask.sinks || (mask.stride > 0 && block % mask.stride == 0);
    }
    for (int i = 0; i < mask.width && list[i] >= 0 && list[i] <= block; ++i) {
      if (list[i] == block) {
        return true;
      }
    }
    return false;
  }
};
