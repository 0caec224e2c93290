#pragma once

#include <optional>

#include "core/binary.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/kernel_supply.hpp"
#include "runtime/formats/draw.hpp"

namespace pascaline {

/// The kernel that draws inputs (kernel_templates/inputs/draw.cu), for this device: from the cache, or compiled. Throws
/// Error and its kinds for a missing toolchain or file.
[[nodiscard]] Binary drawing_code(const DeviceInfo& device, const DispatcherOptions& options);

/// Draws into a device's memory. With the kernel the device does it, and nothing is uploaded. Without, the processor
/// does: in place on the emulated device, whose memory it writes as fast; for a GPU there is a copy to upload.
class InputDrawing {
 public:
  /// `device` must outlive it, and may not be reset meanwhile. Throws what Device::load throws.
  InputDrawing(Device& device, const std::optional<Binary>& code);

  /// Tells whether drawing again costs less than uploading a copy.
  [[nodiscard]] bool on_device() const noexcept { return kernel_.has_value(); }
  /// The bytes that `draw_into` writes, to memory of that size; waits. Throws CudaError or EmulatorError.
  void draw(DeviceSpan to, const DrawnMatrix& matrix);

 private:
  void launch(void* to, const DrawnMatrix& matrix);

  Device* device_;
  std::optional<Kernel> kernel_;
};

}  // namespace pascaline
