#pragma once

// CUDA's complex numbers.

typedef float2 cuFloatComplex;

__host__ __device__ inline float cuCrealf(cuFloatComplex a) { return a.x; }
__host__ __device__ inline float cuCimagf(cuFloatComplex a) { return a.y; }
__host__ __device__ inline cuFloatComplex make_cuFloatComplex(float real, float imaginary) {
  return make_float2(real, imaginary);
}
__host__ __device__ inline cuFloatComplex cuConjf(cuFloatComplex a) { return make_float2(a.x, -a.y); }
__host__ __device__ inline cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) {
  return make_float2(a.x + b.x, a.y + b.y);
}
__host__ __device__ inline cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) {
  return make_float2(a.x - b.x, a.y - b.y);
}
__host__ __device__ inline cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// Scaled, so that the squares of the divisor neither overflow nor vanish.
__host__ __device__ inline cuFloatComplex cuCdivf(cuFloatComplex a, cuFloatComplex b) {
  const float scale = 1.0f / (fabsf(b.x) + fabsf(b.y));
  const cuFloatComplex p = make_float2(a.x * scale, a.y * scale);
  const cuFloatComplex q = make_float2(b.x * scale, b.y * scale);
  const float squares = q.x * q.x + q.y * q.y;
  return make_float2((p.x * q.x + p.y * q.y) / squares, (p.y * q.x - p.x * q.y) / squares);
}
__host__ __device__ inline float cuCabsf(cuFloatComplex a) { return hypotf(a.x, a.y); }
__host__ __device__ inline cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) {
  return make_float2(fmaf(-a.y, b.y, fmaf(a.x, b.x, c.x)), fmaf(a.y, b.x, fmaf(a.x, b.y, c.y)));
}

typedef double2 cuDoubleComplex;

__host__ __device__ inline double cuCreal(cuDoubleComplex a) { return a.x; }
__host__ __device__ inline double cuCimag(cuDoubleComplex a) { return a.y; }
__host__ __device__ inline cuDoubleComplex make_cuDoubleComplex(double real, double imaginary) {
  return make_double2(real, imaginary);
}
__host__ __device__ inline cuDoubleComplex cuConj(cuDoubleComplex a) { return make_double2(a.x, -a.y); }
__host__ __device__ inline cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) {
  return make_double2(a.x + b.x, a.y + b.y);
}
__host__ __device__ inline cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) {
  return make_double2(a.x - b.x, a.y - b.y);
}
__host__ __device__ inline cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) {
  return make_double2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// Scaled, so that the squares of the divisor neither overflow nor vanish.
__host__ __device__ inline cuDoubleComplex cuCdiv(cuDoubleComplex a, cuDoubleComplex b) {
  const double scale = 1.0 / (fabs(b.x) + fabs(b.y));
  const cuDoubleComplex p = make_double2(a.x * scale, a.y * scale);
  const cuDoubleComplex q = make_double2(b.x * scale, b.y * scale);
  const double squares = q.x * q.x + q.y * q.y;
  return make_double2((p.x * q.x + p.y * q.y) / squares, (p.y * q.x - p.x * q.y) / squares);
}
__host__ __device__ inline double cuCabs(cuDoubleComplex a) { return hypot(a.x, a.y); }
__host__ __device__ inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) {
  return make_double2(fma(-a.y, b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}

typedef cuFloatComplex cuComplex;

__host__ __device__ inline cuComplex make_cuComplex(float real, float imaginary) {
  return make_float2(real, imaginary);
}
__host__ __device__ inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return make_double2(a.x, a.y); }
__host__ __device__ inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_float2(static_cast<float>(a.x), static_cast<float>(a.y));
}
