#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/checkpoint/model_config.hpp"
#include "runtime/model/executor.hpp"
#include "runtime/model/weights.hpp"

namespace pascaline {

/// A picture cut into patches, in the host's memory.
struct PatchView {
  std::int64_t rows = 0;          ///< of patches
  std::int64_t columns = 0;       ///< of patches
  std::span<const float> values;  ///< [rows · columns, values of a patch], in blocks of merge × merge patches
};

/// What the decoder gets of some pictures: rows of tokens, one picture behind the other.
struct ImageFeatures {
  TensorView embeddings;              ///< [tokens, out_hidden]
  std::vector<TensorView> deepstack;  ///< likewise, for layer 0, 1, …
  std::vector<RawBuffer> buffers;     ///< what they lie in
};

/// The vision tower.
class VisionTower {
 public:
  /// All references must outlive it.
  VisionTower(Executor& executor, const VisionConfig& config, const VisionWeights& weights);

  /// Bytes of device memory that `encode` needs for so many patches, its result included.
  [[nodiscard]] std::uint64_t bytes_for(std::int64_t patches) const;

  /// Encodes pictures, which do not see each other. Does not wait for the result. Throws Error for patches that do not
  /// fit the configuration, OutOfMemoryError that says what is needed, and what the operations throw.
  [[nodiscard]] ImageFeatures encode(std::span<const PatchView> pictures);

 private:
  struct Pass;
  void embed(Pass& pass, std::span<const PatchView> pictures);
  void run_block(const VisionBlockWeights& weights, Pass& pass);
  void attend(const VisionBlockWeights& weights, Pass& pass);
  void merge(const MergerWeights& weights, bool norm_merged, Pass& pass, const TensorView& out);

  Executor* executor_;
  const VisionConfig* config_;
  const VisionWeights* weights_;
};

}  // namespace pascaline
