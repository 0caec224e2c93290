#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/device/device.hpp"

namespace pascaline {

/// A process that has something open on a card.
struct GpuProcess {
  std::int64_t id = 0;
  bool computes = true;  ///< false: it only draws
  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
};

/// Lists the processes that use a card, this one and its children among them; nothing where the card does not tell.
using GpuProcessList = std::function<std::optional<std::vector<GpuProcess>>()>;

/// For a card, by NVML; a list that never tells anything for other devices, and where there is no NVML.
[[nodiscard]] GpuProcessList gpu_processes_of(const DeviceInfo& device);

}  // namespace pascaline
