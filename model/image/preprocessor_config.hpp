#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace pascaline {

/// What a model's folder says about still images. The edges are counts of pixels, as the format has it.
struct PreprocessorConfig {
  std::int64_t shortest_edge = 0;  ///< fewest pixels of a resized image
  std::int64_t longest_edge = 0;   ///< most pixels of a resized image
  std::int64_t patch_size = 0;
  std::int64_t temporal_patch_size = 0;
  std::int64_t merge_size = 0;  ///< patches a side that become one token
  double rescale_factor = 1.0 / 255;
  std::array<double, 3> image_mean{};
  std::array<double, 3> image_std{};

  friend bool operator==(const PreprocessorConfig&, const PreprocessorConfig&) = default;

  /// Pixels a side of what becomes one token; both sides of a resized image are multiples of it.
  [[nodiscard]] std::int64_t factor() const noexcept { return patch_size * merge_size; }
  /// Values of a patch: channels * temporal_patch_size * patch_size * patch_size.
  [[nodiscard]] std::int64_t patch_values() const noexcept { return 3 * temporal_patch_size * patch_size * patch_size; }
};

/// The file of a model's folder that has these settings: processor_config.json if they are in it under
/// "image_processor", as Transformers 5 writes them; else preprocessor_config.json, which may not exist. Throws
/// SpaceError if a processor_config.json is not JSON.
[[nodiscard]] std::filesystem::path preprocessor_file(const std::filesystem::path& folder);

/// Reads the text of one of these files. `size` holds shortest_edge and longest_edge; the older keys min_pixels
/// and max_pixels count before it. Throws SpaceError naming file and JSON pointer of a key that is missing, out of
/// range or not known, or of a setting that is not that of the Qwen2-VL image processor (another resampling, a step
/// left out or added).
[[nodiscard]] PreprocessorConfig parse_preprocessor_config(std::string_view text, const std::string& file);

/// Reads one of these files; throws as `parse_preprocessor_config`, Error if the file cannot be read.
[[nodiscard]] PreprocessorConfig read_preprocessor_config(const std::filesystem::path& file);

/// The configuration with images limited to that many pixels (tokens) after resizing. It never raises the limit.
/// Images of extreme ratio may exceed it, as a side is at least one token, and so may small ones, whose sides are
/// rounded up when they are enlarged. Throws Error if not one token fits.
[[nodiscard]] PreprocessorConfig limit_pixels(PreprocessorConfig config, std::int64_t pixels);
[[nodiscard]] PreprocessorConfig limit_tokens(const PreprocessorConfig& config, std::int64_t tokens);

struct TargetSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const TargetSize&) const = default;
};

/// Size that an image is resized to: multiples of the factor, pixels within the configuration's limits, ratio kept as
/// well as that allows. Throws Error if one side is more than 200 times the other.
[[nodiscard]] TargetSize target_size(std::int64_t height, std::int64_t width, const PreprocessorConfig& config);

/// Tokens that the language model sees of an image resized to that size.
[[nodiscard]] std::int64_t image_tokens(const TargetSize& size, const PreprocessorConfig& config);

}  // namespace pascaline
