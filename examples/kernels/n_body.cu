// out[i] = (a, p): acceleration a = Σ mⱼ·d / (|d|² + s)^(3/2) and potential p = Σ mⱼ / (|d|² + s)^(1/2) at body i, with
// d = position j - position i, over all N bodies, i included. A body is a float4 of position and mass m.
//
// FLOPs: 22·N². Bytes: 32·N.
// Requires: bodies and out aligned to 16 bytes and not overlapping; the square s of the softening length above 0.
// Launch: grid ceil(N / (BLOCK · BODIES)), block BLOCK.
//
// A thread has BODIES bodies, to which it adds what one other body after the other does. With STAGED a block copies
// BLOCK of the others at a time to shared memory, otherwise all threads read the same one through the cache.

namespace {

__device__ __forceinline__ void add_force(float4& out, const float4& body, const float4& other, float softening) {
  const float x = other.x - body.x;
  const float y = other.y - body.y;
  const float z = other.z - body.z;
  const float inverse = rsqrtf(x * x + y * y + z * z + softening);
  const float potential = other.w * inverse;
  const float force = potential * inverse * inverse;
  out.x += force * x;
  out.y += force * y;
  out.z += force * z;
  out.w += potential;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlock)
    n_body(const float4* __restrict__ bodies, float4* __restrict__ out, float softening, int n) {
  __shared__ float4 tile[kStaged ? kBlock : 1];
  const int thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * kBlock * kBodies + thread;
  float4 own[kBodies];
  float4 sums[kBodies];
#pragma unroll
  for (int i = 0; i < kBodies; ++i) {
    own[i] = bodies[min(first + i * kBlock, n - 1)];
    sums[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  for (int start = 0; start < n; start += kBlock) {
    const int count = min(kBlock, n - start);
    if constexpr (kStaged) {
      __syncthreads();  // until all have read the tile before
      if (thread < count) {
        tile[thread] = bodies[start + thread];
      }
      __syncthreads();
    }
#pragma unroll kUnroll
    for (int j = 0; j < count; ++j) {
      const float4 other = kStaged ? tile[j] : bodies[start + j];
#pragma unroll
      for (int i = 0; i < kBodies; ++i) {
        add_force(sums[i], own[i], other, softening);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kBodies; ++i) {
    if (first + i * kBlock < n) {
      out[first + i * kBlock] = sums[i];
    }
  }
}

#ifdef PASCALINE_REFERENCE

extern "C" __global__ void n_body_reference(const float4* bodies, double* out, float softening, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    double sums[4] = {};
    for (int j = 0; j < n; ++j) {
      const double x = static_cast<double>(bodies[j].x) - bodies[i].x;
      const double y = static_cast<double>(bodies[j].y) - bodies[i].y;
      const double z = static_cast<double>(bodies[j].z) - bodies[i].z;
      const double distance = sqrt(x * x + y * y + z * z + softening);
      const double force = bodies[j].w / (distance * distance * distance);
      sums[0] += force * x;
      sums[1] += force * y;
      sums[2] += force * z;
      sums[3] += bodies[j].w / distance;
    }
    for (int k = 0; k < 4; ++k) {
      out[4LL * i + k] = sums[k];
    }
  }
}

#endif
