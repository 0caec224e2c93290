// out[N] = alpha · x[N] + y[N], float32.
//
// FLOPs: 2·N. Bytes: 12·N.
// Requires: x, y and out aligned to 4·VECTOR bytes and not overlapping.
// Launch: grid ceil(N / (BLOCK · VECTOR)), block BLOCK.

namespace {

static_assert(kVector == 1 || kVector == 2 || kVector == 4, "one load of up to 16 bytes");

struct alignas(4 * kVector) Vector {
  float element[kVector];
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    saxpy(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, float alpha, int n) {
  const int first = static_cast<int>(blockIdx.x * kBlock + threadIdx.x) * kVector;
  if constexpr (kAligned) {
    if (first < n) {
      const Vector a = *reinterpret_cast<const Vector*>(x + first);
      const Vector b = *reinterpret_cast<const Vector*>(y + first);
      Vector sum;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        sum.element[i] = alpha * a.element[i] + b.element[i];
      }
      *reinterpret_cast<Vector*>(out + first) = sum;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (first + i < n) {
        out[first + i] = alpha * x[first + i] + y[first + i];
      }
    }
  }
}

#ifdef PASCALINE_REFERENCE

// The same, one thread an element, in float64: what results are compared with.
extern "C" __global__ void saxpy_reference(const float* __restrict__ x, const float* __restrict__ y,
                                           double* __restrict__ out, float alpha, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    out[i] = static_cast<double>(alpha) * x[i] + y[i];
  }
}

#endif
