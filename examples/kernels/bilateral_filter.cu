// y[HEIGHT,WIDTH]: each pixel of x as the mean of the 7 × 7 pixels p around it, weighted by
// exp(-spatial · distance² - similar · (p - pixel)²). Beyond the edges the pixels there are repeated. float32,
// row-major.
//
// FLOPs: 9·49·HEIGHT·WIDTH and as many exponentials as weights. Bytes: 8·HEIGHT·WIDTH.
// Requires: x and y not overlapping.
// Launch: grid ceil(WIDTH / BLOCK_X) × ceil(HEIGHT / (BLOCK_Y · PIXELS)), block BLOCK_X × BLOCK_Y.
//
// A thread has PIXELS neighbouring pixels of a column: what it reads counts for several of them.

namespace {

constexpr int kRadius = 3;

__device__ __forceinline__ float read(const float* x) {
  if constexpr (kReadOnly) {
    return __ldg(x);
  } else {
    return *x;
  }
}

__device__ __forceinline__ float weight(float exponent) {
  if constexpr (kFastExp) {
    return __expf(exponent);
  } else {
    return expf(exponent);
  }
}

__device__ __forceinline__ int clamped(int i, int size) { return min(max(i, 0), size - 1); }

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlockX* kBlockY)
    bilateral_filter(const float* x, float* y, int height, int width, float spatial, float similar) {
  const int column = static_cast<int>(blockIdx.x * kBlockX + threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y * kBlockY + threadIdx.y) * kPixels;
  if (column >= width || first_row >= height) {
    return;
  }
  float pixels[kPixels];
  float sums[kPixels] = {};
  float weights[kPixels] = {};
#pragma unroll
  for (int i = 0; i < kPixels; ++i) {
    pixels[i] = read(x + static_cast<long long>(clamped(first_row + i, height)) * width + column);
  }
  for (int down = -kRadius; down < kRadius + kPixels; ++down) {
    const float* const line = x + static_cast<long long>(clamped(first_row + down, height)) * width;
#pragma unroll
    for (int right = -kRadius; right <= kRadius; ++right) {
      const float other = read(line + clamped(column + right, width));
#pragma unroll
      for (int i = 0; i < kPixels; ++i) {
        if (down - i >= -kRadius && down - i <= kRadius) {
          const float distance = static_cast<float>((down - i) * (down - i) + right * right);
          const float difference = other - pixels[i];
          const float part = weight(-spatial * distance - similar * difference * difference);
          sums[i] += part * other;
          weights[i] += part;
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kPixels; ++i) {
    if (first_row + i < height) {
      y[static_cast<long long>(first_row + i) * width + column] = sums[i] / weights[i];
    }
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void bilateral_filter_reference(const float* x, double* y, int height, int width, float spatial,
                                                      float similar) {
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < static_cast<long long>(height) * width) {
    const int row = static_cast<int>(at / width);
    const int column = static_cast<int>(at % width);
    double sum = 0.0;
    double weights = 0.0;
    for (int i = -kRadius; i <= kRadius; ++i) {
      for (int j = -kRadius; j <= kRadius; ++j) {
        const int near_row = row + i < 0 ? 0 : row + i < height ? row + i : height - 1;
        const int near_column = column + j < 0 ? 0 : column + j < width ? column + j : width - 1;
        const double other = x[static_cast<long long>(near_row) * width + near_column];
        const double difference = other - x[at];
        const double part = exp(-spatial * (i * i + j * j) - similar * difference * difference);
        sum += part * other;
        weights += part;
      }
    }
    y[at] = sum / weights;
  }
}

#endif
