// y = x in another size: each element is a mean of the 4 × 4 elements of x around its place, with the weights of
// Catmull-Rom splines. x [HEIGHT,WIDTH], rows filled up to multiples of 8 elements; y [OUT_HEIGHT,OUT_WIDTH];
// row-major, float32. Outside x, its nearest element counts.
//
// FLOPs: about 50·OUT_HEIGHT·OUT_WIDTH. Bytes: 4·(HEIGHT·WIDTH + OUT_HEIGHT·OUT_WIDTH).
// Requires: x as a 2D texture.
// Launch: grid ceil(OUT_WIDTH / BLOCK_X) × ceil(OUT_HEIGHT / (BLOCK_Y · POINTS)), block BLOCK_X × BLOCK_Y.
//
// A thread computes POINTS elements of a column, BLOCK_Y rows apart.

namespace {

// The position among `from` elements of element `i` of `to`. Explicit rounding gives the same in all
// kernels.
__device__ __forceinline__ float place_of(int i, int from, int to) {
  return __fmaf_rn(static_cast<float>(i) + 0.5f, __fdiv_rn(static_cast<float>(from), static_cast<float>(to)), -0.5f);
}

// Weights of the four elements around a position `t` after the second of them.
__device__ __forceinline__ void spline_weights(float t, float (&weights)[4]) {
  weights[0] = 0.5f * t * (t * (2.0f - t) - 1.0f);
  weights[1] = 0.5f * (t * t * (3.0f * t - 5.0f) + 2.0f);
  weights[2] = 0.5f * t * (t * (4.0f - 3.0f * t) + 1.0f);
  weights[3] = 0.5f * t * t * (t - 1.0f);
}

__device__ __forceinline__ float resized(cudaTextureObject_t x, int i, int j, int height, int width, int out_height,
                                         int out_width) {
  const float row = place_of(i, height, out_height);
  const float column = place_of(j, width, out_width);
  float down[4];
  float right[4];
  spline_weights(row - floorf(row), down);
  spline_weights(column - floorf(column), right);
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float row_sum = 0.0f;
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      // Columns from `width` on are padding.
      const float source_column = fminf(floorf(column) + static_cast<float>(l - 1), static_cast<float>(width - 1));
      row_sum += right[l] * tex2D<float>(x, source_column + 0.5f, floorf(row) + static_cast<float>(k) - 0.5f);
    }
    sum += down[k] * row_sum;
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlockX* kBlockY)
    bicubic_resize(cudaTextureObject_t x, float* __restrict__ y, int height, int width, int out_height, int out_width) {
  const int j = static_cast<int>(blockIdx.x) * kBlockX + static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.y) * kBlockY * kPoints + static_cast<int>(threadIdx.y);
#pragma unroll
  for (int point = 0; point < kPoints; ++point) {
    const int i = first + point * kBlockY;
    if (i < out_height && j < out_width) {
      y[static_cast<long long>(i) * out_width + j] = resized(x, i, j, height, width, out_height, out_width);
    }
  }
}

#ifdef PASCALINE_REFERENCE

// The weight of an element at that distance.
__device__ double spline(double distance) {
  const double d = fabs(distance);
  return d < 1 ? (1.5 * d - 2.5) * d * d + 1 : d < 2 ? ((-0.5 * d + 2.5) * d - 4) * d + 2 : 0;
}

extern "C" __global__ void bicubic_resize_reference(cudaTextureObject_t x, double* y, int height, int width,
                                                    int out_height, int out_width) {
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < static_cast<long long>(out_height) * out_width) {
    const float row = place_of(static_cast<int>(at / out_width), height, out_height);
    const float column = place_of(static_cast<int>(at % out_width), width, out_width);
    const int top = static_cast<int>(floorf(row)) - 1;
    const int left = static_cast<int>(floorf(column)) - 1;
    double sum = 0;
    for (int k = top; k < top + 4; ++k) {
      for (int l = left; l < left + 4; ++l) {
        const int i = max(0, min(k, height - 1));
        const int j = max(0, min(l, width - 1));
        const double element = tex2D<float>(x, static_cast<float>(j) + 0.5f, static_cast<float>(i) + 0.5f);
        sum += spline(static_cast<double>(row) - k) * spline(static_cast<double>(column) - l) * element;
      }
    }
    y[at] = sum;
  }
}

#endif
