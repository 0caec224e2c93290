#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/measure/input_drawing.hpp"

namespace pascaline::testing {

/// Matrices of every element type and fill, with sizes and ends that a seed chooses; among them empty ones, and ones of
/// a single element.
[[nodiscard]] inline std::vector<DrawnMatrix> drawn_matrices(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::int64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
  std::vector<DrawnMatrix> matrices;
  for (const FormatTraits& type : kElementTypes) {
    for (const Fill fill : {Fill::none, Fill::zero, Fill::uniform, Fill::normal, Fill::ramp, Fill::row_ramp}) {
      const double high = std::ldexp(1.0 + static_cast<double>(up_to(1000)) / 1000, static_cast<int>(up_to(20)) - 6);
      const double low = up_to(3) == 0 ? 0.0 : -high * static_cast<double>(up_to(1000)) / 999;
      const std::uint64_t own = std::uint64_t{random()} << 32U | random();
      for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{0, 5},
                                          {1, 1},
                                          {32, 64},
                                          {33, 1},
                                          {1 + up_to(90), 1 + up_to(700)},
                                          {1 + up_to(5), 1 + up_to(9000)}}) {
        matrices.push_back({type.type, rows, columns, fill, low, high, own});
      }
    }
  }
  return matrices;
}

/// Draws over other bytes and compares with what the processor draws; what is around must stay.
inline void expect_drawn_alike(Device& device, InputDrawing& drawing, const DrawnMatrix& matrix) {
  const std::vector<std::byte> right = draw_matrix(matrix);
  const Buffer buffer = device.allocate(right.size());
  device.fill(buffer, 0xA5);
  drawing.draw(buffer.span(), matrix);
  std::vector<std::byte> found(right.size());
  device.download(found, buffer);
  EXPECT_TRUE(found == right) << fmt::format("{} {}x{} fill {} from {} to {} seed {}", name_of(matrix.type),
                                             matrix.rows, matrix.columns, static_cast<int>(matrix.fill), matrix.low,
                                             matrix.high, matrix.seed);
  EXPECT_TRUE(device.guards_intact(buffer));
}

}  // namespace pascaline::testing
