#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_weights.hpp"
#include "model/executor.hpp"
#include "model/fusion/fusion.hpp"
#include "model/linear_layers.hpp"
#include "model/residency/weight_stream.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/memory/staging.hpp"

namespace pascaline {

/// An image cut into patches, in the host's memory.
struct PatchView {
  std::int64_t rows = 0;          ///< of patches
  std::int64_t columns = 0;       ///< of patches
  std::span<const float> values;  ///< [rows · columns, values of a patch], in blocks of merge × merge patches
};

/// What the decoder gets of some images: rows of tokens, one image after the other. It lies in the tower's memory
/// and holds until the next images are encoded.
struct ImageFeatures {
  TensorView embeddings;              ///< [tokens, out_hidden]
  std::vector<TensorView> deepstack;  ///< likewise, for layer 0, 1, …
};

/// The vision tower. Heads whose size is not a multiple of 8 are padded with zeros by `device_weights`.
class VisionTower {
 public:
  /// All references must outlive it. Parts that `stream` has are used from there; it may be null.
  VisionTower(LinearLayers& linear, FusionDecisions& fusion, const VisionConfig& config, const VisionWeights& weights,
              WeightStream* stream = nullptr);

  /// Bytes of device memory that encoding so many patches of images with sides up to that takes, its result
  /// included.
  [[nodiscard]] static std::uint64_t bytes_for(const VisionConfig& config, std::int64_t patches,
                                               std::int64_t longest_side);
  /// What it holds at the moment: memory for the largest images so far.
  [[nodiscard]] std::uint64_t bytes() const { return arena_ ? arena_->plan().total_bytes : 0; }

  /// Encodes images, which do not see each other. Does not wait for the result. Throws Error for patches that do not
  /// fit the configuration, OutOfMemoryError that says what is needed, and what the operations throw.
  [[nodiscard]] ImageFeatures encode(std::span<const PatchView> images);
  /// Gives back what it holds for the next images, once it is out of use; false if that is nothing.
  bool release();

 private:
  struct Pass;
  void make_room(std::int64_t patches, std::int64_t longest_side);
  void bring(const TensorView& pixels, std::span<const PatchView> images);
  template <typename Weights, typename Work>
  void with_weights(std::size_t part, const Weights& weights, const Work& work);
  void embed(const PatchWeights& weights, Pass& pass, std::span<const PatchView> images);
  void run_block(const VisionBlockWeights& weights, Pass& pass);
  void attend(const VisionBlockWeights& weights, Pass& pass);
  void merge(const MergerWeights& weights, bool norm_merged, Pass& pass, const TensorView& out);

  LinearLayers* linear_;
  FusionDecisions* fusion_;
  Executor* executor_;
  const VisionConfig* config_;
  VisionParts parts_;
  const VisionWeights* weights_;
  WeightStream* stream_;
  std::optional<Arena> arena_;  // for images of up to:
  std::int64_t arena_patches_ = 0;
  std::int64_t arena_side_ = 0;
  std::optional<StagingRing> staging_;  // once there was a large image
};

}  // namespace pascaline
