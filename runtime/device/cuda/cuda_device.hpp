#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"

namespace pascaline {

/// CUDA devices of this machine, empty without a driver or card; `note` (may be null) receives why.
[[nodiscard]] std::vector<DeviceInfo> list_cuda_devices(std::string* note);

/// Opens the device with that ordinal through the driver API; throws CudaError if it is not there.
[[nodiscard]] std::unique_ptr<Device> open_cuda_device(int ordinal);

}  // namespace pascaline
