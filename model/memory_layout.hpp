#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/memory_parts.hpp"
#include "model/model_options.hpp"
#include "model/residency/residency.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// Where a model's parts go, what they take, and why.
struct MemoryLayout {
  bool on_processor = false;  ///< all of it runs there, without a device: nothing is placed
  ModelResidency residency;
  ResidencySizes sizes;
  bool filled_device = false;      ///< see ResidencyChoice
  std::vector<MemoryPart> device;  ///< parts of the device's memory
  std::vector<MemoryPart> host;    ///< and of the host's; empty if nothing is placed there
  std::uint64_t device_bytes = 0;  ///< all of the device's
  std::uint64_t device_free = 0;
  std::uint64_t host_bytes = 0;
  std::optional<ResidencyRates> rates;   ///< if they were measured
  std::vector<ResidencyChoice> choices;  ///< the residency first, then others that fit, from what was measured

  /// Where a decoding step is recorded and launched as one.
  [[nodiscard]] bool can_record() const noexcept { return residency.all_decodes_on_device(); }
};

/// Where a model runs.
struct ModelHome {
  Device* device = nullptr;
  DeviceMemory* memory = nullptr;  ///< the device's, or a pool over it with a limit
  bool on_processor = false;       ///< `device` is the processor's: operations are computed, and all is in its memory
};

/// Decides where the parts of a model are. Rates are measured if not everything can be on the device, or `always`.
/// Nothing that is taken for that is kept. Throws OutOfMemoryError if nothing fits that agrees with the options: its
/// message has several lines: what is needed and free, the parts, what each option that helps would bring it to, and
/// with which of them, at which context, it would fit.
enum class Measure : std::uint8_t { where_needed, always };
[[nodiscard]] MemoryLayout lay_out_model(const ModelHome& home, const ModelConfig& config, const ModelOptions& options,
                                         Measure measure = Measure::where_needed);

}  // namespace pascaline
