#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "language_helper.cuh"

struct Checks {
  int failed;
  int first_line;
};

#define CHECK(condition)                      \
  if (!(condition)) {                         \
    if (atomicAdd(&checks->failed, 1) == 0) { \
      checks->first_line = __LINE__;          \
    }                                         \
  }

extern "C" __global__ void halves(Checks* checks) {
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned bits = first; bits < 65536; bits += gridDim.x * blockDim.x) {
    const __half value = __ushort_as_half(static_cast<unsigned short>(bits));
    const float real = __half2float(value);
    const bool nan = (bits & 0x7fffu) > 0x7c00u;
    CHECK(nan == (real != real));
    CHECK(__half_as_ushort(__float2half_rn(real)) == (nan ? 0x7fffu : bits));
    CHECK(pascaline_host::half_bits_in_software(real) == (nan ? 0x7fffu : bits));
    CHECK(nan || __float_as_uint(pascaline_host::half_value_in_software(bits)) == __float_as_uint(real));
    const __nv_bfloat16 brain = __ushort_as_bfloat16(static_cast<unsigned short>(bits));
    const bool brain_nan = (bits & 0x7fffu) > 0x7f80u;
    CHECK(__bfloat16_as_ushort(__float2bfloat16(__bfloat162float(brain))) == (brain_nan ? 0x7fffu : bits));
  }
  // Floats across all exponents, both ways the same.
  for (unsigned i = first; i < 1u << 20; i += gridDim.x * blockDim.x) {
    const float real = __uint_as_float(i * 4096u + (i >> 7));
    CHECK(pascaline_host::half_bits_in_software(real) == __half_as_ushort(__float2half(real)));
  }
}

extern "C" __global__ void half_values(Checks* checks) {
  CHECK(__half_as_ushort(__float2half(1.0f)) == 0x3c00);
  CHECK(__half_as_ushort(__float2half(65504.0f)) == 0x7bff);
  CHECK(__half_as_ushort(__float2half(65519.9f)) == 0x7bff);
  CHECK(__half_as_ushort(__float2half(65520.0f)) == 0x7c00);
  CHECK(__half_as_ushort(__float2half(-1e9f)) == 0xfc00);
  CHECK(__half_as_ushort(__float2half(0x1p-24f)) == 0x0001);
  CHECK(__half_as_ushort(__float2half(0x1p-25f)) == 0x0000);
  CHECK(__half_as_ushort(__float2half(0x1.8p-25f)) == 0x0001);
  CHECK(__half_as_ushort(__float2half(1.0f + 0x1p-11f)) == 0x3c00);
  CHECK(__half_as_ushort(__float2half(1.0f + 0x1.8p-10f)) == 0x3c02);
  CHECK(__half_as_ushort(__double2half(1.0 + 0x1p-11 + 0x1p-40)) == 0x3c01);
  CHECK(__bfloat16_as_ushort(__float2bfloat16(1.0f + 0x1p-8f)) == 0x3f80);
  CHECK(__bfloat16_as_ushort(__float2bfloat16(1.0f + 0x1.8p-7f)) == 0x3f82);
  CHECK(__bfloat16_as_ushort(__float2bfloat16(3.4e38f)) == 0x7f80);
  const __half2 pair = __floats2half2_rn(1.5f, -2.0f);
  const float2 back = __half22float2(pair);
  CHECK(back.x == 1.5f && back.y == -2.0f && __low2float(pair) == 1.5f && __high2float(pair) == -2.0f);
  CHECK(float(__low2half(pair) * __high2half(pair)) == -3.0f);
  CHECK(float(__hadd2(pair, __float22half2_rn(make_float2(1.0f, 1.0f))).y) == -1.0f);
  CHECK(float(__hfma(half(2.0f), half(3.0f), half(1.0f))) == 7.0f);
}

extern "C" __global__ void integers(Checks* checks) {
  CHECK(__dp4a(0x01ff0280, 0x02030405, 10) == 10 + 1 * 2 + -1 * 3 + 2 * 4 + -128 * 5);
  CHECK(__dp4a(0x01ff0280u, 0x02030405u, 10u) == 10u + 1 * 2 + 255 * 3 + 2 * 4 + 128 * 5);
  CHECK(__dp4a(make_char4(1, -2, 3, -4), make_char4(5, 6, 7, 8), 0) == 5 - 12 + 21 - 32);
  CHECK(__popc(0xf0f0u) == 8 && __clz(1) == 31 && __clz(0) == 32 && __ffs(0) == 0 && __ffs(8) == 4);
  CHECK(__brev(0x1u) == 0x80000000u && __brev(0x12345678u) == 0x1e6a2c48u);
  CHECK(__umulhi(0xffffffffu, 2u) == 1u && __mulhi(-1, 2) == -1);
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7610u) == 0x77661100u);
  CHECK(__byte_perm(0x33221100u, 0xb7a69584u, 0xfedcu) == 0xb7a69584u);
  CHECK(__funnelshift_l(0x80000000u, 1u, 1) == 3u && __funnelshift_r(2u, 1u, 1) == 0x80000001u);
  CHECK(min(threadIdx.x + 5, 3) == 3u && max(-1, 2) == 2 && min(5u, 7) == 5u && max(1ll, 2) == 2);
  CHECK(max(1.5f, 2) == 2.0f && min(1.5, 1.0f) == 1.0 && max(__int_as_float(0x7fc00000), 1.0f) == 1.0f);
  CHECK(__float_as_int(1.0f) == 0x3f800000 && __uint_as_float(0x40000000u) == 2.0f);
  CHECK(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.7f) == -2 && __float2int_rn(1e20f) == 0x7fffffff);
  CHECK(__float2int_rd(-2.1f) == -3 && __float2uint_rn(-5.0f) == 0u);
  CHECK(helper_value() == 42);
}

extern "C" __global__ void math(Checks* checks) {
  CHECK(rsqrtf(4.0f) == 0.5f && __frcp_rn(4.0f) == 0.25f && __fsqrt_rn(9.0f) == 3.0f);
  CHECK(__fmaf_rn(2.0f, 3.0f, 4.0f) == 10.0f && __fdividef(6.0f, 3.0f) == 2.0f && fmaf(1.0f, 2.0f, 3.0f) == 5.0f);
  CHECK(fabsf(__expf(1.0f) - 2.7182818f) < 1e-6f && fabsf(__logf(2.0f) - 0.6931472f) < 1e-6f);
  CHECK(__powf(2.0f, 10.0f) == 1024.0f && __sinf(0.0f) == 0.0f && __cosf(0.0f) == 1.0f && exp2f(3.0f) == 8.0f);
  CHECK(fabsf(tanhf(0.5f) - 0.46211716f) < 1e-6f && fabsf(erff(0.5f) - 0.5204999f) < 1e-6f);
  CHECK(fminf(1.0f, NAN) == 1.0f && fmaxf(-INFINITY, 2.0f) == 2.0f && isnan(NAN) && isinf(INFINITY));
  CHECK(exp(0.0) == 1.0 && sqrt(2.25) == 1.5 && floorf(-0.5f) == -1.0f && rintf(2.5f) == 2.0f && abs(-3) == 3);
  CHECK(__saturatef(2.0f) == 1.0f && sinpif(1.0f) == 0.0f && copysignf(1.0f, -0.0f) == -1.0f);
}

struct __align__(32) Wide {
  float x[8];
};

extern "C" __global__ void vectors(Checks* checks) {
  static_assert(sizeof(char2) == 2 && alignof(char2) == 2 && sizeof(char4) == 4 && alignof(char4) == 4);
  static_assert(alignof(uchar4) == 4 && alignof(short2) == 4 && alignof(short4) == 8 && alignof(ushort4) == 8);
  static_assert(alignof(int2) == 8 && sizeof(int3) == 12 && alignof(int3) == 4 && alignof(int4) == 16);
  static_assert(alignof(uint2) == 8 && sizeof(uint3) == 12 && alignof(uint4) == 16 && alignof(longlong2) == 16);
  static_assert(alignof(float1) == 4 && alignof(float2) == 8 && sizeof(float3) == 12 && alignof(float4) == 16);
  static_assert(alignof(double2) == 16 && sizeof(__half) == 2 && sizeof(__half2) == 4 && alignof(__half2) == 4);
  static_assert(alignof(Wide) == 32 && sizeof(dim3) == 12);
  const float4 v = make_float4(1, 2, 3, 4);
  const char4 c = make_char4(-1, 2, -3, 4);
  const dim3 d(7);
  CHECK(v.x + v.w == 5 && c.x == -1 && c.z == -3 && d.x == 7 && d.y == 1 && make_uint3(1, 2, 3).z == 3);
  __shared__ float4 quads[2];
  CHECK(reinterpret_cast<size_t>(quads) % 16 == 0);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    quads[i] = v;
  }
  const float word = reinterpret_cast<const float*>(quads)[5];
  CHECK(__ldg(&quads[1]).y == 2 && word == 2);
}

__constant__ int offsets[3] = {1, 2, 3};
__device__ int counter;

extern "C" __global__ void complex_numbers(Checks* checks) {
  const cuComplex a = make_cuComplex(3.0f, 4.0f);
  const cuComplex b = make_cuComplex(1.0f, -2.0f);
  const cuComplex product = cuCmulf(a, b);
  CHECK(product.x == 11.0f && product.y == -2.0f && cuCabsf(a) == 5.0f);
  const cuComplex quotient = cuCdivf(product, b);
  CHECK(fabsf(quotient.x - 3.0f) < 1e-5f && fabsf(quotient.y - 4.0f) < 1e-5f);
  const cuComplex sum = cuCaddf(cuCsubf(a, b), cuCfmaf(a, cuConjf(b), b));
  CHECK(cuCrealf(sum) == -2.0f && cuCimagf(sum) == 14.0f);
  const cuDoubleComplex large = make_cuDoubleComplex(1e300, 1e300);
  CHECK(fabs(cuCdiv(large, large).x - 1.0) < 1e-12 && fabs(cuCabs(large) / 1e300 - sqrt(2.0)) < 1e-12);
  CHECK(cuComplexDoubleToFloat(cuComplexFloatToDouble(a)).y == 4.0f);
}

extern "C" __global__ void atomics(int* sum, unsigned* maximum, int* minimum, float* real, double* wide,
                                   unsigned long long* big, unsigned* bits, unsigned* wrapped, int* owner) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum, offsets[i % 3]);
  atomicMax(maximum, i);
  atomicMin(minimum, -static_cast<int>(i));
  atomicAdd(real, 1.0f);
  atomicAdd(wide, 0.5);
  atomicAdd(big, 1ull << 32);
  atomicOr(&bits[0], 1u << i % 32);
  atomicAnd(&bits[1], ~(1u << i % 16));
  atomicXor(&bits[2], 1u << i % 8);
  atomicInc(wrapped, 9);
  atomicCAS(owner, -1, 5);
  __threadfence();
  atomicExch(&counter, 1);
}

extern "C" __global__ void arguments(char* out, int a, long long b, float c, double d, unsigned char e, short2 f,
                                     const float* __restrict__ g, bool h) {
  out[0] =
      a == -7 && b == (1ll << 40) && c == 1.5f && d == -2.25 && e == 200 && f.x == -3 && f.y == 4 && g == nullptr && h;
}
