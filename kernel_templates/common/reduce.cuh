#pragma once

// Reductions over the lanes of a warp. PTX chooses how a step is written: false leaves it to
// the compiler's intrinsics, true gives exchange and operation as one piece of inline PTX.

struct Sum {
  static constexpr bool kAdds = true;
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float combine(float a, float b) { return a + b; }
};

struct Max {
  static constexpr bool kAdds = false;
  static __device__ __forceinline__ float identity() { return __int_as_float(0xff800000); }
  static __device__ __forceinline__ float combine(float a, float b) { return fmaxf(a, b); }
};

template <typename Operation, bool PTX, int DISTANCE>
__device__ __forceinline__ float exchange_step(float value) {
#ifdef __CUDA_ARCH__
  if constexpr (PTX) {
    float out;
    if constexpr (Operation::kAdds) {
      asm("{ .reg .f32 other; shfl.sync.bfly.b32 other, %1, %2, 31, 0xffffffff; add.f32 %0, %1, other; }"
          : "=f"(out)
          : "f"(value), "n"(DISTANCE));
    } else {
      asm("{ .reg .f32 other; shfl.sync.bfly.b32 other, %1, %2, 31, 0xffffffff; max.f32 %0, %1, other; }"
          : "=f"(out)
          : "f"(value), "n"(DISTANCE));
    }
    return out;
  }
#endif
  return Operation::combine(value, __shfl_xor_sync(0xffffffffu, value, DISTANCE));
}

// Over each group of LANES neighbouring lanes (a power of two up to 32); every lane of the group gets the result. All
// lanes of the warp must take part.
template <typename Operation, bool PTX, int LANES = 32>
__device__ __forceinline__ float warp_reduce(float value) {
  static_assert(LANES >= 1 && LANES <= 32 && (LANES & (LANES - 1)) == 0, "lanes of a group");
  if constexpr (LANES > 1) {
    value = exchange_step<Operation, PTX, LANES / 2>(value);
    return warp_reduce<Operation, PTX, LANES / 2>(value);
  }
  return value;
}

// Over the warp, COUNT values a lane at once (a power of two up to 32), with as many exchanges as one value takes and a
// few more: lane l returns the reduction of values[l / (32 / COUNT)]. Destroys `values`. All lanes must take part.
template <typename Operation, bool PTX, int COUNT, int LANES = 32>
__device__ __forceinline__ float warp_reduce_many(float* values) {
  static_assert(COUNT >= 1 && COUNT <= LANES && (COUNT & (COUNT - 1)) == 0, "values of a lane");
  if constexpr (COUNT == 1) {
    return warp_reduce<Operation, PTX, LANES>(values[0]);
  } else {
    const bool upper = (threadIdx.x & (LANES / 2)) != 0;  // these lanes go on with the upper half of the values
#pragma unroll
    for (int i = 0; i < COUNT / 2; ++i) {
      const float sent = upper ? values[i] : values[COUNT / 2 + i];
      const float kept = upper ? values[COUNT / 2 + i] : values[i];
      values[i] = Operation::combine(kept, __shfl_xor_sync(0xffffffffu, sent, LANES / 2));
    }
    return warp_reduce_many<Operation, PTX, COUNT / 2, LANES / 2>(values);
  }
}
