#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/checkpoint/model_config.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/checkpoint/weight_table.hpp"

namespace pascaline {

/// The weights of a model folder, mapped, and proven to be exactly what the configuration implies. Move-only.
class Checkpoint {
 public:
  /// Opens the folder's files and matches their tensors, under the names of any scheme that `official_tensor_name`
  /// knows, with `required_tensors(config)`. Throws ModelError that counts and names some of the tensors that are
  /// unknown, missing, there twice, wrongly shaped, quantised or of a type that weights cannot have. A tied model's
  /// `lm_head.weight` is left aside: the embedding is used.
  [[nodiscard]] static Checkpoint open(const std::filesystem::path& folder, const ModelConfig& config);

  /// All tensors, as `required_tensors` orders them.
  [[nodiscard]] const std::vector<TensorSpec>& tensors() const noexcept { return specs_; }
  /// Where the tensor of that index lies.
  [[nodiscard]] const StoredTensor& stored(std::size_t index) const { return *stored_.at(index); }
  /// Bytes of all of them in the files.
  [[nodiscard]] std::int64_t stored_bytes() const noexcept;

 private:
  Checkpoint() = default;

  std::vector<Safetensors> files_;
  std::vector<TensorSpec> specs_;
  std::vector<const StoredTensor*> stored_;  // a tensor of files_ for each of specs_
};

}  // namespace pascaline
