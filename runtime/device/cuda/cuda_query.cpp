#include "runtime/device/cuda/cuda_query.hpp"

#include <fmt/format.h>

#include <fstream>

#include "runtime/device/cuda/cuda_device.hpp"

namespace pascaline {
namespace {

std::int64_t attribute(const DriverApi& driver, CuOrdinal device, CuDeviceAttribute which) {
  int value = 0;
  driver(driver.device_attribute, &value, static_cast<int>(which), device);
  return value;
}

std::string format_uuid(const CuUuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid.bytes[i]);
  }
  return text;
}

DeviceLimits query_limits(const DriverApi& driver, CuOrdinal device, const std::string& architecture) {
  DeviceLimits limits = limits_of_architecture(architecture).value_or(DeviceLimits{});
  limits.compute_capability =
      10 * attribute(driver, device, kCuComputeMajor) + attribute(driver, device, kCuComputeMinor);
  limits.warp_size = attribute(driver, device, kCuWarpSize);
  limits.max_threads_per_block = attribute(driver, device, kCuMaxThreadsPerBlock);
  limits.max_threads_per_sm = attribute(driver, device, kCuMaxThreadsPerSm);
  limits.max_shared_bytes_per_block = attribute(driver, device, kCuMaxSharedBytesPerBlock);
  limits.max_shared_bytes_per_sm = attribute(driver, device, kCuMaxSharedBytesPerSm);
  limits.max_registers_per_block = attribute(driver, device, kCuMaxRegistersPerBlock);
  limits.max_registers_per_sm = attribute(driver, device, kCuMaxRegistersPerSm);
  limits.max_grid_x = attribute(driver, device, kCuMaxGridX);
  limits.max_grid_y = attribute(driver, device, kCuMaxGridY);
  limits.max_grid_z = attribute(driver, device, kCuMaxGridZ);
  limits.sm_count = attribute(driver, device, kCuSmCount);
  limits.l2_bytes = attribute(driver, device, kCuL2Bytes);
  // Only drivers since 11.0 know this one; the architecture's table stands in.
  int blocks = 0;
  if (driver.device_attribute.address(&blocks, kCuMaxBlocksPerSm, device) == 0 && blocks > 0) {
    limits.max_blocks_per_sm = blocks;
  }
  return limits;
}

// The driver's own version where the kernel module tells it, with the newest CUDA version it supports.
std::string driver_text(int cuda_version) {
  const std::string cuda = fmt::format("{}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
  std::string module;
  std::ifstream("/sys/module/nvidia/version") >> module;
  return module.empty() ? cuda : fmt::format("{} (CUDA {})", module, cuda);
}

}  // namespace

DeviceInfo query_cuda_device(const DriverApi& driver, int ordinal) {
  CuOrdinal device = 0;
  driver(driver.device_get, &device, ordinal);
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.id = fmt::format("cuda:{}", ordinal);
  char name[256] = {};
  driver(driver.device_name, name, static_cast<int>(sizeof name) - 1, device);
  info.name = name;
  info.architecture =
      fmt::format("sm_{}{}", attribute(driver, device, kCuComputeMajor), attribute(driver, device, kCuComputeMinor));
  CuUuid uuid{};
  driver(driver.device_uuid, &uuid, device);
  info.uuid = format_uuid(uuid);
  int version = 0;
  driver(driver.driver_version, &version);
  info.driver_version = driver_text(version);
  std::size_t bytes = 0;
  driver(driver.device_memory, &bytes, device);
  info.memory_bytes = bytes;
  info.limits = query_limits(driver, device, info.architecture);
  return info;
}

std::string query_pci_bus_id(const DriverApi& driver, int ordinal) {
  CuOrdinal device = 0;
  driver(driver.device_get, &device, ordinal);
  char text[32] = {};
  driver(driver.device_pci_bus_id, text, static_cast<int>(sizeof text), device);
  return text;
}

std::vector<DeviceInfo> list_cuda_devices(std::string* note) {
  std::vector<DeviceInfo> devices;
  try {
    const DriverApi& driver = DriverApi::get();
    int count = 0;
    driver(driver.device_count, &count);
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      devices.push_back(query_cuda_device(driver, ordinal));
    }
    if (count == 0 && note != nullptr) {
      *note = "the CUDA driver shows no device; check nvidia-smi and CUDA_VISIBLE_DEVICES";
    }
  } catch (const CudaError& error) {
    if (note != nullptr) {
      *note = error.what();
    }
  }
  return devices;
}

}  // namespace pascaline
