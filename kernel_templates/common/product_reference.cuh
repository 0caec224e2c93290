#pragma once

// Products of a decoding step in float64, by one block each: what kernels that fuse them with others are verified
// against. Values that are rounded to int8 on their way come with slack: how far a result may be off as the sums of
// float32 before took a value in the middle of two integers to the other one.

#include "quantize.cuh"
#include "table_row.cuh"

template <typename FORMAT>
using Weights = typename TableOf<FORMAT>::Type;

// Calls `body(i)` for all i below `count`, each by a thread, and waits for them.
template <typename Body>
__device__ void for_each(int count, Body body) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    body(i);
  }
  __syncthreads();
}

// Of a row.
__device__ double mean_square(const double* row, int width) {
  double sum = 0.0;
  for (int i = 0; i < width; ++i) {
    sum += row[i] * row[i];
  }
  return sum / width;
}

// By how much float32 sums may make a product of k columns with a packed weight differ, in parts of the root mean
// square of its row: four times what a random walk of their roundings comes to (as in core/error_bound.cpp), with a few
// of what is done besides.
__device__ double error_of_sums(int k) { return 4.0 / 16777216.0 * sqrt(k / 32.0 + 8.0); }

// Rounds a row as products with such a weight do. `errors`, unless null, says how far each value may be off before; it
// becomes the step between integers of those that may be rounded to another one, and 0 of the others.
template <typename FORMAT>
__device__ void round_row(double* row, double* errors, int width) {
  if constexpr (is_packed<FORMAT>()) {
    const int block = Packed<FORMAT>::kScales == 0 ? width : 32;
    for_each((width + block - 1) / block, [&](int index) {
      const int first = index * block;
      const int end = first + block < width ? first + block : width;
      int largest = 0;
      for (int i = first; i < end; ++i) {
        largest = max(largest, magnitude_bits(static_cast<float>(row[i])));
      }
      const Int8Scale scale = int8_scale(largest);
      for (int i = first; i < end; ++i) {
        const double at = row[i] * scale.inverse;
        if (errors != nullptr) {
          errors[i] = fabs(at - floor(at) - 0.5) > errors[i] * scale.inverse ? 0.0 : scale.scale;
        }
        row[i] = static_cast<double>(scale.scale) * to_int8(static_cast<float>(row[i]), scale.inverse);
      }
    });
  }
}

// Row `index` of a weight with k columns times `row`.
template <typename FORMAT>
__device__ double row_product(const Weights<FORMAT>* weight, int index, int k, const double* row) {
  double sum = 0.0;
  if constexpr (is_packed<FORMAT>()) {
    const long long group_bytes = packed_group_bytes<FORMAT>(k);
    const unsigned char* group = weight + index / kPackedRows * group_bytes;
    const int lane = index % kPackedRows;
    for (int first = 0; first < k; first += 32) {
      const auto value = [&](int i) { return first + i < k ? row[first + i] : 0.0; };
      sum += block_product<FORMAT>(group, lane, static_cast<unsigned int>(first / 32), value);
    }
    return sum * row_scale<FORMAT>(group, group_bytes, lane);
  } else {
    const Matrix<FORMAT> matrix(weight);
    for (int i = 0; i < k; ++i) {
      sum += row[i] * matrix(matrix.elements[static_cast<long long>(index) * k + i]);
    }
    return sum;
  }
}

// products[n] = weight[n, k] · RMSNorm(x), whose rounding is that of x · norm. `normed` is scratch of k.
template <typename FORMAT, typename T>
__device__ void normed_products(const T* x, const float* norm, double epsilon, const Weights<FORMAT>* weight, int n,
                                int k, double* normed, double* products) {
  for_each(k, [&](int i) { normed[i] = to_float(x[i]); });
  const double factor = 1.0 / sqrt(mean_square(normed, k) + epsilon);
  __syncthreads();
  for_each(k, [&](int i) {
    const float product = __fmul_rn(to_float(x[i]), norm[i]);
    normed[i] = is_packed<FORMAT>() ? product : normed[i] * norm[i];
  });
  round_row<FORMAT>(normed, nullptr, k);
  for_each(n, [&](int i) { products[i] = factor * row_product<FORMAT>(weight, i, k, normed); });
}

// c[n] = x + weight[n, k] · row, which is rounded here; `errors` as above. `slack` is 0 of a plain weight.
template <typename FORMAT, typename T>
__device__ void add_products(const T* x, const Weights<FORMAT>* weight, int n, int k, double* row, double* errors,
                             double* c, double* slack) {
  round_row<FORMAT>(row, errors, k);
  for_each(n, [&](int i) {
    c[i] = to_float(x[i]) + row_product<FORMAT>(weight, i, k, row);
    slack[i] = 0.0;
    if constexpr (is_packed<FORMAT>()) {
      for (int j = 0; j < k; ++j) {
        slack[i] += errors[j] > 0.0 ? fabs(errors[j] * element_of<FORMAT>(weight, i, j, k)) : 0.0;
      }
    }
  });
}

// A row of a feed-forward block (mlp.cu). `workspace` of hidden + 4 · intermediate.
template <typename FORMAT, typename DOWN, typename T>
__device__ void mlp_row_reference(const T* x, const float* norm, const Weights<FORMAT>* gate_up,
                                  const Weights<DOWN>* down, double* c, double* slack, double* workspace, int hidden,
                                  int intermediate, double epsilon) {
  double* products = workspace + hidden;
  double* gated = products + 2 * intermediate;
  double* errors = gated + intermediate;
  normed_products<FORMAT>(x, norm, epsilon, gate_up, 2 * intermediate, hidden, workspace, products);
  const double error = error_of_sums(hidden);
  const double of_row = error * sqrt(mean_square(products, 2 * intermediate));
  for_each(intermediate, [&](int i) {
    const double gate = products[2 * i];
    const double factor = products[2 * i + 1];
    const double open = 1.0 / (1.0 + exp(-gate));
    gated[i] = gate * open * factor;
    // Exponential and quotient may be a GPU's approximate ones ("CUDA C++ Programming Guide", mathematical functions).
    const double of_silu = (6.0 + 1.2 * fabs(gate)) / 8388608.0;
    const double slope = open * (1.0 + gate * (1.0 - open));
    errors[i] = of_row * (fabs(slope * factor) + fabs(gate * open)) + (error + of_silu) * fabs(gated[i]);
  });
  add_products<DOWN>(x, down, hidden, intermediate, gated, errors, c, slack);
}
