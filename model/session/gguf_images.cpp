#include "model/session/gguf_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace pascaline {
namespace {

constexpr std::int64_t kMaxProjectorPixels = std::int64_t{1} << 30;

std::array<double, 3> channel_values(const GgufMetadata& metadata, std::string_view key, bool is_divisor) {
  constexpr double kMost = 1e6;
  const std::vector<double> found = metadata.reals(key);
  std::array<double, 3> values{};
  if (found.size() != values.size() || std::any_of(found.begin(), found.end(), [&](double value) {
        return !(std::abs(value) <= kMost) || (is_divisor && !(value > 0));
      })) {
    metadata.fail(key, "it does not have a possible value for each of 3 colours");
  }
  std::copy(found.begin(), found.end(), values.begin());
  return values;
}

std::int64_t pixel_limit(const GgufMetadata& metadata, std::string_view key, std::int64_t otherwise,
                         std::int64_t least) {
  const std::int64_t pixels = metadata.find_integer(key).value_or(otherwise);
  if (pixels < least || pixels > kMaxProjectorPixels) {
    metadata.fail(key,
                  fmt::format("{} pixels of an image are not possible ({} to {})", pixels, least, kMaxProjectorPixels));
  }
  return pixels;
}

}  // namespace

PreprocessorConfig gguf_preprocessor(const GgufMetadata& metadata, const VisionConfig& vision) {
  PreprocessorConfig config;
  config.patch_size = vision.patch;
  config.temporal_patch_size = vision.temporal_patch;
  config.merge_size = vision.merge;
  const std::int64_t token = config.factor() * config.factor();
  config.shortest_edge = pixel_limit(metadata, "clip.vision.image_min_pixels", kMinProjectorTokens * token, 1);
  config.longest_edge = pixel_limit(metadata, "clip.vision.image_max_pixels", kMaxProjectorTokens * token,
                                    std::max(config.shortest_edge, token));
  config.image_mean = channel_values(metadata, "clip.vision.image_mean", false);
  config.image_std = channel_values(metadata, "clip.vision.image_std", true);
  return config;
}

}  // namespace pascaline
