// One radix-4 stage of Stockham's FFT for BATCH sequences of N = 4·GROUPS·STRIDE complex numbers (float2): STRIDE is 1
// in the first stage and four times as large in each next one. For group g and k below STRIDE, with j = g·STRIDE + k
// and w = exp(-2πi·k / (4·STRIDE)):
//   y[4·g·STRIDE + r·STRIDE + k] = Σ x[j + m·N/4] · w^m · (-i)^(r·m), m = 0 … 3, for r = 0 … 3
//
// FLOPs: 8.5·BATCH·N. Bytes: 16·BATCH·N.
// Requires: x and y not overlapping.
// Launch: grid ceil(N / (4 · BLOCK · BUTTERFLIES)) × BATCH, block BLOCK.
//
// TWIDDLES says how w, w² and w³ come about: 0 by three sines and cosines, 1 by one and products, 2 as 1, with the fast
// sine and cosine.

namespace {

__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 operator*(float2 a, float2 b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
__device__ __forceinline__ float2 times_minus_i(float2 a) { return make_float2(a.y, -a.x); }

// exp(-πi · part)
__device__ __forceinline__ float2 turn(float part) {
  float2 w;
  if constexpr (kTwiddles == 2) {
    __sincosf(-3.14159265f * part, &w.y, &w.x);
  } else {
    sincospif(-part, &w.y, &w.x);
  }
  return w;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    fft_stage(const float2* __restrict__ x, float2* __restrict__ y, int groups, int stride) {
  const int quarter = groups * stride;
  x += static_cast<long long>(blockIdx.y) * 4 * quarter;
  y += static_cast<long long>(blockIdx.y) * 4 * quarter;
  const int first = static_cast<int>(blockIdx.x) * kBlock * kButterflies + static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kButterflies; ++i) {
    const int j = first + i * kBlock;
    if (j < quarter) {
      const int k = j % stride;
      const float part = static_cast<float>(k) / static_cast<float>(2 * stride);
      const float2 w = turn(part);
      const float2 w2 = kTwiddles == 0 ? turn(2 * part) : w * w;
      const float2 w3 = kTwiddles == 0 ? turn(3 * part) : w2 * w;
      const float2 a = x[j];
      const float2 b = x[j + quarter] * w;
      const float2 c = x[j + 2 * quarter] * w2;
      const float2 d = x[j + 3 * quarter] * w3;
      const float2 turned = times_minus_i(b - d);
      float2* const to = y + (j - k) * 4 + k;
      to[0] = a + c + (b + d);
      to[stride] = a - c + turned;
      to[2 * stride] = a + c - (b + d);
      to[3 * stride] = a - c - turned;
    }
  }
}

#ifdef PASCALINE_REFERENCE

// One thread a result, by the formula.
extern "C" __global__ void fft_stage_reference(const float2* x, double2* y, int groups, int stride) {
  const int quarter = groups * stride;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < 4 * quarter) {
    x += static_cast<long long>(blockIdx.y) * 4 * quarter;
    y += static_cast<long long>(blockIdx.y) * 4 * quarter;
    const int r = i / stride % 4;
    const int k = i % stride;
    const int j = i / (4 * stride) * stride + k;
    double2 sum = make_double2(0.0, 0.0);
    for (int m = 0; m < 4; ++m) {
      double sine = 0.0;
      double cosine = 0.0;
      sincospi(-0.5 * m * (r + static_cast<double>(k) / stride), &sine, &cosine);
      const float2 value = x[j + m * quarter];
      sum.x += value.x * cosine - value.y * sine;
      sum.y += value.x * sine + value.y * cosine;
    }
    y[i] = sum;
  }
}

#endif
