#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/device/gpu_processes.hpp"

namespace pascaline {

/// The readings of one card through NVML (the library behind nvidia-smi), loaded at run time.
class Nvml {
 public:
  /// The card with that UUID ("GPU-…") or else that PCI bus id, never by index: CUDA_VISIBLE_DEVICES reorders CUDA's
  /// devices but not NVML's. Null, with the reason in `why` (may be null), if NVML is missing or does not know it.
  static std::unique_ptr<Nvml> open(const std::string& uuid, const std::string& pci_bus_id, std::string* why = nullptr);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// Bytes of the card's memory that are in use, by all processes; nothing if it does not tell.
  [[nodiscard]] std::optional<std::uint64_t> used_memory() const noexcept;
  /// Processes with something open on the card, those that compute first; nothing if it does not tell of these.
  [[nodiscard]] std::optional<std::vector<GpuProcess>> processes() const;
  /// What the card tells now; a reading it does not support is left out.
  [[nodiscard]] Sensors read() const noexcept;

 private:
  struct Functions;
  Nvml();
  [[nodiscard]] std::optional<double> instant_power_w() const noexcept;
  [[nodiscard]] std::optional<double> power_w() const noexcept;

  std::unique_ptr<Functions> functions_;
  void* device_ = nullptr;
  bool initialised_ = false;
  bool tells_instant_ = false;
};

}  // namespace pascaline
