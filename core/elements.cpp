#include "core/elements.hpp"

#include <bit>
#include <cstring>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kGrain = 1 << 16;

template <typename T, typename Convert>
void convert_each(std::span<double> to, std::span<const std::byte> bytes, Convert convert) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    to[i] = convert(value);
  }
}

template <typename T>
double as_double(T value) {
  return static_cast<double>(value);
}

}  // namespace

std::uint16_t half_from_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude >= 0x7F800000U) {  // infinity and NaN
    return static_cast<std::uint16_t>(sign | 0x7C00U | (magnitude > 0x7F800000U ? 0x0200U : 0U));
  }
  if (magnitude >= 0x477FF000U) {  // rounds to 2^16 or more
    return static_cast<std::uint16_t>(sign | 0x7C00U);
  }
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 2^-1 aligns the rounding position, and the FPU rounds to even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0x0FFFU + odd) >> 13U));
}

float float_from_half(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1FU) {
    return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13U));
  }
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1.0p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
}

std::uint16_t bfloat_from_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<std::uint16_t>((bits >> 16U) | 0x0040U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float float_from_bfloat(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

void widen_into(std::span<double> to, ElementType type, std::span<const std::byte> bytes) {
  switch (type) {
    case ElementType::float32:
      return convert_each<float>(to, bytes, as_double<float>);
    case ElementType::float16:
      return convert_each<std::uint16_t>(to, bytes,
                                         [](std::uint16_t v) { return static_cast<double>(float_from_half(v)); });
    case ElementType::bfloat16:
      return convert_each<std::uint16_t>(to, bytes,
                                         [](std::uint16_t v) { return static_cast<double>(float_from_bfloat(v)); });
    case ElementType::float64:
      return convert_each<double>(to, bytes, as_double<double>);
    case ElementType::int32:
      return convert_each<std::int32_t>(to, bytes, as_double<std::int32_t>);
    case ElementType::int64:
      return convert_each<std::int64_t>(to, bytes, as_double<std::int64_t>);
    case ElementType::uint32:
      return convert_each<std::uint32_t>(to, bytes, as_double<std::uint32_t>);
    case ElementType::int8:
      return convert_each<std::int8_t>(to, bytes, as_double<std::int8_t>);
    case ElementType::int16:
      return convert_each<std::int16_t>(to, bytes, as_double<std::int16_t>);
    case ElementType::uint16:
      return convert_each<std::uint16_t>(to, bytes, as_double<std::uint16_t>);
    case ElementType::uint64:
      return convert_each<std::uint64_t>(to, bytes, as_double<std::uint64_t>);
    case ElementType::boolean:  // a byte that is neither 0 nor 1 must not pass for either
    case ElementType::uint8:
      return convert_each<std::uint8_t>(to, bytes, as_double<std::uint8_t>);
    default:
      throw Error("only elements by themselves can be widened one by one");
  }
}

std::vector<double> widen(ElementType type, std::span<const std::byte> bytes) {
  const std::size_t size = size_of(type);
  std::vector<double> values(bytes.size() / size);
  worker_pool().run(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    widen_into(std::span(values).subspan(begin, end - begin), type, bytes.subspan(begin * size, (end - begin) * size));
  });
  return values;
}

}  // namespace pascaline
