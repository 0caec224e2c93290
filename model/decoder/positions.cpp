#include "model/decoder/positions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace pascaline {
namespace {

class PositionWalk {
 public:
  PositionWalk(PromptPositions& result, std::int64_t next) : result_(&result), next_(next) {}

  void text() {
    put(next_, next_, next_);
    ++next_;
  }

  void image(std::int64_t first, const ImageTokens& image) {
    for (std::int64_t k = 0; k < image.count(); ++k) {
      put(next_, next_ + k / image.columns, next_ + k % image.columns);
    }
    result_->images.push_back({first, image.count()});
    next_ += std::max(image.rows, image.columns);
  }

  [[nodiscard]] std::int64_t next() const noexcept { return next_; }

 private:
  void put(std::int64_t t, std::int64_t h, std::int64_t w) {
    if (std::max(h, w) > std::numeric_limits<std::int32_t>::max()) {
      throw Error("a token's position exceeds 2^31-1");
    }
    result_->axes[0].push_back(static_cast<std::int32_t>(t));
    result_->axes[1].push_back(static_cast<std::int32_t>(h));
    result_->axes[2].push_back(static_cast<std::int32_t>(w));
  }

  PromptPositions* result_;
  std::int64_t next_;
};

// How many of the tokens from `first` on are the image token, up to `most`.
std::int64_t run_length(std::span<const std::int32_t> tokens, std::size_t first, std::int32_t image_token,
                        std::int64_t most) {
  const auto rest = tokens.subspan(first);
  const auto end = std::find_if(rest.begin(), rest.end(), [&](std::int32_t token) { return token != image_token; });
  return std::min<std::int64_t>(end - rest.begin(), most);
}

}  // namespace

PromptPositions mrope_positions(std::span<const std::int32_t> tokens, std::int32_t image_token,
                                std::span<const ImageTokens> images, std::int64_t first_index, std::int64_t delta) {
  PromptPositions result;
  PositionWalk walk(result, first_index + delta);
  std::size_t i = 0;
  while (i < tokens.size()) {
    if (tokens[i] != image_token) {
      walk.text();
      ++i;
      continue;
    }
    const std::size_t number = result.images.size();
    if (number == images.size()) {
      throw Error(fmt::format("token {} of the prompt is an image's, but only {} images are given", i, images.size()));
    }
    const ImageTokens& image = images[number];
    const std::int64_t there = run_length(tokens, i, image_token, image.count());
    if (image.rows < 1 || image.columns < 1 || there < image.count()) {
      throw Error(fmt::format("image {} has {} x {} tokens, but the prompt holds {} for it", number + 1, image.rows,
                              image.columns, there));
    }
    walk.image(static_cast<std::int64_t>(i), image);
    i += static_cast<std::size_t>(there);
  }
  if (result.images.size() < images.size()) {
    throw Error(
        fmt::format("{} images are given, but the prompt has positions for {}", images.size(), result.images.size()));
  }
  result.delta = walk.next() - first_index - static_cast<std::int64_t>(tokens.size());
  return result;
}

RopeTables rope_tables(std::int64_t positions, std::int64_t slots, double base, std::span<const float> divisors) {
  if (positions < 1 || slots < 1 || !(base > 1.0)) {
    throw Error(
        fmt::format("rotary tables of {} positions and {} slots with base {} cannot be made", positions, slots, base));
  }
  const bool are_positive = std::all_of(divisors.begin(), divisors.end(), [](float each) { return each > 0; });
  if (!divisors.empty() && (divisors.size() != static_cast<std::size_t>(slots) || !are_positive)) {
    throw Error(
        fmt::format("{} divisors of {} frequencies are not one positive number for each", divisors.size(), slots));
  }
  std::vector<double> frequency(static_cast<std::size_t>(slots));
  for (std::size_t j = 0; j < frequency.size(); ++j) {
    frequency[j] = static_cast<float>(std::pow(base, -static_cast<double>(j) / static_cast<double>(slots)));
    if (!divisors.empty()) {
      frequency[j] = static_cast<float>(frequency[j] / divisors[j]);
    }
  }
  RopeTables tables{positions, slots, {}, {}};
  const auto count = static_cast<std::size_t>(positions * slots);
  tables.cosine.reserve(count);
  tables.sine.reserve(count);
  for (std::int64_t p = 0; p < positions; ++p) {
    for (const double f : frequency) {
      const double angle = static_cast<double>(p) * f;
      tables.cosine.push_back(static_cast<float>(std::cos(angle)));
      tables.sine.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return tables;
}

std::array<std::vector<std::int32_t>, 2> patch_positions(std::int64_t rows, std::int64_t columns, std::int64_t merge) {
  if (merge < 1 || rows < 1 || columns < 1 || rows % merge != 0 || columns % merge != 0) {
    throw Error(fmt::format("a grid of {} x {} patches has no whole blocks of {} x {}", rows, columns, merge, merge));
  }
  std::array<std::vector<std::int32_t>, 2> result;
  const std::int64_t area = merge * merge;
  const std::int64_t blocks = columns / merge;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t block = i / area;
    const std::int64_t inside = i % area;
    result[0].push_back(static_cast<std::int32_t>(block / blocks * merge + inside / merge));
    result[1].push_back(static_cast<std::int32_t>(block % blocks * merge + inside % merge));
  }
  return result;
}

}  // namespace pascaline
