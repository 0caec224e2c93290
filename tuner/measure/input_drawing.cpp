#include "tuner/measure/input_drawing.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "core/util/paths.hpp"
#include "kernel_templates/inputs/draw.cuh"
#include "runtime/device/compile.hpp"

namespace pascaline {
namespace {

constexpr unsigned kDrawingThreads = 256;  // of a block, as the kernel has them
constexpr std::uint64_t kDrawingBlocksPerSm = 16;

}  // namespace

Binary drawing_code(const DeviceInfo& device, const DispatcherOptions& options) {
  const KernelSupply supply(device, options);
  const KernelSource source = KernelSource::load(data_folder("kernel_templates") / "inputs" / "draw.cu");
  CompileRequest request;
  request.source = &source;
  request.function = "draw";
  request.kind = supply.target().kind;
  request.architecture = supply.target().architecture;
  request.translation = supply.target().translation;
  request.threads = kDrawingThreads;
  return supply.code(request, supply.toolkits().front());
}

InputDrawing::InputDrawing(Device& device, const std::optional<Binary>& code) : device_(&device) {
  if (code) {
    kernel_ = device.load(*code);
  }
}

void InputDrawing::draw(DeviceSpan to, const DrawnMatrix& matrix) {
  if (to.bytes == 0) {
    return;
  }
  device_->synchronize();
  if (kernel_) {
    launch(to.data, matrix);
  } else if (device_->info().kind == DeviceKind::emulator) {
    draw_into({static_cast<std::byte*>(to.data), to.bytes}, matrix);
  } else {
    const std::vector<std::byte> drawn = draw_matrix(matrix);
    device_->memory().upload({}, to, drawn);
    device_->synchronize();
  }
}

void InputDrawing::launch(void* to, const DrawnMatrix& matrix) {
  drawing::Plan plan = plan_of(matrix);
  const auto sm_count = static_cast<std::uint64_t>(device_->info().limits.sm_count);
  const std::uint64_t blocks =
      std::clamp<std::uint64_t>(plan.units / kDrawingThreads, 1, kDrawingBlocksPerSm * sm_count);
  const Geometry geometry{{static_cast<std::uint32_t>(blocks), 1, 1}, {kDrawingThreads, 1, 1}, 0};
  const std::array<void*, 2> arguments{&plan, &to};
  device_->launch(*kernel_, geometry, arguments);
  device_->synchronize();
}

}  // namespace pascaline
