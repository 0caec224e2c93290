#include "runtime/cpu/vector_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/elements.hpp"

namespace pascaline::cpu {
namespace {

// So many sums side by side, which the compiler may put into a vector.
constexpr std::int64_t kLanes = 8;

float to_float(float value) { return value; }
float to_float(Half value) { return float_from_half(static_cast<std::uint16_t>(value)); }
float to_float(std::int8_t value) { return value; }
float to_float(Bfloat value) { return float_from_bfloat(static_cast<std::uint16_t>(value)); }

void from_float(float value, float& to) { to = value; }
void from_float(float value, Half& to) { to = Half{half_from_float(value)}; }
void from_float(float value, std::int8_t& to) { to = static_cast<std::int8_t>(std::nearbyint(value)); }
void from_float(float value, Bfloat& to) { to = Bfloat{bfloat_from_float(value)}; }

// Makes floats of the elements of rows.
template <typename Element>
struct Decoder {
  explicit Decoder(const FormatOf<Element>& /*format*/) {}
  float operator()(Element element) const { return to_float(element); }
};
template <>
struct Decoder<Code16x> {
  Float16xDecoder decode;
  explicit Decoder(Float16x format) : decode(format) {}
  float operator()(Code16x code) const { return decode(static_cast<std::uint16_t>(code)); }
};

template <typename Element>
void widen_elements(const Element* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = to_float(from[i]);
  }
}

template <typename Element>
void narrow_elements(const float* from, Element* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    from_float(from[i], to[i]);
  }
}

void widen_codes(Float16x format, const Code16x* from, float* to, std::int64_t count) {
  const Float16xDecoder decode(format);
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = decode(static_cast<std::uint16_t>(from[i]));
  }
}

template <typename Element>
float dot_product(const Element* row, const Decoder<Element>& decode, const float* vector, std::int64_t depth) {
  std::array<float, kLanes> lanes{};
  const std::int64_t whole = depth - depth % kLanes;
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += decode(row[k + lane]) * vector[k + lane];
    }
  }
  for (std::int64_t k = whole; k < depth; ++k) {
    lanes[k - whole] += decode(row[k]) * vector[k];
  }
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <typename Element>
void dot_rows(const Rows<Element>& rows, const Rows<float>& vectors, const FloatRows& sums) {
  const Decoder<Element> decode(rows.format);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t i = 0; i < vectors.count; ++i) {
      sums.data[i * sums.stride + r] =
          dot_product(rows.data + r * rows.stride, decode, vectors.data + i * vectors.stride, rows.depth);
    }
  }
}

template <typename Element>
void add_weighted_rows(const Rows<Element>& rows, const Rows<float>& factors, const FloatRows& sums) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const Element* row = rows.data + r * rows.stride;
    for (std::int64_t i = 0; i < factors.count; ++i) {
      const float factor = factors.data[i * factors.stride + r];
      float* to = sums.data + i * sums.stride;
      for (std::int64_t d = 0; d < rows.depth; ++d) {
        to[d] += factor * to_float(row[d]);
      }
    }
  }
}

float maximum_of(const float* values, std::int64_t count) {
  float most = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    most = values[i] > most ? values[i] : most;
  }
  return most;
}

double exp_and_sum(float* values, std::int64_t count, float shift) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = std::exp(values[i] - shift);
    sum += values[i];
  }
  return sum;
}

// `squares`: of the distances from the mean, else the values themselves.
template <bool squares>
double folded(const float* values, std::int64_t count, double mean) {
  std::array<double, kLanes> lanes{};
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = values[i] - mean;
    lanes[i % kLanes] += squares ? value * value : value;
  }
  double sum = 0;
  for (const double lane : lanes) {
    sum += lane;
  }
  return sum;
}

double sum_of(const float* values, std::int64_t count) { return folded<false>(values, count, 0); }

void silu_multiply_all(const float* gate, const float* factor, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = gate[i] / (1.0F + std::exp(-gate[i])) * factor[i];
  }
}

// (1 + tanh z) / 2 = 1 / (1 + exp(−2z)), which loses nothing where tanh is near −1.
void gelu_tanh_all(const float* x, float* y, std::int64_t count) {
  const float twice = 2.0F * std::sqrt(2.0F * std::numbers::inv_pi_v<float>);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = x[i];
    y[i] = value / (1.0F + std::exp(-twice * (value + 0.044715F * value * value * value)));
  }
}

template <typename Element>
constexpr ElementKernels<Element> element_kernels() {
  return {widen_elements<Element>, narrow_elements<Element>, dot_rows<Element>, add_weighted_rows<Element>};
}

constexpr VectorKernels kPortable{"portable",
                                  element_kernels<float>(),
                                  element_kernels<Half>(),
                                  element_kernels<Bfloat>(),
                                  element_kernels<std::int8_t>(),
                                  {widen_codes, dot_rows<Code16x>},
                                  maximum_of,
                                  exp_and_sum,
                                  sum_of,
                                  folded<true>,
                                  silu_multiply_all,
                                  gelu_tanh_all};

}  // namespace

const VectorKernels& portable_kernels() noexcept { return kPortable; }

const VectorKernels& vector_kernels() noexcept {
  static const VectorKernels& best = avx2_kernels() != nullptr ? *avx2_kernels() : kPortable;
  return best;
}

}  // namespace pascaline::cpu
