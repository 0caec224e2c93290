#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/memory_parts.hpp"
#include "model/model_options.hpp"
#include "model/residency/placement.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// Where a model's parts go, what they take, and why.
struct ModelPlan {
  bool on_processor = false;  ///< all of it runs there, without a device: nothing is placed
  Placement placement;
  PlacementSizes sizes;
  bool filled_device = false;      ///< see PlacementChoice
  std::vector<MemoryPart> device;  ///< parts of the device's memory
  std::vector<MemoryPart> host;    ///< and of the host's; empty if nothing is placed there
  std::uint64_t device_bytes = 0;  ///< all of the device's
  std::uint64_t device_free = 0;
  std::uint64_t host_bytes = 0;
  std::optional<PlaceRates> rates;       ///< if they were measured
  std::vector<PlacementChoice> choices;  ///< the placement first, then others that fit, from what was measured

  /// Where a decoding step is recorded and launched as one.
  [[nodiscard]] bool can_record() const noexcept { return placement.all_decodes_on_device(); }
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
[[nodiscard]] ModelPlan plan_model(const ModelHome& home, const ModelConfig& config, const ModelOptions& options,
                                   Measure measure = Measure::where_needed);

}  // namespace pascaline
