#include "model/image/preprocessor_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/util/config_keys.hpp"
#include "core/util/foreign_text.hpp"

namespace pascaline {
namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 30;
constexpr std::int64_t kMaxPatch = 256;
constexpr std::int64_t kMaxStep = 16;  // of temporal_patch_size and merge_size
constexpr double kMaxRatio = 200;
constexpr std::string_view kNested = "image_processor";

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

using Keys = std::string_view;

constexpr std::array kRead{
    Keys("image_mean"), Keys("image_processor_type"), Keys("image_std"),  Keys("max_pixels"),
    Keys("merge_size"), Keys("min_pixels"),           Keys("patch_size"), Keys("rescale_factor"),
    Keys("size"),       Keys("temporal_patch_size"),
};
// No image can be prepared without these steps, or with others.
constexpr std::array kLimited{
    LimitedKey{"do_center_crop", "[false]"}, LimitedKey{"do_convert_rgb", "[true]"},
    LimitedKey{"do_normalize", "[true]"},    LimitedKey{"do_pad", "[false]"},
    LimitedKey{"do_rescale", "[true]"},      LimitedKey{"do_resize", "[true]"},
    LimitedKey{"resample", "[3]"},  // bicubic, as Pillow counts its filters
};
// Sizes of steps that are refused, settings of videos, and how the library that wrote the file takes and gives arrays.
constexpr std::array kNoEffect{
    Keys("_processor_class"),
    Keys("_valid_processor_keys"),
    Keys("auto_map"),
    Keys("crop_size"),
    Keys("data_format"),
    Keys("default_to_square"),
    Keys("device"),
    Keys("disable_grouping"),
    Keys("do_sample_frames"),
    Keys("feature_extractor_type"),
    Keys("fps"),
    Keys("input_data_format"),
    Keys("max_frames"),
    Keys("min_frames"),
    Keys("pad_size"),
    Keys("processor_class"),
    Keys("return_metadata"),
    Keys("return_tensors"),
    Keys("video_processor_type"),
};
constexpr std::array kSizeRead{Keys("longest_edge"), Keys("shortest_edge")};

void check_processor(const JsonNode& root) {
  if (root.has_value("image_processor_type")) {
    const std::string type = root.at("image_processor_type").text();
    if (!type.starts_with("Qwen2VLImageProcessor") && !type.starts_with("Qwen3VLImageProcessor")) {
      root.at("image_processor_type").fail(fmt::format("'{}' is not the processor of a Qwen3-VL model", type));
    }
  }
}

// The older keys count where both are given, as for the library that reads these files.
JsonNode edge(const JsonNode& root, std::string_view key, std::string_view old_key) {
  return root.has_value(old_key) ? root.at(old_key) : root.at("size").at(key);
}

void read_edges(const JsonNode& root, PreprocessorConfig& config) {
  if (root.has_value("size")) {
    check_keys(root.at("size"), {kSizeRead, {}, {}});
  }
  const JsonNode shortest = edge(root, "shortest_edge", "min_pixels");
  const JsonNode longest = edge(root, "longest_edge", "max_pixels");
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
  const JsonNode whole(document, file);
  const JsonNode root = whole.has_value(kNested) ? whole.at(kNested) : whole;
  PreprocessorConfig config;
  config.patch_size = integer_within(root.at("patch_size"), 1, kMaxPatch);
  config.temporal_patch_size = integer_within(root.at("temporal_patch_size"), 1, kMaxStep);
  config.merge_size = integer_within(root.at("merge_size"), 1, kMaxStep);
  read_edges(root, config);
  config.image_mean = channel_values(root.at("image_mean"), -1e6);
  config.image_std = channel_values(root.at("image_std"), 0);
  if (root.has_value("rescale_factor")) {
    config.rescale_factor = root.at("rescale_factor").real();
    if (!(config.rescale_factor >= 1e-6 && config.rescale_factor <= 1e6)) {
      root.at("rescale_factor").fail(fmt::format("{} is out of range", config.rescale_factor));
    }
  }
  check_processor(root);
  check_keys(root, {kRead, kLimited, kNoEffect});
  return config;
}

std::filesystem::path preprocessor_file(const std::filesystem::path& folder) {
  std::filesystem::path whole = folder / "processor_config.json";
  if (std::filesystem::exists(whole)) {  // Transformers 4 wrote such a file, too, but without these settings
    const nlohmann::json document = parse_json(read_foreign_text(whole), whole.string());
    if (JsonNode(document, whole.string()).has_value(kNested)) {
      return whole;
    }
  }
  return folder / "preprocessor_config.json";
}

PreprocessorConfig read_preprocessor_config(const std::filesystem::path& file) {
  return parse_preprocessor_config(read_foreign_text(file), file.string());
}

PreprocessorConfig limit_pixels(PreprocessorConfig config, std::int64_t pixels) {
  const std::int64_t least = config.factor() * config.factor();
  if (pixels < least) {
    throw Error(fmt::format("a limit of {} pixels per image is less than one token: allow at least {}", pixels, least));
  }
  config.longest_edge = std::min(config.longest_edge, pixels);
  config.shortest_edge = std::min(config.shortest_edge, config.longest_edge);
  return config;
}

PreprocessorConfig limit_tokens(const PreprocessorConfig& config, std::int64_t tokens) {
  if (tokens < 1) {
    throw Error(fmt::format("a limit of {} tokens per image leaves nothing of it: allow at least 1", tokens));
  }
  const std::int64_t pixels = config.factor() * config.factor();
  return limit_pixels(config, std::min(tokens, std::numeric_limits<std::int64_t>::max() / pixels) * pixels);
}

TargetSize target_size(std::int64_t height, std::int64_t width, const PreprocessorConfig& config) {
  if (height < 1 || width < 1) {
    throw Error(fmt::format("an image of {} x {} pixels cannot be resized: it is empty", width, height));
  }
  const auto h = static_cast<double>(height);
  const auto w = static_cast<double>(width);
  if (std::max(h, w) / std::min(h, w) > kMaxRatio) {
    throw Error(
        fmt::format("an image of {} x {} pixels is too long: one side may be at most {} times the other, crop "
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
