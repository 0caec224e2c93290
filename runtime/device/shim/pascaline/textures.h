#pragma once

#include <cstring>
#include <type_traits>

#include "pascaline/language.h"
#include "pascaline/math.h"
#include "pascaline/narrow_floats.h"
#include "pascaline/vectors.h"

// Texture objects over buffers, read with tex1Dfetch and tex2D.

using cudaTextureObject_t = unsigned long long;

namespace pascaline_host {

template <typename T, typename = void>
struct ChannelOf {
  using Number = T;
};

template <typename T>
struct ChannelOf<T, std::void_t<decltype(T::x)>> {
  using Number = decltype(T::x);
};

constexpr unsigned bytes_of(Texel texel) {
  switch (texel) {
    case Texel::int8:
    case Texel::uint8:
      return 1;
    case Texel::int16:
    case Texel::uint16:
    case Texel::float16:
      return 2;
    default:
      return 4;
  }
}

template <typename Stored>
Stored stored_at(const char* place) {
  Stored value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

inline float texel_as_float(const TextureView& texture, const char* place) {
  switch (texture.texel) {
    case Texel::float32:
      return stored_at<float>(place);
    case Texel::float16:
      return half_value(stored_at<unsigned short>(place));
    case Texel::uint8:
      return static_cast<float>(stored_at<unsigned char>(place)) / 255.0f;
    case Texel::uint16:
      return static_cast<float>(stored_at<unsigned short>(place)) / 65535.0f;
    case Texel::int8:
      return max(static_cast<float>(stored_at<signed char>(place)) / 127.0f, -1.0f);
    case Texel::int16:
      return max(static_cast<float>(stored_at<short>(place)) / 32767.0f, -1.0f);
    default:
      return stored_at<float>(place);  // the bits of a 32-bit integer, as on a GPU
  }
}

template <typename T>
using Channels = typename ChannelOf<T>::Number[sizeof(T) / sizeof(typename ChannelOf<T>::Number)];

// Reads as many channels of an element as T has.
template <typename T>
void read_texel(const TextureView& texture, long long element, Channels<T>& to) {
  using Number = typename ChannelOf<T>::Number;
  const unsigned bytes = bytes_of(texture.texel);
  if (texture.channels < static_cast<int>(sizeof(T) / sizeof(Number))) {
    fail("the type in tex2D<T> or tex1Dfetch<T> has more numbers than the texture's elements");
  }
  const char* place = texture.texels + element * texture.channels * bytes;
  for (Number& number : to) {
    if constexpr (std::is_same_v<Number, float>) {
      if (bytes < 4 && texture.texel != Texel::float16 && !texture.unit_values) {
        fail("the kernel reads a texture of integers as floats: read integers, or set \"read\": \"normalized\"");
      }
      number = texel_as_float(texture, place);
    } else {
      if (bytes != sizeof(Number) || texture.unit_values || texture.texel == Texel::float16) {
        fail("the type in tex2D<T> or tex1Dfetch<T> is not that of the texture's elements");
      }
      number = stored_at<Number>(place);
    }
    place += bytes;
  }
}

template <typename T>
void read_element(const TextureView& texture, long long x, long long y, Channels<T>& to) {
  const bool outside = x < 0 || y < 0 || x >= texture.width || y >= texture.height;
  if (outside && texture.zero_outside) {
    for (auto& number : to) {
      number = 0;
    }
    return;
  }
  x = max(0LL, min(x, texture.width - 1));
  y = max(0LL, min(y, texture.height - 1));
  read_texel<T>(texture, y * texture.width + x, to);
}

// GPUs round weights to steps of 1/256.
inline float texture_weight(float distance) { return rintf(distance * 256.0f) / 256.0f; }

template <typename T>
T as_vector(const Channels<T>& numbers) {
  T value;
  std::memcpy(&value, numbers, sizeof value);
  return value;
}

inline const TextureView& view_of(cudaTextureObject_t texture) {
  if (texture == 0) {
    fail("the kernel reads an empty texture: check the buffer's extent");
  }
  return *reinterpret_cast<const TextureView*>(texture);
}

}  // namespace pascaline_host

template <typename T>
T tex1Dfetch(cudaTextureObject_t object, int x) {
  const pascaline_host::TextureView& texture = pascaline_host::view_of(object);
  if (texture.height != 0) {
    pascaline_host::fail("tex1Dfetch reads a texture that has 'columns': call tex2D, or leave 'columns' out");
  }
  pascaline_host::Channels<T> numbers{};
  if (x >= 0 && x < texture.width) {
    pascaline_host::read_texel<T>(texture, x, numbers);
  }
  return pascaline_host::as_vector<T>(numbers);
}

template <typename T>
T tex2D(cudaTextureObject_t object, float x, float y) {
  using pascaline_host::Channels;
  const pascaline_host::TextureView& texture = pascaline_host::view_of(object);
  if (texture.height == 0) {
    pascaline_host::fail("tex2D reads a texture without 'columns': call tex1Dfetch, or give 'columns'");
  }
  if (texture.unit_coordinates) {
    x *= static_cast<float>(texture.width);
    y *= static_cast<float>(texture.height);
  }
  Channels<T> numbers;
  if (!texture.interpolates) {
    pascaline_host::read_element<T>(texture, static_cast<long long>(floorf(x)), static_cast<long long>(floorf(y)),
                                    numbers);
    return pascaline_host::as_vector<T>(numbers);
  }
  x -= 0.5f;
  y -= 0.5f;
  const auto left = static_cast<long long>(floorf(x));
  const auto top = static_cast<long long>(floorf(y));
  const float right_weight = pascaline_host::texture_weight(x - floorf(x));
  const float bottom_weight = pascaline_host::texture_weight(y - floorf(y));
  Channels<T> corners[4];
  for (int i = 0; i < 4; ++i) {
    pascaline_host::read_element<T>(texture, left + i % 2, top + i / 2, corners[i]);
  }
  int channel = 0;
  for (auto& number : numbers) {
    const auto mean = [&](int row) {
      return (1.0f - right_weight) * corners[2 * row][channel] + right_weight * corners[2 * row + 1][channel];
    };
    number = static_cast<typename pascaline_host::ChannelOf<T>::Number>((1.0f - bottom_weight) * mean(0) +
                                                                        bottom_weight * mean(1));
    ++channel;
  }
  return pascaline_host::as_vector<T>(numbers);
}

template <typename T>
void tex1Dfetch(T* to, cudaTextureObject_t object, int x) {
  *to = tex1Dfetch<T>(object, x);
}
template <typename T>
void tex2D(T* to, cudaTextureObject_t object, float x, float y) {
  *to = tex2D<T>(object, x, y);
}
