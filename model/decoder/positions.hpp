#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace pascaline {

/// An image's position in a prompt: rows and columns of tokens (patches / merge size).
struct ImageTokens {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  [[nodiscard]] std::int64_t count() const noexcept { return rows * columns; }
};

/// Neighbouring tokens of one image.
struct ImageRun {
  std::int64_t first = 0;  ///< index of the first token in the prompt
  std::int64_t count = 0;
};

/// What multi-axis rotary embedding needs to know of a prompt.
struct PromptPositions {
  std::array<std::vector<std::int32_t>, 3> axes;  ///< T, H and W of each token
  std::vector<ImageRun> images;                   ///< in the order of the images
  /// What is added to a later token's index in the sequence to get its position on all axes; at most that given.
  std::int64_t delta = 0;
};

/// Positions of `tokens`, the first of which is number `first_index` of its sequence, where those before had `delta`
/// (0 and 0 at a sequence's beginning). A text token takes the next position on all axes; an image's tokens share T
/// and count rows and columns on H and W, and the position after it is further by the larger of both. Throws Error if
/// the runs of `image_token` are not those of `images`, or a position exceeds 2^31-1.
[[nodiscard]] PromptPositions mrope_positions(std::span<const std::int32_t> tokens, std::int32_t image_token,
                                              std::span<const ImageTokens> images, std::int64_t first_index = 0,
                                              std::int64_t delta = 0);

/// Cosines and sines of the angles of rotary embedding, row-major [positions][slots].
struct RopeTables {
  std::int64_t positions = 0;
  std::int64_t slots = 0;
  std::vector<float> cosine;
  std::vector<float> sine;
};

/// Angle of position p and slot j: p · base^(−j / slots), divided by the slot's divisor where there are any, computed
/// in double with the frequency rounded to float32, as models are trained. Throws Error for sizes below 1, a base that
/// is not above 1, and divisors that are not positive or not as many as slots.
[[nodiscard]] RopeTables rope_tables(std::int64_t positions, std::int64_t slots, double base,
                                     std::span<const float> divisors = {});

/// Row and column of each patch of a grid [2][rows · columns], in blocks of merge × merge patches. Throws Error unless
/// the blocks divide the grid.
[[nodiscard]] std::array<std::vector<std::int32_t>, 2> patch_positions(std::int64_t rows, std::int64_t columns,
                                                                       std::int64_t merge);

}  // namespace pascaline
