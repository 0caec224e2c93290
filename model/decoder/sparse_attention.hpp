#pragma once

#include <cstdint>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/fusion/attention_choice.hpp"
#include "model/fusion/fusion.hpp"
#include "model/fusion/sites.hpp"
#include "model/linear_layers.hpp"
#include "runtime/device/device_memory.hpp"

namespace pascaline {

/// What layers need where tokens attend to some of the keys before them only: one for all layers that run on one
/// device. Where blocks are chosen it keeps the means of the keys of each block, which follow the cache: rows may be
/// read again from any on.
class SparseAttention {
 public:
  /// Allocates all that passes of up to `rows` rows need. `memory` must outlive it. Throws OutOfMemoryError.
  SparseAttention(DeviceMemory& memory, const TextConfig& config, const AttentionChoice& choice, std::int64_t context,
                  std::int64_t rows, std::int64_t layers);

  /// Computes the site, of layer `layer`; does not wait on a device. Throws as Executor::run.
  void run(FusionDecisions& fusion, LinearLayers& linear, const AttentionSite& attention, std::int64_t layer) const;

  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// Of the means of one layer, and of what all layers share: as it will be. 0 for patterns and dense attention.
  [[nodiscard]] static std::uint64_t layer_bytes(const TextConfig& config, const AttentionChoice& choice,
                                                 std::int64_t context) noexcept;
  [[nodiscard]] static std::uint64_t shared_bytes(const TextConfig& config, const AttentionChoice& choice,
                                                  std::int64_t context, std::int64_t rows) noexcept;

 private:
  AttentionChoice choice_;
  std::vector<RawBuffer> means_;  // of each layer
  RawBuffer scores_;
  RawBuffer lists_;
};

}  // namespace pascaline
