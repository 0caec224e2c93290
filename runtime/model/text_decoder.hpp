#pragma once

#include <cstdint>
#include <vector>

#include "runtime/checkpoint/model_config.hpp"
#include "runtime/checkpoint/model_weights.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/model/executor.hpp"
#include "runtime/model/kv_cache.hpp"
#include "runtime/model/linear_layers.hpp"

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

/// The decoder's layers, which run passes of a sequence's next tokens over a cache.
class TextDecoder {
 public:
  /// All references must outlive it. `context` is the longest sequence, `most_rows` the largest pass. Allocates all
  /// that its passes need. Throws Error for sizes below 1, OutOfMemoryError, and what the device throws.
  TextDecoder(LinearLayers& linear, Executor& executor, const TextConfig& config, const TextWeights& weights,
              KvCache& cache, std::int64_t context, std::int64_t most_rows);

  [[nodiscard]] std::int64_t most_rows() const noexcept { return most_rows_; }
  /// Bytes of activations and of the tables of angles.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// Of the activations of passes of up to so many tokens, and of the tables for a context: as it will be.
  [[nodiscard]] static std::uint64_t activation_bytes(const TextConfig& config, std::int64_t rows);
  [[nodiscard]] static std::uint64_t table_bytes(const TextConfig& config, std::int64_t context) noexcept;

  /// Runs the layers over the pass's tokens, whose keys and values go into the cache, which must have room for them.
  /// Does not wait. Throws Error for more rows than `most_rows`, and what the operations throw.
  void forward(const TextPass& pass);
  /// Logits of rows `first` to `first + count` of the last pass into `logits` [count, vocabulary], float32. Does
  /// not wait.
  void project(std::int64_t first, std::int64_t count, const TensorView& logits);

 private:
  [[nodiscard]] TensorView activation(const char* name, std::initializer_list<std::int64_t> extents) const;
  void embed(const TextPass& pass);
  void attend(const TextLayerWeights& layer, std::int64_t index, const TextPass& pass);
  void attend_to_cache(const TensorView& q, const TensorView& out, std::int64_t index, const TextPass& pass);
  void feed_forward(const TextLayerWeights& layer, std::int64_t rows);
  void add_deepstack(const TextPass& pass, std::size_t index);

  LinearLayers* linear_;
  Executor* executor_;
  const TextConfig* config_;
  const TextWeights* weights_;
  KvCache* cache_;
  std::int64_t most_rows_;
  Arena activations_;
  std::int64_t angle_rows_;
  RawBuffer cosine_;
  RawBuffer sine_;
};

}  // namespace pascaline
