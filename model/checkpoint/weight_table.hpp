#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/model_weights.hpp"

namespace pascaline {

/// What a tensor is, by which it is kept on a device and drawn where weights are generated.
enum class TensorKind : std::uint8_t {
  matrix,    ///< of a linear layer, or the embedding
  norm,      ///< factors of a normalisation
  bias,      ///< of a linear layer or a normalisation
  positions  ///< learned positions
};

/// A tensor of the model under its official name, e.g. `model.language_model.norm.weight`.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;  ///< row-major, outermost first
  TensorKind kind = TensorKind::matrix;

  [[nodiscard]] std::int64_t elements() const noexcept;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// Product of the extents; -1 if one is negative or the product exceeds 64 bits.
[[nodiscard]] std::int64_t element_count(std::span<const std::int64_t> shape) noexcept;

/// How the tensors of a weight lie in it.
enum class WeightLayout : std::uint8_t {
  stacked,      ///< the rows of one below those of another
  interleaved,  ///< their rows in turn
  /// One tensor, whose rows are elements of the vision tower's heads: queries, keys, values. Of queries and keys those
  /// that turn together, one in each half of a head, lie below each other.
  head_rows,
  head_columns  ///< one tensor, whose columns are
};

/// Parts of a model, each of which may be kept in another place.
enum class PartKind : std::uint8_t {
  embedding,  ///< and the head, where they are tied
  layer,      ///< of the decoder
  head,       ///< the last normalisation, and the head where it is a tensor of its own
  vision
};

/// A part; of layers and of the vision tower, see `VisionParts`, which one.
struct WeightPart {
  PartKind kind = PartKind::layer;
  std::size_t index = 0;

  friend auto operator<=>(const WeightPart&, const WeightPart&) = default;
};

/// Parts that a vision tower can be taken apart into, numbered in order of use: 0 is the embedding of patches with its
/// positions; then come the blocks, each with the merger of its deepstack features after it; last the merger.
class VisionParts {
 public:
  explicit VisionParts(const VisionConfig& config);

  static constexpr std::size_t kEmbedding = 0;
  [[nodiscard]] std::size_t block(std::size_t index) const { return blocks_.at(index); }
  /// Of the deepstack features that come `index`-th.
  [[nodiscard]] std::size_t deepstack(std::size_t index) const { return deepstack_.at(index); }
  [[nodiscard]] std::size_t merger() const noexcept { return merger_; }
  [[nodiscard]] std::size_t count() const noexcept { return merger_ + 1; }
  /// Whether rows of this part are merged patches.
  [[nodiscard]] bool takes_merged(std::size_t part) const noexcept;

 private:
  std::vector<std::size_t> blocks_;
  std::vector<std::size_t> deepstack_;
  std::size_t merger_ = 0;
};

/// A row of the table: a weight as operations take it, and the tensors of a checkpoint that it is made of.
struct WeightEntry {
  TensorView* place = nullptr;      ///< where its view goes
  std::vector<TensorSpec> tensors;  ///< of one kind; their rows have the same length
  WeightLayout layout = WeightLayout::stacked;
  WeightPart part = {};
  /// Stacked tensors of several types may be kept as so many matrices, whose views go to `place` and after it.
  std::size_t most_matrices = 1;

  [[nodiscard]] TensorKind kind() const { return tensors.front().kind; }
  /// Rows of all tensors together.
  [[nodiscard]] std::int64_t rows() const;
  /// Elements of a row; 1 of a vector.
  [[nodiscard]] std::int64_t width() const;
};

/// The one table of a model's weights: their tensors' names and shapes, and how they lie in the weights. Reading a
/// checkpoint, generating weights, counting memory and placing weights on a device all go by it. Gives `places` as many
/// layers as the model has; they must stay where they are while the table is in use.
[[nodiscard]] std::vector<WeightEntry> weight_table(const ModelConfig& config, ModelWeights& places);

/// Exactly the tensors that the configuration implies, in the order of the table: the decoder's in order of use, then
/// the vision tower's, and `lm_head.weight` last if the head is not tied.
[[nodiscard]] std::vector<TensorSpec> required_tensors(const ModelConfig& config);

/// Elements of all of them; throws ModelError above 10^12.
[[nodiscard]] std::int64_t parameter_count(const ModelConfig& config);

}  // namespace pascaline
