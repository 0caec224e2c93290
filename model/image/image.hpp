#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pascaline {

/// An image of 8-bit RGB: `pixels` is [height, width, 3], rows from the top.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
  std::string name{};                ///< the file it was read from, for messages; empty if it is of no file
  std::vector<std::string> notes{};  ///< what was done to the file's image that a user should know, a clause each

  /// Bytes of a row.
  [[nodiscard]] std::size_t stride() const noexcept { return static_cast<std::size_t>(width) * 3; }
  [[nodiscard]] const std::uint8_t* row(std::int64_t y) const noexcept {
    return pixels.data() + static_cast<std::size_t>(y) * stride();
  }
  [[nodiscard]] std::uint8_t* row(std::int64_t y) noexcept {
    return pixels.data() + static_cast<std::size_t>(y) * stride();
  }
};

/// An image of that size, black.
[[nodiscard]] inline Image black_image(std::int64_t height, std::int64_t width) {
  return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width) * 3), {}};
}

}  // namespace pascaline
