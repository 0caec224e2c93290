#pragma once

#include <cstdint>

#include "runtime/formats/float16x.hpp"

namespace pascaline::cpu {

/// A bfloat16's bits: a type of its own, as both it and float16 are held in 16 bits.
enum class Bfloat : std::uint16_t {};
/// A float16's bits.
enum class Half : std::uint16_t {};
/// A code of float16x.
enum class Code16x : std::uint16_t {};

/// What elements need besides to become floats: nothing, but those of float16x their matrix's format.
template <typename Element>
struct FormatOf {};
template <>
struct FormatOf<Code16x> : Float16x {};

/// Rows of `depth` elements, `stride` apart.
template <typename Element>
struct Rows {
  const Element* data;
  std::int64_t stride;
  std::int64_t count;
  std::int64_t depth;
  [[no_unique_address]] FormatOf<Element> format = {};
};

/// A matrix of float32 that is written, with rows `stride` apart.
struct FloatRows {
  float* data;
  std::int64_t stride;
};

/// Inner loops over one kind of weight or cache element. Each result depends on its own row and vector only, not on how
/// many are asked for together.
template <typename Element>
struct ElementKernels {
  void (*widen)(const Element* from, float* to, std::int64_t count);
  /// To the nearest, ties to even; to int8 from magnitudes of at most 127.
  void (*narrow)(const float* from, Element* to, std::int64_t count);
  /// `sums(i, r) = vector i · row r`.
  void (*dot)(const Rows<Element>& rows, const Rows<float>& vectors, const FloatRows& sums);
  /// `sums(i, :) += Σ factors(i, r) · row r`; `factors` has as many columns as there are rows.
  void (*add_weighted)(const Rows<Element>& rows, const Rows<float>& factors, const FloatRows& sums);
};

/// Those over a weight in float16x, which is only read.
template <>
struct ElementKernels<Code16x> {
  void (*widen)(Float16x format, const Code16x* from, float* to, std::int64_t count);
  void (*dot)(const Rows<Code16x>& rows, const Rows<float>& vectors, const FloatRows& sums);
};

/// The inner loops of the operations, for one kind of processor.
struct VectorKernels {
  const char* name;
  ElementKernels<float> float32;
  ElementKernels<Half> float16;
  ElementKernels<Bfloat> bfloat16;
  ElementKernels<std::int8_t> int8;
  ElementKernels<Code16x> float16x;

  /// The largest value; −∞ of none.
  float (*maximum)(const float* values, std::int64_t count);
  /// `values = exp(values − shift)`; returns their sum.
  double (*exp_sum)(float* values, std::int64_t count, float shift);
  /// Sum of all values.
  double (*sum)(const float* values, std::int64_t count);
  /// `Σ (value − mean)²`.
  double (*squares)(const float* values, std::int64_t count, double mean);
  /// `y = gate / (1 + exp(−gate)) · factor`; y may be one of them.
  void (*silu_multiply)(const float* gate, const float* factor, float* y, std::int64_t count);
  /// `y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))`; y may be x.
  void (*gelu_tanh)(const float* x, float* y, std::int64_t count);
};

/// Plain C++, for every processor.
[[nodiscard]] const VectorKernels& portable_kernels() noexcept;
/// With AVX2, FMA and F16C; nothing where the processor has not all three.
[[nodiscard]] const VectorKernels* avx2_kernels() noexcept;
/// The best for this processor.
[[nodiscard]] const VectorKernels& vector_kernels() noexcept;

}  // namespace pascaline::cpu
