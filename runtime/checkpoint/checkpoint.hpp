#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "runtime/checkpoint/model_config.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/checkpoint/stored_formats.hpp"
#include "runtime/checkpoint/weight_recipe.hpp"
#include "runtime/checkpoint/weight_table.hpp"

namespace pascaline {

/// The weights of a model folder, mapped, and proven to be exactly what the configuration implies. Move-only.
class Checkpoint {
 public:
  /// Opens the folder's files and matches their tensors, under the names of any scheme that `official_tensor_name`
  /// knows, with `required_tensors(config)`. Throws ModelError that counts and names some of the tensors that are
  /// unknown, missing, there twice, wrongly shaped, quantized by another program or of a type that weights cannot have,
  /// and that says what is wrong with one that is stored in a format of matrices (docs/formats.md). A tied model's
  /// `lm_head.weight` is left aside: the embedding is used.
  [[nodiscard]] static Checkpoint open(const std::filesystem::path& folder, const ModelConfig& config);

  /// All tensors, as `required_tensors` orders them.
  [[nodiscard]] const std::vector<TensorSpec>& tensors() const noexcept { return specs_; }
  /// Where the tensor of that index lies.
  [[nodiscard]] const StoredTensor& stored(std::size_t index) const { return *stored_.at(index); }
  /// The format of matrices that the tensor of that index is kept in, which its bytes have too if they are of U8;
  /// nothing of one that is stored as numbers and meant to be.
  [[nodiscard]] const std::optional<StoredFormat>& format(std::size_t index) const { return formats_.at(index); }
  /// Whether matrices are stored in formats, or meant to be kept in them.
  [[nodiscard]] bool has_formats() const noexcept { return has_formats_; }
  /// The name of the recipe that these were made with; empty without one.
  [[nodiscard]] const std::string& recipe() const noexcept { return recipe_; }
  /// Bytes of all of them in the files.
  [[nodiscard]] std::int64_t stored_bytes() const noexcept;

 private:
  Checkpoint() = default;

  std::vector<Safetensors> files_;
  std::vector<TensorSpec> specs_;
  std::vector<const StoredTensor*> stored_;           // a tensor of files_ for each of specs_
  std::vector<std::optional<StoredFormat>> formats_;  // likewise
  bool has_formats_ = false;
  std::string recipe_;
};

/// What a folder holds: each matrix in the format that it is stored in, or as the number that it is stored as, bfloat16
/// as `bfloat`. Named after the recipe that the folder was made with.
[[nodiscard]] WeightRecipe stored_recipe(const Checkpoint& checkpoint, ElementType bfloat);

}  // namespace pascaline
