#include "runtime/device/cuda/cuda_texture.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace pascaline {
namespace {

// Values of CUresourcetype, CUaddress_mode and CUfilter_mode, and flags of CUDA_TEXTURE_DESC.
constexpr int kLinearMemory = 2;
constexpr int kPitch2D = 3;
constexpr int kClamp = 1;
constexpr int kBorder = 3;
constexpr int kLinear = 1;
constexpr unsigned kReadAsInteger = 1;
constexpr unsigned kNormalizedCoordinates = 2;

// The value of CUarray_format.
int format_of(ElementType type) {
  switch (type) {
    case ElementType::uint8:
      return 0x01;
    case ElementType::uint16:
      return 0x02;
    case ElementType::uint32:
      return 0x03;
    case ElementType::int8:
      return 0x08;
    case ElementType::int16:
      return 0x09;
    case ElementType::int32:
      return 0x0a;
    case ElementType::float16:
      return 0x10;
    case ElementType::float32:
      return 0x20;
    default:
      throw Error(fmt::format("a texture cannot have elements of {}: use float32, float16 or integers of up to 32 bits",
                              name_of(type)));
  }
}

}  // namespace

CuTextureMemory texture_memory(DeviceSpan memory, const TextureLayout& layout) {
  CuTextureMemory described;
  described.kind = layout.height == 0 ? kLinearMemory : kPitch2D;
  described.address = reinterpret_cast<CuAddress>(memory.data);
  described.format = format_of(layout.type);
  described.channels = static_cast<unsigned>(layout.channels);
  described.bytes_or_width = layout.height == 0 ? memory.bytes : layout.width;
  described.height = layout.height;
  described.row_bytes = layout.height == 0 ? 0 : memory.bytes / layout.height;
  return described;
}

CuTextureReading texture_reading(const TextureLayout& layout) {
  CuTextureReading described;
  described.address_modes.fill(layout.use.zero_outside ? kBorder : kClamp);
  described.filter_mode = layout.use.interpolates ? kLinear : 0;
  described.flags =
      (layout.use.unit_values ? 0 : kReadAsInteger) | (layout.use.unit_coordinates ? kNormalizedCoordinates : 0);
  return described;
}

}  // namespace pascaline
