#include "model/image/resize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/util/worker_pool.hpp"
#include "model/image/resize_weights.hpp"

namespace pascaline {
namespace {

// Work of a thread's slice, in multiplications; below it starting a thread does not pay.
constexpr std::size_t kSliceWork = std::size_t{1} << 21;
constexpr std::size_t kChunk = 512;  // values of a row that are summed up at a time, small enough for the first cache

std::size_t rows_of_slice(std::size_t values, std::size_t taps) {
  return std::max<std::size_t>(1, kSliceWork / std::max<std::size_t>(values * taps, 1));
}

std::uint8_t to_level(std::int32_t sum, int precision) {
  return static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255));
}

// A row's channels one after the other, each with `taps` values behind it that weights of 0 may fall on.
void split_channels(const std::uint8_t* row, std::size_t width, std::size_t plane, std::vector<std::int16_t>& planes) {
  for (std::size_t c = 0; c < 3; ++c) {
    std::int16_t* to = planes.data() + c * plane;
    for (std::size_t x = 0; x < width; ++x) {
      to[x] = row[x * 3 + c];
    }
  }
}

std::int32_t weighted_sum(const std::int16_t* values, const std::int16_t* weights, std::size_t taps) {
  std::int32_t sum = 0;
  for (std::size_t k = 0; k < taps; ++k) {
    sum += static_cast<std::int32_t>(values[k]) * weights[k];
  }
  return sum;
}

Image resize_rows(const Image& image, std::int64_t width) {
  const ResizeWeights axis = resize_weights(image.width, width);
  Image out = black_image(image.height, width);
  const auto columns = static_cast<std::size_t>(width);
  const auto in_columns = static_cast<std::size_t>(image.width);
  const std::size_t plane = in_columns + axis.taps;
  const std::int32_t half = std::int32_t{1} << (axis.precision - 1);
  const auto resize_slice = [&](std::size_t begin, std::size_t end) {
    std::vector<std::int16_t> planes(plane * 3);
    for (std::size_t y = begin; y < end; ++y) {
      split_channels(image.row(static_cast<std::int64_t>(y)), in_columns, plane, planes);
      std::uint8_t* to = out.row(static_cast<std::int64_t>(y));
      for (std::size_t x = 0; x < columns; ++x) {
        const std::int16_t* weights = axis.weights.data() + x * axis.taps;
        for (std::size_t c = 0; c < 3; ++c) {
          const std::int16_t* from = planes.data() + c * plane + axis.first[x];
          *to++ = to_level(half + weighted_sum(from, weights, axis.taps), axis.precision);
        }
      }
    }
  };
  worker_pool().run(static_cast<std::size_t>(image.height), rows_of_slice(columns * 3, axis.taps), resize_slice);
  return out;
}

// sums[i] += the weighted values of four rows that follow each other.
void add_four_rows(const std::uint8_t* row, std::size_t stride, const std::int16_t* weights, std::size_t values,
                   std::int32_t* __restrict sums) {
  const std::int16_t w0 = weights[0];
  const std::int16_t w1 = weights[1];
  const std::int16_t w2 = weights[2];
  const std::int16_t w3 = weights[3];
  for (std::size_t i = 0; i < values; ++i) {
    sums[i] += row[i] * w0 + row[stride + i] * w1 + row[2 * stride + i] * w2 + row[3 * stride + i] * w3;
  }
}

void add_row(const std::uint8_t* row, std::int16_t weight, std::size_t values, std::int32_t* __restrict sums) {
  for (std::size_t i = 0; i < values; ++i) {
    sums[i] += row[i] * weight;
  }
}

// One row of the output from `count` rows of the source.
void blend_rows(const std::uint8_t* from, std::size_t stride, const std::int16_t* weights, std::size_t count,
                int precision, std::uint8_t* to) {
  std::array<std::int32_t, kChunk> sums;
  for (std::size_t begin = 0; begin < stride; begin += kChunk) {
    const std::size_t values = std::min(kChunk, stride - begin);
    sums.fill(std::int32_t{1} << (precision - 1));
    std::size_t k = 0;
    for (; k + 4 <= count; k += 4) {
      add_four_rows(from + begin + k * stride, stride, weights + k, values, sums.data());
    }
    for (; k < count; ++k) {
      add_row(from + begin + k * stride, weights[k], values, sums.data());
    }
    for (std::size_t i = 0; i < values; ++i) {
      to[begin + i] = to_level(sums[i], precision);
    }
  }
}

Image resize_columns(const Image& image, std::int64_t height) {
  const ResizeWeights axis = resize_weights(image.height, height);
  Image out = black_image(height, image.width);
  const std::size_t stride = image.stride();
  const auto resize_slice = [&](std::size_t begin, std::size_t end) {
    for (std::size_t y = begin; y < end; ++y) {
      blend_rows(image.pixels.data() + axis.first[y] * stride, stride, axis.weights.data() + y * axis.taps,
                 axis.count[y], axis.precision, out.row(static_cast<std::int64_t>(y)));
    }
  };
  worker_pool().run(static_cast<std::size_t>(height), rows_of_slice(stride, axis.taps), resize_slice);
  return out;
}

}  // namespace

void check_pixels(const Image& image) {
  const bool fits = image.height > 0 && image.width > 0 && image.pixels.size() % image.stride() == 0 &&
                    image.pixels.size() / image.stride() == static_cast<std::size_t>(image.height);
  if (!fits) {
    throw Error(fmt::format("an image of {} x {} pixels has {} bytes: expected 3 per pixel, and at least one pixel",
                            image.width, image.height, image.pixels.size()));
  }
}

Image resize_bicubic(const Image& image, std::int64_t height, std::int64_t width) {
  check_pixels(image);
  if (height < 1 || width < 1) {
    throw Error(
        fmt::format("an image cannot be resized to {} x {} pixels: both sides must be positive", width, height));
  }
  if (width == image.width) {
    return height == image.height ? image : resize_columns(image, height);
  }
  const Image wide = resize_rows(image, width);
  return height == image.height ? wide : resize_columns(wide, height);
}

}  // namespace pascaline
