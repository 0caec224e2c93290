#include <algorithm>
#include <array>
#include <cstring>

#include "core/elements.hpp"
#include "core/util/worker_pool.hpp"
#include "model/checkpoint/weight_source.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kDrawnAtOnce = 1U << 20U;
constexpr std::size_t kBytesAtOnce = 4096;
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

// A weight has one of 256 values, by the byte drawn for it.
using Values = std::array<float, 256>;

// In [-1, 1).
float unit_of(std::uint32_t byte) noexcept { return (static_cast<float>(byte) - 128.0F) / 128.0F; }

float hashed_value(TensorKind kind, std::uint32_t byte) noexcept {
  if (kind == TensorKind::norm) {
    return 1.0F + (static_cast<float>(byte >> 3U) - 16.0F) / 64.0F;
  }
  return unit_of(byte) / (kind == TensorKind::bias ? 16.0F : 8.0F);
}

// Odd multiples, so that the mean is exact; few enough values for the 8 bits of a bfloat16.
float random_value(TensorKind kind, std::uint32_t byte) noexcept {
  if (kind == TensorKind::norm) {
    return 1.0F + (static_cast<float>(byte >> 4U) - 7.5F) / 64.0F;
  }
  return (2.0F * static_cast<float>(byte) - 255.0F) / 256.0F / 32.0F;
}

Values table_of(TensorKind kind, float (*value)(TensorKind, std::uint32_t)) noexcept {
  Values values{};
  for (std::uint32_t byte = 0; byte < values.size(); ++byte) {
    values[byte] = value(kind, byte);
  }
  return values;
}

// Writes the table's values, in the type of T, for the bytes that `draw` gives for the elements from `first` on.
template <typename T, typename Draw>
void look_up(const std::array<T, 256>& table, const Draw& draw, std::uint64_t first, std::span<std::byte> out) {
  worker_pool().run(out.size() / sizeof(T), kDrawnAtOnce, [&](std::size_t begin, std::size_t end) {
    std::array<std::uint8_t, kBytesAtOnce> bytes;
    for (std::size_t at = begin; at < end; at += bytes.size()) {
      const std::size_t count = std::min(bytes.size(), end - at);
      draw(first + at, std::span(bytes).first(count));
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(out.data() + (at + i) * sizeof(T), &table[bytes[i]], sizeof(T));
      }
    }
  });
}

template <typename Draw>
void fill(const Values& values, const Draw& draw, ElementType type, std::int64_t first, std::span<std::byte> out) {
  const auto begin = static_cast<std::uint64_t>(first);
  if (type == ElementType::float32) {
    look_up(values, draw, begin, out);
    return;
  }
  std::array<std::uint16_t, 256> narrow{};
  std::transform(values.begin(), values.end(), narrow.begin(),
                 type == ElementType::float16 ? half_from_float : bfloat_from_float);
  look_up(narrow, draw, begin, out);
}

std::uint8_t hashed_byte(std::uint64_t start, std::uint64_t index) noexcept {
  return static_cast<std::uint8_t>(split_mix(start + index * kGolden) >> 56U);
}

void draw_hashed(std::uint64_t start, std::uint64_t first, std::span<std::uint8_t> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = hashed_byte(start, first + i);
  }
}

// Each number drawn gives eight bytes, its lowest first.
void draw_random(std::uint64_t start, std::uint64_t first, std::span<std::uint8_t> out) noexcept {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t index = first + done;
    const std::uint64_t number = split_mix(start + index / sizeof(std::uint64_t) * kGolden);
    const std::size_t skipped = index % sizeof number;
    const std::size_t count = std::min(sizeof number - skipped, out.size() - done);
    if (count == sizeof number) {
      std::memcpy(out.data() + done, &number, sizeof number);
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        out[done + i] = static_cast<std::uint8_t>(number >> ((skipped + i) * 8U));
      }
    }
    done += count;
  }
}

}  // namespace

float hash_weight(const TensorSpec& tensor, std::uint64_t index) noexcept {
  return hashed_value(tensor.kind, hashed_byte(fnv1a(tensor.name), index));
}

float hash_pixel(std::uint64_t index) noexcept { return unit_of(hashed_byte(fnv1a("pixel_values"), index)); }

WeightSource hash_weights(const ModelConfig& config) {
  std::vector<TensorSpec> tensors = required_tensors(config);
  return {tensors, [tensors](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
            const TensorSpec& tensor = tensors[index];
            const auto draw = [start = fnv1a(tensor.name)](std::uint64_t at, std::span<std::uint8_t> bytes) {
              draw_hashed(start, at, bytes);
            };
            fill(table_of(tensor.kind, hashed_value), draw, type, first, out);
          }};
}

WeightSource weights_without_values(const ModelConfig& config) { return {required_tensors(config), {}}; }

WeightSource random_weights(const ModelConfig& config, std::uint64_t seed) {
  std::vector<TensorSpec> tensors = required_tensors(config);
  return {tensors, [tensors, seed](std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) {
            const TensorSpec& tensor = tensors[index];
            const auto draw = [start = fnv1a(tensor.name) ^ split_mix(seed)](
                                  std::uint64_t at, std::span<std::uint8_t> bytes) { draw_random(start, at, bytes); };
            fill(table_of(tensor.kind, random_value), draw, type, first, out);
          }};
}

}  // namespace pascaline
