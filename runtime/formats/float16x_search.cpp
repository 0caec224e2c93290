#include "runtime/formats/float16x_search.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "core/util/worker_pool.hpp"

namespace pascaline {
namespace {

// What holds all of float16 and all of bfloat16, the first candidates.
constexpr std::array<Float16x, 2> kLossless{{{5, 15}, {8, 127}}};
constexpr int kMinExponentBits = 4;
constexpr int kMaxExponentBits = 8;
constexpr std::size_t kBlockValues = 256;
constexpr std::int64_t kPartValues = std::int64_t{1} << 18;

float largest_of(std::span<const float> values) noexcept {
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

// Magnitudes that are no zeros.
struct Magnitudes {
  float least = std::numeric_limits<float>::infinity();
  float largest = 0;

  explicit Magnitudes(std::span<const float> values) noexcept {
    for (const float value : values) {
      const float magnitude = std::fabs(value);
      const float counted = magnitude > 0 ? magnitude : std::numeric_limits<float>::infinity();
      least = counted < least ? counted : least;
      largest = magnitude > largest ? magnitude : largest;
    }
  }
  // Whether all are normal numbers of the format, and none saturates: the errors then depend on its width only.
  [[nodiscard]] bool fit(Float16x format) const noexcept {
    return least >= std::ldexp(1.0F, 1 - format.bias) && largest <= float_from_16x(format, format.largest_code());
  }
};

// What is read at a time.
struct TensorPart {
  std::size_t tensor;
  std::int64_t first;
  std::int64_t count;
};

}  // namespace

Float16xSearch::Float16xSearch(float largest) {
  candidates_.assign(kLossless.begin(), kLossless.end());
  if (largest == 0) {
    return;
  }
  const int exponent = std::ilogb(largest);
  for (int bits = kMinExponentBits; bits <= kMaxExponentBits; ++bits) {
    const int largest_exponent = bits == kMaxExponentBits ? 254 : (1 << bits) - 1;
    for (int lower = 0; lower <= 2; ++lower) {
      const Float16x format{bits, largest_exponent - (exponent - lower)};
      if (format.is_valid() && std::find(candidates_.begin(), candidates_.end(), format) == candidates_.end()) {
        candidates_.push_back(format);
      }
    }
  }
}

void Float16xSearch::add(std::span<const float> values, Errors& errors) const noexcept {
  for (std::size_t at = 0; at < values.size(); at += kBlockValues) {
    add_block(values.subspan(at, std::min(kBlockValues, values.size() - at)), errors);
  }
}

void Float16xSearch::add_block(std::span<const float> values, Errors& errors) const noexcept {
  const Magnitudes magnitudes(values);
  std::array<std::optional<double>, kMaxExponentBits + 1> of_width;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Float16x format = candidates_[i];
    if (!magnitudes.fit(format)) {
      errors[i] += squared_error(format, values);
      continue;
    }
    auto& known = of_width[static_cast<std::size_t>(format.exponent_bits)];
    known = known ? known : squared_error(format, values);
    errors[i] += *known;
  }
}

Float16x Float16xSearch::best(const Errors& errors) const noexcept {
  const auto* const end = errors.begin() + candidates_.size();
  return candidates_[static_cast<std::size_t>(std::min_element(errors.begin(), end) - errors.begin())];
}

Float16x best_float16x(std::span<const float> values) {
  const Float16xSearch search(largest_of(values));
  Float16xSearch::Errors errors{};
  search.add(values, errors);
  return search.best(errors);
}

Float16x best_float16x(std::span<const std::int64_t> tensors, const ReadValues& read) {
  std::vector<TensorPart> parts;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    for (std::int64_t first = 0; first < tensors[tensor]; first += kPartValues) {
      parts.push_back({tensor, first, std::min(kPartValues, tensors[tensor] - first)});
    }
  }
  const auto for_parts = [&](const auto& use) {
    worker_pool().run(parts.size(), 1, [&](std::size_t begin, std::size_t end) {
      std::vector<float> values;
      for (std::size_t part = begin; part < end; ++part) {
        values.resize(static_cast<std::size_t>(parts[part].count));
        read(parts[part].tensor, parts[part].first, values);
        use(part, values);
      }
    });
  };
  std::vector<float> largest(parts.size());
  std::array<std::atomic<bool>, kLossless.size()> are_exact{true, true};
  for_parts([&](std::size_t part, std::span<const float> values) {
    largest[part] = largest_of(values);
    for (std::size_t i = 0; i < kLossless.size(); ++i) {
      if (are_exact[i] && !holds_exactly(kLossless[i], values)) {
        are_exact[i] = false;
      }
    }
  });
  // Without any error the first of these would be chosen.
  for (std::size_t i = 0; i < kLossless.size(); ++i) {
    if (are_exact[i]) {
      return kLossless[i];
    }
  }
  const Float16xSearch search(largest_of(largest));
  // Added up in the order of the parts, so that rounding does not depend on the threads.
  std::vector<Float16xSearch::Errors> errors(parts.size());
  for_parts([&](std::size_t part, std::span<const float> values) { search.add(values, errors[part]); });
  Float16xSearch::Errors all{};
  for (const Float16xSearch::Errors& part : errors) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] += part[i];
    }
  }
  return search.best(all);
}

}  // namespace pascaline
