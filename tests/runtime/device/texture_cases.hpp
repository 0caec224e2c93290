#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/elements.hpp"
#include "runtime/device/device.hpp"

namespace pascaline::testing {

inline constexpr const char* kTextureKernels = R"(
extern "C" __global__ void read_rows(cudaTextureObject_t texture, const float* places, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = tex2D<float>(texture, places[2 * i], places[2 * i + 1]);
}
extern "C" __global__ void read_pairs(cudaTextureObject_t texture, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float2 pair;
  tex1Dfetch(&pair, texture, i - 1);
  out[2 * i] = pair.x;
  out[2 * i + 1] = pair.y;
}
extern "C" __global__ void read_bytes(cudaTextureObject_t texture, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = tex1Dfetch<uchar4>(texture, i).z;
}
)";

/// Compiles one of these kernels and loads it.
using LoadTextureKernel = std::function<Kernel(const std::string& function)>;

template <typename T>
Buffer uploaded(Device& device, const std::vector<T>& values) {
  Buffer buffer = device.allocate(values.size() * sizeof(T));
  device.upload(buffer, std::as_bytes(std::span(values)));
  return buffer;
}

template <typename... Arguments>
std::vector<float> floats_of(Device& device, const Kernel& kernel, std::size_t floats, Arguments... arguments) {
  const Buffer out = device.allocate(floats * sizeof(float));
  void* address = out.data();
  std::vector<void*> pointers{&arguments...};
  pointers.insert(pointers.end() - 1, &address);
  device.launch(kernel, {{1, 1, 1}, {64, 1, 1}, 0}, pointers);
  device.synchronize();
  std::vector<float> values(floats);
  device.download(std::as_writable_bytes(std::span(values)), out);
  return values;
}

/// Checks textures against what CUDA's programming guide says.
inline void expect_textures(Device& device, const LoadTextureKernel& load) {
  std::vector<float> image;  // 3 rows of 8: 10 · row + column
  for (int i = 0; i < 24; ++i) {
    image.push_back(static_cast<float>(10 * (i / 8) + i % 8));
  }
  const Buffer pixels = uploaded(device, image);
  const Kernel rows = load("read_rows");
  const auto read = [&](const TextureUse& use, const std::vector<float>& places) {
    const Texture texture = device.make_texture(pixels.span(), {use, ElementType::float32, 1, 8, 3});
    const Buffer at = uploaded(device, places);
    return floats_of(device, rows, places.size() / 2, texture.object(), at.data(), static_cast<int>(places.size() / 2));
  };
  using Values = std::vector<float>;
  const Values places{2.5F, 1.5F, 2.99F, 1.0F, -3.0F, 0.5F, 9.0F, 2.5F, 0.5F, 7.0F};
  EXPECT_EQ(read({}, places), (Values{12, 12, 0, 27, 20}));
  EXPECT_EQ(read({.zero_outside = true}, places), (Values{12, 12, 0, 0, 0}));
  EXPECT_EQ(read({.unit_coordinates = true}, {2.5F / 8, 0.5F, 1.5F, 0.9F}), (Values{12, 27}));
  const Values between{2.5F, 1.5F, 2.75F, 1.5F, 2.0F, 1.0F, 0.0F, 0.5F};
  EXPECT_EQ(read({.interpolates = true}, between), (Values{12, 12.25F, 6.5F, 0}));
  EXPECT_EQ(read({.interpolates = true, .zero_outside = true}, {2.0F, 0.0F, 1.5F, 3.0F}), (Values{0.75F, 10.5F}));

  // Outside a row, tex1Dfetch returns 0.
  std::vector<std::uint16_t> halves;
  for (const float value : {1.0F, 0.5F, -2.0F, 4.0F}) {
    halves.push_back(half_from_float(value));
  }
  const Buffer pairs = uploaded(device, halves);
  const Texture of_pairs = device.make_texture(pairs.span(), {{}, ElementType::float16, 2, 2, 0});
  EXPECT_EQ(floats_of(device, load("read_pairs"), 8, of_pairs.object(), 4),
            (Values{0, 0, 1.0F, 0.5F, -2.0F, 4.0F, 0, 0}));

  const std::vector<std::uint8_t> bytes{1, 2, 3, 4, 51, 102, 255, 0};
  const Buffer colours = uploaded(device, bytes);
  const Texture of_colours = device.make_texture(colours.span(), {{}, ElementType::uint8, 4, 2, 0});
  EXPECT_EQ(floats_of(device, load("read_bytes"), 2, of_colours.object(), 2), (Values{3, 255}));
  const Texture as_floats = device.make_texture(colours.span(), {{.unit_values = true}, ElementType::uint8, 2, 4, 0});
  const Values unit = floats_of(device, load("read_pairs"), 6, as_floats.object(), 3);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(unit[static_cast<std::size_t>(i)], i < 2 ? 0 : static_cast<float>(i - 1) / 255, 1e-7) << i;
  }
}

}  // namespace pascaline::testing
