#include "runtime/device/gpu_processes.hpp"

#include <memory>

#include "runtime/device/cuda/nvml.hpp"

namespace pascaline {

GpuProcessList gpu_processes_of(const DeviceInfo& device) {
  std::shared_ptr<const Nvml> nvml;  // shared, as functions are copied
  if (device.kind == DeviceKind::cuda) {
    nvml = Nvml::open(device.uuid, "");
  }
  return [nvml] { return nvml ? nvml->processes() : std::nullopt; };
}

}  // namespace pascaline
