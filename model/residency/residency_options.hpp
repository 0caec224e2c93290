#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pascaline {

/// Where the vision tower may run.
enum class VisionResidency : std::uint8_t { automatic, device, processor, stream };

/// What is done with layers that are not kept on the device.
enum class Offload : std::uint8_t { automatic, processor, stream };

/// As options are given: "auto", "gpu", "cpu", "stream".
[[nodiscard]] std::string_view name_of(VisionResidency where) noexcept;
[[nodiscard]] std::string_view name_of(Offload offload) noexcept;
/// The residency, or what is done, of that name; throws Error for any other.
[[nodiscard]] VisionResidency vision_residency_named(std::string_view name);
[[nodiscard]] Offload offload_named(std::string_view name);

/// What is asked for of where a model's parts are. None of it matters where the model runs on the processor alone.
struct ResidencyOptions {
  std::optional<std::int64_t> gpu_layers = std::nullopt;  ///< kept on the device; nothing: as many as fit
  VisionResidency vision = VisionResidency::automatic;
  Offload offload = Offload::automatic;

  friend bool operator==(const ResidencyOptions&, const ResidencyOptions&) = default;
};

}  // namespace pascaline
