#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/residency/residency_options.hpp"

namespace pascaline {

/// Where a part of a model is kept and runs.
enum class Residency : std::uint8_t {
  device,
  processor,  ///< in the host's memory; the processor computes
  streamed    ///< in the host's memory; copied to the device each time it is used, which computes
};

/// "device", "processor", "streamed".
[[nodiscard]] std::string_view name_of(Residency where) noexcept;

/// Where each part of a model is.
struct ModelResidency {
  Residency embedding = Residency::device;  ///< never streamed, as head
  Residency head = Residency::device;       ///< the embedding's, if they are tied
  Residency vision = Residency::device;     ///< of the vision tower; streamed if any of its parts is
  std::vector<Residency> layers;
  std::vector<Residency> tower = {};  ///< of a streamed vision tower, see `VisionParts`: streamed, or on the device

  /// All of it on the device.
  [[nodiscard]] static ModelResidency on_device(std::size_t layers) {
    return {{}, {}, {}, {layers, Residency::device}};
  }
  /// Of the decoder's layers.
  [[nodiscard]] std::size_t count(Residency where) const noexcept;
  /// Parts of the vision tower that are streamed.
  [[nodiscard]] std::size_t streamed_of_tower() const noexcept;
  [[nodiscard]] Residency residency_of_tower(std::size_t part) const {
    return vision == Residency::streamed ? tower.at(part) : vision;
  }
  [[nodiscard]] bool all_on_device() const noexcept;
  /// The decoder and the embedding on the device, nothing streamed.
  [[nodiscard]] bool all_decodes_on_device() const noexcept;
  /// Whether the device, or the processor, runs anything of the decoder.
  [[nodiscard]] bool device_decodes() const noexcept;
  [[nodiscard]] bool processor_decodes() const noexcept;
  friend bool operator==(const ModelResidency&, const ModelResidency&) = default;
};

/// What a part of a model takes, and costs.
struct PartSize {
  std::uint64_t bytes = 0;       ///< of weights
  std::uint64_t parameters = 0;  ///< that every row of activations, or every patch, is multiplied with on the average
};

/// Sizes by which a model is placed, in bytes where nothing else is said.
struct ResidencySizes {
  std::vector<PartSize> layers;
  PartSize embedding;
  PartSize head;                ///< of tied ones without the embedding
  std::vector<PartSize> tower;  ///< of the vision tower, see `VisionParts`; empty without one
  bool tied = false;
  std::uint64_t layer_cache = 0;      ///< of a layer's keys and values for the first request
  std::uint64_t full_cache = 0;       ///< and of the longest that may follow
  std::uint64_t reserve = 0;          ///< of the device, for code and scratch memory of kernels
  std::uint64_t fixed = 0;            ///< of the device, wherever the model is
  std::uint64_t decoder = 0;          ///< activations and tables, where some of the decoder runs
  std::uint64_t images = 0;           ///< activations of the request's images, where the vision tower runs
  std::uint64_t features = 0;         ///< of the device, if the processor encodes the images
  std::int64_t patches = 0;           ///< of the request's images
  std::int64_t expected_patches = 0;  ///< of images whose time counts: the request's, or those that may follow it
  std::int64_t chunk = 1;             ///< tokens of a pass

  [[nodiscard]] bool has_vision() const noexcept { return !tower.empty(); }
  /// Of the vision tower's weights that have this residency.
  [[nodiscard]] std::uint64_t tower_bytes(const ModelResidency& residency, Residency where) const;
};

/// How much of the device's memory a model takes that is placed like that. `filled_device`: with the reserve, and keys
/// and values of the longest conversation.
[[nodiscard]] std::uint64_t device_bytes(const ResidencySizes& sizes, const ModelResidency& residency,
                                         bool filled_device);
/// The same of the host's memory.
[[nodiscard]] std::uint64_t host_bytes(const ResidencySizes& sizes, const ModelResidency& residency,
                                       bool filled_device);
/// Bytes of the slots of device memory that streamed layers, and parts of the vision tower, take turns in.
[[nodiscard]] std::uint64_t slot_bytes(const ResidencySizes& sizes, const ModelResidency& residency);
/// Layers or parts that can be in slots at a time.
inline constexpr std::size_t kStreamSlots = 2;

/// How fast a machine moves and computes, in bytes and float operations a second; 0: not known.
struct ResidencyRates {
  double copy = 0;             ///< from the host's page-locked memory to the device
  double processor_bytes = 0;  ///< weights that the processor multiplies with one row of activations
  double processor_flops = 0;  ///< the processor's with many rows
  double device_bytes = 0;     ///< weights that the device multiplies with one row
  double device_flops = 0;     ///< the device's with many rows
};

/// How long a model is expected to take, in seconds, from weights alone: attention comes on top.
struct PassTimes {
  double token = 0;   ///< of a decoding step
  double prompt = 0;  ///< of a prompt of kPlannedPrompt tokens
  double images = 0;  ///< of images of `expected_patches`

  /// Of a prompt with its images and an answer of kPlannedAnswer tokens.
  [[nodiscard]] double answer() const noexcept;
};
inline constexpr std::int64_t kPlannedPrompt = 512;
inline constexpr std::int64_t kPlannedAnswer = 128;
/// Work of the processor varies with what else runs there, and what is counted lacks attention and the steps between
/// matrices, which weigh more there than on a device: where it computes layers or images, an answer is taken to need so
/// many times what is expected.
inline constexpr double kProcessorDoubt = 1.25;

/// With copies of what is streamed beside all other work.
[[nodiscard]] PassTimes expected_times(const ResidencySizes& sizes, const ModelResidency& residency,
                                       const ResidencyRates& rates);

/// A residency that was considered.
struct ResidencyChoice {
  ModelResidency residency;
  PassTimes times;
  bool filled_device = false;  ///< with as many layers as fit, beside the reserve and `full_cache` for each
};

/// The residencies that fit `free` bytes of device memory and agree with the options, the fastest answer first, those
/// with layers or images on the processor after `kProcessorDoubt`; empty if none does. None is there twice, or with a
/// part off the device that another one, with no fewer layers there, has on it. Where all may be and fits on the device
/// that is the only one. Else as many layers as fit are on the device, if no number is asked for, with a reserve and
/// room for a conversation to grow: layers of the processor are the last ones, streamed ones are spread evenly so that
/// they are copied while those between them run. Of a vision tower that is streamed without being asked for, as many
/// parts as then still fit stay on the device.
[[nodiscard]] std::vector<ResidencyChoice> residency_choices(const ResidencySizes& sizes,
                                                             const ResidencyOptions& options,
                                                             const ResidencyRates& rates, std::uint64_t free);

}  // namespace pascaline
