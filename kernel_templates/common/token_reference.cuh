#pragma once

// A token's attention from the projection of its heads on, in float64, by one block of kReferenceThreads threads: what
// the kernels that fuse its parts are verified against.

#include "head_reference.cuh"
#include "product_reference.cuh"

template <int HEAD, int GROUP>
struct TokenReference {
  RotationReference rotation;
  const float* q_weight;  // null: heads are not normalised
  const float* k_weight;
  const int* length;
  double* k_cache;
  double* v_cache;
  double* k_scales;  // null: caches are not int8
  double* v_scales;
  int kv_heads;
  int keys;

  // Puts the token's key and value of a key head into its cache, and writes what its query heads see of it to `out`
  // [HEADS, HEAD].
  template <typename T>
  __device__ void attend(const T* qkv, int kv_head, double* out) const {
    const int context = max(0, min(*length, keys));
    const long long row = static_cast<long long>(context - 1) * kv_heads + kv_head;
    const T* key = qkv + (kv_heads * GROUP + kv_head) * HEAD;
    const T* value = key + kv_heads * HEAD;
    out += kv_head * GROUP * HEAD;
    for_each(GROUP + 2, [&](int head) {
      if (head < GROUP) {
        rotation.apply<HEAD>(qkv + (kv_head * GROUP + head) * HEAD, out + head * HEAD, q_weight);
      } else if (context > 0) {
        double* to = (head == GROUP ? k_cache : v_cache) + row * HEAD;
        if (head == GROUP) {
          rotation.apply<HEAD>(key, to, k_weight);
        }
        for (int i = 0; head > GROUP && i < HEAD; ++i) {
          to[i] = as_double(value[i]);
        }
        if (k_scales != nullptr) {
          divide_by_scale_reference<HEAD>(to, (head == GROUP ? k_scales : v_scales) + row);
        }
      }
    });
    using Rows = ReferenceRows<double, double>;
    const Rows k{k_cache + kv_head * HEAD, kv_heads * HEAD, k_scales, kv_head, kv_heads};
    const Rows v{v_cache + kv_head * HEAD, kv_heads * HEAD, v_scales, kv_head, kv_heads};
    for (int head = 0; head < GROUP; ++head) {
      attention_row_reference<HEAD>(out + head * HEAD, k, v, 0, context, out + head * HEAD);
    }
    __syncthreads();
  }

  // The same of all heads, and the projection after them. What heads see may be off by what the tolerance of a sum over
  // keys is and `more`, in parts of each element and of all. `workspace` of twice the heads' columns.
  template <typename FORMAT, typename T, typename X>
  __device__ void project(const T* qkv, const X* x, const Weights<FORMAT>* weight, int hidden, double more, double* c,
                          double* slack, double* workspace) const {
    const int width = kv_heads * GROUP * HEAD;
    double* errors = workspace + width;
    for (int kv_head = 0; kv_head < kv_heads; ++kv_head) {
      attend(qkv, kv_head, workspace);
    }
    const double part = more + 1e-5 + 4.0 / 16777216.0 * sqrt(static_cast<double>(keys));
    const double mean = sqrt(mean_square(workspace, width));
    for_each(width, [&](int i) { errors[i] = part * (fabs(workspace[i]) + mean); });
    add_products<FORMAT>(x, weight, hidden, width, workspace, errors, c, slack);
  }
};
