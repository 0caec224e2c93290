#pragma once

#include <string>

#include "runtime/device/cuda/driver_api.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// What the driver tells of the device with that ordinal (no context is made); throws CudaError.
[[nodiscard]] DeviceInfo query_cuda_device(const DriverApi& driver, int ordinal);

/// The device's PCI bus id "0000:01:00.0".
[[nodiscard]] std::string query_pci_bus_id(const DriverApi& driver, int ordinal);

}  // namespace pascaline
