#include "support.hpp"
#include "tests/runtime/device/texture_cases.hpp"

namespace pascaline::testing {
namespace {

Kernel texture_kernel(Device& device, const std::string& function) {
  const CompileResult result = compile(source_of_text(kTextureKernels), function);
  if (!result.ok) {
    throw std::runtime_error(result.reason + "\n" + result.log);
  }
  return device.load(result.binary);
}

TEST(EmulatedTexture, GivesWhatAGpuGives) {
  const auto device = open_emulated_device();
  expect_textures(*device, [&](const std::string& function) { return texture_kernel(*device, function); });
}

TEST(EmulatedTexture, WrongReadsEndTheLaunch) {
  const auto device = open_emulated_device();
  const Buffer memory = device->allocate(64);
  const auto fault = [&](const TextureLayout& layout, const std::string& function) -> std::string {
    const Texture texture = device->make_texture(memory.span(), layout);
    try {
      (void)floats_of(*device, texture_kernel(*device, function), 8, texture.object(), 2);
      return "none";
    } catch (const EmulatorError& error) {
      device->reset();
      return error.what();
    }
  };
  EXPECT_NE(fault({{}, ElementType::float32, 1, 4, 4}, "read_pairs").find("call tex2D"), std::string::npos);
  const TextureLayout integers{{}, ElementType::uint8, 2, 32, 0};
  EXPECT_NE(fault(integers, "read_pairs").find("integers as floats"), std::string::npos);
  const TextureLayout single{{}, ElementType::float32, 1, 16, 0};
  EXPECT_NE(fault(single, "read_pairs").find("more numbers than the texture's elements"), std::string::npos);
  const TextureLayout wide{{}, ElementType::uint32, 4, 4, 0};
  EXPECT_NE(fault(wide, "read_bytes").find("is not that of the texture's elements"), std::string::npos);
  EXPECT_THROW((void)device->make_texture(memory.span(), {{}, ElementType::float64, 1, 8, 0}), EmulatorError);
}

}  // namespace
}  // namespace pascaline::testing
