#include "model/image/preprocess.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "model/image/resize.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kLevels = 256;
// The normalised value of each level of a channel.
using LevelTable = std::array<std::array<float, kLevels>, 3>;

// As the reference does it in float32: mean and deviation are scaled to levels once, then (level - mean) / deviation.
LevelTable level_table(const PreprocessorConfig& config) {
  const auto levels = static_cast<float>(1.0 / config.rescale_factor);
  LevelTable table;
  for (std::size_t c = 0; c < table.size(); ++c) {
    const float mean = static_cast<float>(config.image_mean[c]) * levels;
    const float deviation = static_cast<float>(config.image_std[c]) * levels;
    for (std::size_t level = 0; level < kLevels; ++level) {
      table[c][level] = (static_cast<float>(level) - mean) / deviation;
    }
  }
  return table;
}

// Writes one patch, whose upper left pixel is `corner`, and gives the place behind it.
float* write_patch(const std::uint8_t* corner, std::size_t stride, const PreprocessorConfig& config,
                   const LevelTable& table, float* out) {
  const auto side = static_cast<std::size_t>(config.patch_size);
  for (std::size_t c = 0; c < table.size(); ++c) {
    const std::array<float, kLevels>& level = table[c];
    const float* frame = out;
    for (std::size_t y = 0; y < side; ++y) {
      const std::uint8_t* from = corner + y * stride + c;
      for (std::size_t x = 0; x < side; ++x) {
        *out++ = level[from[x * 3]];
      }
    }
    for (std::int64_t t = 1; t < config.temporal_patch_size; ++t) {
      out = std::copy_n(frame, side * side, out);
    }
  }
  return out;
}

void write_patches(const Image& image, const PreprocessorConfig& config, const PatchGrid& grid, float* out) {
  const LevelTable table = level_table(config);
  const std::int64_t merge = config.merge_size;
  const std::int64_t patch = config.patch_size;
  const auto write_blocks = [&](std::size_t begin, std::size_t end) {
    float* to = out + begin * static_cast<std::size_t>(merge * grid.w * grid.columns);
    for (auto block_row = static_cast<std::int64_t>(begin); block_row < static_cast<std::int64_t>(end); ++block_row) {
      for (std::int64_t block = 0; block < grid.w / merge; ++block) {
        for (std::int64_t place = 0; place < merge * merge; ++place) {
          const std::int64_t row = block_row * merge + place / merge;
          const std::int64_t column = block * merge + place % merge;
          to = write_patch(image.row(row * patch) + column * patch * 3, image.stride(), config, table, to);
        }
      }
    }
  };
  worker_pool().run(static_cast<std::size_t>(grid.h / merge), 4, write_blocks);
}

}  // namespace

PatchGrid patch_grid(std::int64_t height, std::int64_t width, const PreprocessorConfig& config) {
  const TargetSize size = target_size(height, width, config);
  return {1, size.height / config.patch_size, size.width / config.patch_size, config.patch_values()};
}

PatchGrid preprocess(const Image& image, const PreprocessorConfig& config, std::span<float> out) {
  check_pixels(image);
  const PatchGrid grid = patch_grid(image.height, image.width, config);
  if (out.size() != grid.values()) {
    throw Error(
        fmt::format("patches of an image take {} values, but there is room for {}: ask patch_grid how much is "
                    "needed",
                    grid.values(), out.size()));
  }
  const TargetSize size{grid.h * config.patch_size, grid.w * config.patch_size};
  if (size == TargetSize{image.height, image.width}) {
    write_patches(image, config, grid, out.data());
  } else {
    write_patches(resize_bicubic(image, size.height, size.width), config, grid, out.data());
  }
  return grid;
}

Patches preprocess(const Image& image, const PreprocessorConfig& config) {
  check_pixels(image);
  Patches patches;
  patches.grid = patch_grid(image.height, image.width, config);
  patches.values = std::make_unique_for_overwrite<float[]>(patches.grid.values());
  preprocess(image, config, {patches.values.get(), patches.grid.values()});
  return patches;
}

}  // namespace pascaline
