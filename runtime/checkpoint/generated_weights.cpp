#include <algorithm>
#include <array>
#include <cstring>

#include "core/elements.hpp"
#include "core/parallel.hpp"
#include "runtime/checkpoint/weight_source.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kDrawnAtOnce = 1U << 20U;
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return hash;
}

// Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014).
std::uint64_t split_mix(std::uint64_t state) noexcept {
  state += kGolden;
  state = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  state = (state ^ (state >> 27U)) * 0x94D049BB133111EBULL;
  return state ^ (state >> 31U);
}

enum class Kind : std::uint8_t { matrix, norm, bias, pixels };

Kind kind_of(std::string_view name) noexcept {
  if (name == "pixel_values") {
    return Kind::pixels;
  }
  const std::size_t dot = name.rfind('.');
  const std::string_view leaf = name.substr(dot == std::string_view::npos ? 0 : dot + 1);
  const std::string_view path = name.substr(0, dot == std::string_view::npos ? 0 : dot);
  const std::size_t parent = path.rfind('.');
  const bool norm = path.find("norm", parent == std::string_view::npos ? 0 : parent) != std::string_view::npos;
  return norm && leaf == "weight" ? Kind::norm : leaf == "bias" ? Kind::bias : Kind::matrix;
}

// A weight has one of 256 values, by the byte drawn for it.
using Values = std::array<float, 256>;

float hashed_value(Kind kind, std::uint32_t byte) noexcept {
  const float unit = (static_cast<float>(byte) - 128.0F) / 128.0F;
  switch (kind) {
    case Kind::norm:
      return 1.0F + (static_cast<float>(byte >> 3U) - 16.0F) / 64.0F;
    case Kind::bias:
      return unit / 16.0F;
    case Kind::pixels:
      return unit;
    case Kind::matrix:
      break;
  }
  return unit / 8.0F;
}

// Odd multiples, so that the mean is exact; few enough values for the 8 bits of a bfloat16.
float random_value(Kind kind, std::uint32_t byte) noexcept {
  if (kind == Kind::norm) {
    return 1.0F + (static_cast<float>(byte >> 4U) - 7.5F) / 64.0F;
  }
  return (2.0F * static_cast<float>(byte) - 255.0F) / 256.0F / 32.0F;
}

Values table_of(Kind kind, float (*value)(Kind, std::uint32_t)) noexcept {
  Values values{};
  for (std::uint32_t byte = 0; byte < values.size(); ++byte) {
    values[byte] = value(kind, byte);
  }
  return values;
}

// Writes `table[byte_at(i)]` for the elements from `first` on, in the type of T.
template <typename T, typename ByteAt>
void look_up(const std::array<T, 256>& table, const ByteAt& byte_at, std::uint64_t first, std::span<std::byte> out) {
  parallel_for(out.size() / sizeof(T), kDrawnAtOnce, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      std::memcpy(out.data() + i * sizeof(T), &table[byte_at(first + i)], sizeof(T));
    }
  });
}

template <typename ByteAt>
void fill(const Values& values, const ByteAt& byte_at, ElementType type, std::int64_t first, std::span<std::byte> out) {
  const auto begin = static_cast<std::uint64_t>(first);
  if (type == ElementType::float32) {
    look_up(values, byte_at, begin, out);
    return;
  }
  std::array<std::uint16_t, 256> narrow{};
  std::transform(values.begin(), values.end(), narrow.begin(),
                 type == ElementType::float16 ? half_from_float : bfloat_from_float);
  look_up(narrow, byte_at, begin, out);
}

std::uint32_t hashed_byte(std::uint64_t seed, std::uint64_t index) noexcept {
  return static_cast<std::uint32_t>(split_mix(seed + index * kGolden) >> 56U);
}

}  // namespace

float hash_weight(std::string_view name, std::uint64_t index) noexcept {
  return hashed_value(kind_of(name), hashed_byte(fnv1a(name), index));
}

WeightSource hash_weights(const ModelConfig& config) {
  std::vector<TensorSpec> tensors = required_tensors(config);
  return {tensors, [tensors](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
            const std::string& name = tensors[index].name;
            const std::uint64_t seed = fnv1a(name);
            fill(
                table_of(kind_of(name), hashed_value), [seed](std::uint64_t i) { return hashed_byte(seed, i); }, type,
                first, out);
          }};
}

WeightSource random_weights(const ModelConfig& config, std::uint64_t seed) {
  std::vector<TensorSpec> tensors = required_tensors(config);
  return {tensors, [tensors, seed](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
            const std::string& name = tensors[index].name;
            const std::uint64_t start = fnv1a(name) ^ split_mix(seed);
            // Each number drawn gives eight weights.
            const auto byte_at = [start](std::uint64_t i) {
              return static_cast<std::uint32_t>(split_mix(start + (i >> 3U) * kGolden) >> ((i & 7U) * 8U)) & 0xFFU;
            };
            fill(table_of(kind_of(name), random_value), byte_at, type, first, out);
          }};
}

}  // namespace pascaline
