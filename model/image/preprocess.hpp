#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "model/image/image.hpp"
#include "model/image/preprocessor_config.hpp"

namespace pascaline {

/// Patches of a still image: a grid of t x h x w, t = 1.
struct PatchGrid {
  std::int64_t t = 1;
  std::int64_t h = 0;
  std::int64_t w = 0;
  std::int64_t columns = 0;  ///< values of a patch

  [[nodiscard]] std::int64_t rows() const noexcept { return t * h * w; }
  [[nodiscard]] std::size_t values() const noexcept { return static_cast<std::size_t>(rows() * columns); }
};

/// An image as the vision tower takes it: float32 [grid.rows(), grid.columns].
///
/// The rows go block by block of merge_size x merge_size patches, blocks in raster order and patches in raster order
/// inside; so merge_size^2 rows make one token. In a row the order is channel (R, G, B), frame, y, x; the
/// temporal_patch_size frames of a still image are the same.
struct Patches {
  PatchGrid grid;
  std::unique_ptr<float[]> values;

  [[nodiscard]] std::span<const float> view() const noexcept { return {values.get(), grid.values()}; }
};

/// Grid of an image of that size (before it is resized); throws Error as `target_size`.
[[nodiscard]] PatchGrid patch_grid(std::int64_t height, std::int64_t width, const PreprocessorConfig& config);

/// Resizes to `target_size`, normalises to (value * rescale_factor - mean) / std in float32 and cuts into patches.
/// Runs on all processors. Throws Error if the image is empty, inconsistent or of an extreme ratio.
[[nodiscard]] Patches preprocess(const Image& image, const PreprocessorConfig& config);

/// The same into memory of the caller, which is as long as `patch_grid(...).values()`; throws Error if it is not.
PatchGrid preprocess(const Image& image, const PreprocessorConfig& config, std::span<float> out);

}  // namespace pascaline
