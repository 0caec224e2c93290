#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_weights.hpp"
#include "model/decoder/kv_cache.hpp"
#include "model/decoder/sparse_attention.hpp"
#include "model/executor.hpp"
#include "model/fusion/fusion.hpp"
#include "model/linear_layers.hpp"
#include "model/residency/residency.hpp"
#include "model/residency/weight_stream.hpp"
#include "runtime/memory/arena.hpp"

namespace pascaline {

/// Rows of a pass that stand for an image: they get its features instead of embeddings.
struct ImageRows {
  std::int64_t first = 0;             ///< row of the pass
  TensorView embeddings;              ///< [rows, hidden]
  std::vector<TensorView> deepstack;  ///< [rows, hidden], added after layer 0, 1, …
};

/// The next tokens of a sequence, on the device.
struct TextPass {
  TensorView tokens;        ///< [TOKENS], int32; of an image's rows any
  TensorView positions;     ///< [3, TOKENS], int32
  TensorView slots;         ///< [TOKENS], int32: rows of the cache
  TensorView length;        ///< [1], int32: cached tokens once these are; looked at if there is one token
  std::int64_t cached = 0;  ///< tokens in the cache before, which the host must know if there are more than one
  std::vector<ImageRows> images;

  [[nodiscard]] std::int64_t count() const noexcept { return tokens.shape[0]; }
};

/// Runs layers of a decoder where an executor runs operations, in its memory, over a cache there.
class LayerRunner {
 public:
  /// All references must outlive it; without `cache` it runs no layers. Allocates all that its passes need.
  LayerRunner(LinearLayers& linear, FusionDecisions& fusion, const TextConfig& config, KvCache* cache,
              std::int64_t context, std::int64_t most_rows, const AttentionChoice& attention);

  [[nodiscard]] Executor& executor() const noexcept { return *executor_; }
  /// Bytes of activations, of the tables of angles, and of what sparse attention keeps.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// The residual stream of a pass, [rows, hidden].
  [[nodiscard]] TensorView hidden(std::int64_t rows) const;

  /// Runs a layer, whose keys and values are those of layer `index` of the cache. The pass's tensors are there.
  void run(const TextLayerWeights& layer, std::int64_t index, const TextPass& pass);
  /// Logits of these rows of the residual stream.
  void project(const TextWeights& weights, std::int64_t first, std::int64_t count, const TensorView& logits);

 private:
  [[nodiscard]] TensorView activation(const char* name, std::initializer_list<std::int64_t> extents) const;
  void attend(const TextLayerWeights& layer, std::int64_t index, const TextPass& pass);
  [[nodiscard]] TensorView angles(const RawBuffer& table) const;
  void feed_forward(const TextLayerWeights& layer, std::int64_t rows);

  LinearLayers* linear_;
  FusionDecisions* fusion_;
  Executor* executor_;
  const TextConfig* config_;
  KvCache* cache_;
  std::int64_t most_rows_;
  Arena activations_;
  std::int64_t angle_rows_;
  RawBuffer cosine_;
  RawBuffer sine_;
  std::optional<SparseAttention> sparse_;  // if tokens do not attend to all before them
};

/// With what layers of one device run.
struct DecoderSide {
  LinearLayers* linear = nullptr;
  FusionDecisions* fusion = nullptr;
  KvCache* cache = nullptr;  ///< of the layers that run there, in their order; null if none does
};

/// The decoder's layers, which run passes of a sequence's next tokens over a cache. Where they are in several places
/// the residual stream is copied between them.
class TextDecoder {
 public:
  /// All references must outlive it. `processor` may be empty if the residency has nothing there, `stream` null if
  /// nothing is streamed. `context` is the longest sequence, `most_rows` the largest pass. Allocates all that its
  /// passes need. Throws Error for sizes below 1, OutOfMemoryError, and what the device throws.
  TextDecoder(const DecoderSide& device, const DecoderSide& processor, const TextConfig& config,
              const TextWeights& weights, const ModelResidency& residency, WeightStream* stream, std::int64_t context,
              std::int64_t most_rows, const AttentionChoice& attention = {});

  [[nodiscard]] std::int64_t most_rows() const noexcept { return most_rows_; }
  /// Bytes of the device, and of the host: activations and tables of angles.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] std::uint64_t host_bytes() const noexcept;
  /// Of the activations of passes of up to so many tokens, and of the tables for a context: as it will be.
  [[nodiscard]] static std::uint64_t activation_bytes(const TextConfig& config, std::int64_t rows);
  [[nodiscard]] static std::uint64_t table_bytes(const TextConfig& config, std::int64_t context) noexcept;

  /// Runs the layers over the pass's tokens, whose keys and values go into the cache, which must have room for them.
  /// The pass's tensors are on the device. Does not wait if all runs there. Throws Error for more rows than
  /// `most_rows`, and what the operations throw.
  void forward(const TextPass& pass);
  /// The same in two parts: only the embeddings of the pass's tokens, or the layers alone over what is embedded
  /// already.
  void embed(const TextPass& pass);
  void run_layers(const TextPass& pass);
  /// Whether embeddings are looked up on the device.
  [[nodiscard]] bool embeds_on_device() const noexcept { return residency_.embedding != Residency::processor; }
  /// Where that is so: what the layers of a pass of one token begin with, [1, hidden], float32, for whoever writes the
  /// token's embedding there in place of `embed`.
  [[nodiscard]] TensorView embedding_of_next();
  /// Logits of rows `first` to `first + count` of the last pass into `logits` [count, vocabulary], float32, on the
  /// device. Does not wait if all runs there.
  void project(std::int64_t first, std::int64_t count, const TensorView& logits);

 private:
  enum Side : std::size_t { kDevice, kProcessor };

  [[nodiscard]] static Side side_of(Residency where) noexcept {
    return where == Residency::processor ? kProcessor : kDevice;
  }
  [[nodiscard]] LayerRunner& runner(Side side) { return *runners_[side]; }
  [[nodiscard]] DeviceMemory& device_memory() const noexcept { return device_->memory(); }
  [[nodiscard]] TextPass on_processor(const TextPass& pass);
  void embed_there(const TextPass& pass);
  void check(const TextPass& pass) const;
  void move_hidden(Side to, std::int64_t first, std::int64_t rows);
  void run_layer(std::size_t index, const TextPass& pass);
  void add_deepstack(const TextPass& pass, std::size_t index);

  Executor* device_;
  const TextWeights* weights_;
  ModelResidency residency_;
  WeightStream* stream_;
  std::int64_t most_rows_;
  std::array<std::optional<LayerRunner>, 2> runners_;  // by Side; what nothing runs on is not there
  std::vector<std::int64_t> cache_indexes_;            // of layers, in the cache of their side
  Side hidden_at_ = kDevice;                           // where the residual stream of the pass is
  RawBuffer pass_memory_;                              // of the processor: tokens, positions, slots, length
  RawBuffer logits_memory_;                            // of the processor, once they were asked for
};

}  // namespace pascaline
