#include "runtime/image/preprocessor_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/error.hpp"
#include "core/json_reader.hpp"
#include "core/paths.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 30;
constexpr std::int64_t kMaxPatch = 256;
constexpr std::int64_t kMaxStep = 16;  // of temporal_patch_size and merge_size
constexpr double kMaxRatio = 200;
constexpr std::int64_t kBicubic = 3;  // as Pillow counts its filters

std::int64_t integer_within(const JsonNode& node, std::int64_t low, std::int64_t high) {
  const std::int64_t value = node.integer();
  if (value < low || value > high) {
    node.fail(fmt::format("{} is not from {} to {}", value, low, high));
  }
  return value;
}

std::array<double, 3> channel_values(const JsonNode& node, double above) {
  if (node.array_size() != 3) {
    node.fail(fmt::format("expected a value for each of 3 channels, found {}", node.array_size()));
  }
  std::array<double, 3> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = node.at(i).real();
    if (!(values[i] > above && values[i] <= 1e6)) {
      node.at(i).fail(fmt::format("{} is out of range", values[i]));
    }
  }
  return values;
}

// A key that may be absent or null, but must have the one value that is implemented.
bool present(const JsonNode& root, std::string_view key) { return root.has(key) && !root.at(key).value().is_null(); }

void check_steps(const JsonNode& root) {
  for (const std::string_view step : {"do_resize", "do_rescale", "do_normalize", "do_convert_rgb"}) {
    if (present(root, step) && !root.at(step).boolean()) {
      root.at(step).fail("pictures cannot be prepared without this step: expected true");
    }
  }
  if (present(root, "resample") && root.at("resample").integer() != kBicubic) {
    root.at("resample").fail(fmt::format("expected {}, bicubic", kBicubic));
  }
  if (present(root, "image_processor_type")) {
    const std::string type = root.at("image_processor_type").text();
    if (!type.starts_with("Qwen2VLImageProcessor") && !type.starts_with("Qwen3VLImageProcessor")) {
      root.at("image_processor_type").fail(fmt::format("'{}' is not the processor of a Qwen3-VL model", type));
    }
  }
}

void read_edges(const JsonNode& root, PreprocessorConfig& config) {
  const bool old_keys = !present(root, "size") && present(root, "min_pixels") && present(root, "max_pixels");
  const JsonNode shortest = old_keys ? root.at("min_pixels") : root.at("size").at("shortest_edge");
  const JsonNode longest = old_keys ? root.at("max_pixels") : root.at("size").at("longest_edge");
  config.shortest_edge = integer_within(shortest, 1, kMaxPixels);
  config.longest_edge = integer_within(longest, config.shortest_edge, kMaxPixels);
  if (config.longest_edge < config.factor() * config.factor()) {
    longest.fail(fmt::format("{} pixels are less than one token, {} x {}", config.longest_edge, config.factor(),
                             config.factor()));
  }
}

}  // namespace

PreprocessorConfig parse_preprocessor_config(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  const JsonNode root(document, file);
  PreprocessorConfig config;
  config.patch_size = integer_within(root.at("patch_size"), 1, kMaxPatch);
  config.temporal_patch_size = integer_within(root.at("temporal_patch_size"), 1, kMaxStep);
  config.merge_size = integer_within(root.at("merge_size"), 1, kMaxStep);
  read_edges(root, config);
  config.image_mean = channel_values(root.at("image_mean"), -1e6);
  config.image_std = channel_values(root.at("image_std"), 0);
  if (present(root, "rescale_factor")) {
    config.rescale_factor = root.at("rescale_factor").real();
    if (!(config.rescale_factor >= 1e-6 && config.rescale_factor <= 1e6)) {
      root.at("rescale_factor").fail(fmt::format("{} is out of range", config.rescale_factor));
    }
  }
  check_steps(root);
  return config;
}

PreprocessorConfig read_preprocessor_config(const std::filesystem::path& file) {
  return parse_preprocessor_config(read_file(file), file.string());
}

PreprocessorConfig limit_pixels(PreprocessorConfig config, std::int64_t pixels) {
  const std::int64_t least = config.factor() * config.factor();
  if (pixels < least) {
    throw Error(fmt::format("a limit of {} pixels a picture is less than one token: allow {} at least", pixels, least));
  }
  config.longest_edge = std::min(config.longest_edge, pixels);
  config.shortest_edge = std::min(config.shortest_edge, config.longest_edge);
  return config;
}

PreprocessorConfig limit_tokens(const PreprocessorConfig& config, std::int64_t tokens) {
  if (tokens < 1) {
    throw Error(fmt::format("a limit of {} tokens a picture leaves nothing of it: allow 1 at least", tokens));
  }
  const std::int64_t pixels = config.factor() * config.factor();
  return limit_pixels(config, std::min(tokens, std::numeric_limits<std::int64_t>::max() / pixels) * pixels);
}

TargetSize target_size(std::int64_t height, std::int64_t width, const PreprocessorConfig& config) {
  if (height < 1 || width < 1) {
    throw Error(fmt::format("a picture of {} x {} pixels cannot be resized: it is empty", width, height));
  }
  const auto h = static_cast<double>(height);
  const auto w = static_cast<double>(width);
  if (std::max(h, w) / std::min(h, w) > kMaxRatio) {
    throw Error(
        fmt::format("a picture of {} x {} pixels is too long: one side may be {} times the other at most, crop "
                    "it",
                    width, height, kMaxRatio));
  }
  const auto factor = static_cast<double>(config.factor());
  const auto most = static_cast<double>(config.longest_edge);
  const auto fewest = static_cast<double>(config.shortest_edge);
  // In the default rounding mode nearbyint takes halves to even.
  double new_h = factor * std::nearbyint(h / factor);
  double new_w = factor * std::nearbyint(w / factor);
  if (new_h * new_w > most) {
    const double beta = std::sqrt(h * w / most);
    new_h = std::max(factor, factor * std::floor(h / beta / factor));
    new_w = std::max(factor, factor * std::floor(w / beta / factor));
  } else if (new_h * new_w < fewest) {
    const double beta = std::sqrt(fewest / (h * w));
    new_h = factor * std::ceil(h * beta / factor);
    new_w = factor * std::ceil(w * beta / factor);
  }
  return {static_cast<std::int64_t>(new_h), static_cast<std::int64_t>(new_w)};
}

std::int64_t image_tokens(const TargetSize& size, const PreprocessorConfig& config) {
  return (size.height / config.factor()) * (size.width / config.factor());
}

}  // namespace pascaline
