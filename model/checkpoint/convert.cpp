#include "model/checkpoint/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/util/worker_pool.hpp"
#include "model/checkpoint/model_error.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace pascaline {
namespace {

// A block of floats stays in the first-level cache between widening, checking and narrowing.
constexpr std::size_t kBlock = 2048;
constexpr std::size_t kWeightsAtOnce = 1U << 20U;

constexpr std::uint32_t kInfinity = 0x7F800000U;
constexpr std::uint32_t kBeyondHalf = 0x477FF000U;    // 65520 rounds to 2^16
constexpr std::uint32_t kBeyondBfloat = 0x7F7F8000U;  // rounds to 2^128

void widen_bfloat(const std::byte* in, float* out, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, in + i * sizeof bits, sizeof bits);
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }
}

void widen_half(const std::byte* in, float* out, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, in + i * sizeof half, sizeof half);
    const std::uint32_t bits = half;
    const std::uint32_t magnitude = bits & 0x7FFFU;
    const std::uint32_t rebased = (magnitude << 13U) + (magnitude >= 0x7C00U ? 0x70000000U : 0x38000000U);
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1.0p-24F;
    const std::uint32_t value = magnitude < 0x0400U ? std::bit_cast<std::uint32_t>(subnormal) : rebased;
    out[i] = std::bit_cast<float>(value | (bits & 0x8000U) << 16U);
  }
}

void narrow_bfloat(const float* in, std::byte* out, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const auto rounded = static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
    std::memcpy(out + i * sizeof rounded, &rounded, sizeof rounded);
  }
}

// For values whose rounding does not overflow.
void narrow_half(const float* in, std::byte* out, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t normal = (magnitude - 0x38000000U + 0x0FFFU + ((magnitude >> 13U) & 1U)) >> 13U;
    // Adding 1/2 puts the last place of a subnormal half at that of the sum, which is rounded to even.
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
    const auto half =
        static_cast<std::uint16_t>((magnitude < 0x38800000U ? subnormal : normal) | ((bits >> 16U) & 0x8000U));
    std::memcpy(out + i * sizeof half, &half, sizeof half);
  }
}

#if defined(__x86_64__)
bool has_f16c() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  // That the system keeps the wide registers is part of what "avx" means here.
  return __builtin_cpu_supports("avx") != 0 && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

__attribute__((target("avx,f16c"))) void widen_half_f16c(const std::byte* in, float* out, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * 2));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
  }
  _mm256_zeroupper();
  widen_half(in + i * 2, out + i, count - i);
}

__attribute__((target("avx,f16c"))) void narrow_half_f16c(const float* in, std::byte* out, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * 2), halves);
  }
  _mm256_zeroupper();
  narrow_half(in + i, out + i * 2, count - i);
}
#else
bool has_f16c() noexcept { return false; }
constexpr auto widen_half_f16c = widen_half;
constexpr auto narrow_half_f16c = narrow_half;
#endif

// Magnitudes compare as their bits do, so one maximum tells whether anything is not finite or too large.
std::uint32_t largest_magnitude(const float* values, std::size_t count) noexcept {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(values[i]) & 0x7FFFFFFF);
  }
  return static_cast<std::uint32_t>(largest);
}

// Magnitudes from this on cannot be had in the type.
std::uint32_t limit_of(ElementType to) noexcept {
  return to == ElementType::float16 ? kBeyondHalf : to == ElementType::bfloat16 ? kBeyondBfloat : kInfinity;
}

void widen_block(StoredType from, const std::byte* in, float* out, std::size_t count, HalfPath path) noexcept {
  if (from == StoredType::F32) {
    std::memcpy(out, in, count * sizeof(float));
  } else if (from == StoredType::BF16) {
    widen_bfloat(in, out, count);
  } else {
    path == HalfPath::f16c ? widen_half_f16c(in, out, count) : widen_half(in, out, count);
  }
}

void narrow_block(ElementType to, const float* in, std::byte* out, std::size_t count, HalfPath path) noexcept {
  if (to == ElementType::float32) {
    std::memcpy(out, in, count * sizeof(float));
  } else if (to == ElementType::bfloat16) {
    narrow_bfloat(in, out, count);
  } else {
    path == HalfPath::f16c ? narrow_half_f16c(in, out, count) : narrow_half(in, out, count);
  }
}

void check_request(StoredType from, std::size_t in_bytes, ElementType to, std::size_t out_bytes) {
  if ((from != StoredType::F32 && from != StoredType::F16 && from != StoredType::BF16) ||
      (to != ElementType::float32 && to != ElementType::float16 && to != ElementType::bfloat16)) {
    throw Error(fmt::format("weights are not converted from {} to {}", name_of(from), name_of(to)));
  }
  if (in_bytes % size_of(from) != 0 || out_bytes % size_of(to) != 0 ||
      in_bytes / size_of(from) != out_bytes / size_of(to)) {
    throw Error(fmt::format("{} bytes of {} are not as many weights as {} bytes of {}", in_bytes, name_of(from),
                            out_bytes, name_of(to)));
  }
}

[[noreturn]] void refuse(const StoredTensor& tensor, std::int64_t element, float value, ElementType to) {
  if (!std::isfinite(value)) {
    throw ModelError(fmt::format("tensor {}: its element {} is {}; the checkpoint is damaged", quoted_name(tensor.name),
                                 element, value));
  }
  throw ModelError(fmt::format("tensor {}: its element {}, {}, is beyond the range of {}; load the weights as float32",
                               quoted_name(tensor.name), element, value, name_of(to)));
}

}  // namespace

HalfPath best_half_path() noexcept {
  static const HalfPath path = has_f16c() ? HalfPath::f16c : HalfPath::portable;
  return path;
}

std::optional<UnfitWeight> convert_weights(StoredType from, std::span<const std::byte> in, ElementType to,
                                           std::span<std::byte> out, HalfPath path) {
  check_request(from, in.size(), to, out.size());
  const std::size_t count = in.size() / size_of(from);
  const std::uint32_t limit = limit_of(to);
  float block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    widen_block(from, in.data() + begin * size_of(from), block, length, path);
    if (largest_magnitude(block, length) >= limit) {
      std::size_t i = 0;
      while ((std::bit_cast<std::uint32_t>(block[i]) & 0x7FFFFFFFU) < limit) {
        ++i;
      }
      return UnfitWeight{begin + i, block[i]};
    }
    narrow_block(to, block, out.data() + begin * size_of(to), length, path);
  }
  return std::nullopt;
}

void read_weights(const StoredTensor& tensor, std::int64_t first, ElementType to, std::span<std::byte> out) {
  const std::size_t from_bytes = size_of(tensor.type);
  const std::size_t to_bytes = size_of(to);
  const std::size_t total = tensor.bytes.size() / from_bytes;
  const std::size_t count = out.size() / to_bytes;
  if (first < 0 || static_cast<std::size_t>(first) > total || count > total - static_cast<std::size_t>(first)) {
    throw Error(fmt::format("elements {} and {} more were asked of tensor {}, which has {}", first, count,
                            quoted_name(tensor.name), total));
  }
  const std::span<const std::byte> in =
      tensor.bytes.subspan(static_cast<std::size_t>(first) * from_bytes, count * from_bytes);
  check_request(tensor.type, in.size(), to, out.size());
  worker_pool().run(count, kWeightsAtOnce, [&](std::size_t begin, std::size_t end) {
    const auto unfit = convert_weights(tensor.type, in.subspan(begin * from_bytes, (end - begin) * from_bytes), to,
                                       out.subspan(begin * to_bytes, (end - begin) * to_bytes));
    if (unfit) {
      refuse(tensor, first + static_cast<std::int64_t>(begin + unfit->index), unfit->value, to);
    }
  });
}

}  // namespace pascaline
