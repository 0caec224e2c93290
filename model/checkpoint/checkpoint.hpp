#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/stored_formats.hpp"
#include "model/checkpoint/weight_recipe.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {

/// The weights of a model folder or of GGUF files, mapped, and proven to be exactly what the configuration implies.
/// Move-only.
class Checkpoint {
 public:
  /// Opens the folder's files and matches their tensors, under the names of any scheme that `official_tensor_name`
  /// knows, with `required_tensors(config)`. Throws ModelError that counts and names some of the tensors that are
  /// unknown, missing, there twice, wrongly shaped, quantized by another program or of a type that weights cannot have,
  /// and that says what is wrong with one that is stored in a format of matrices (docs/formats.md). A tied model's
  /// `lm_head.weight` is left aside, as it has the embedding's values; where there is no embedding, it is that, too. A
  /// GGUF file is matched as `match_gguf_weights` does, its projector as `match_projector_weights`.
  [[nodiscard]] static Checkpoint open(const ModelLocation& model, const ModelConfig& config);

  /// All tensors, as `required_tensors` orders them.
  [[nodiscard]] const std::vector<TensorSpec>& tensors() const noexcept { return specs_; }
  /// Where the tensor of that index lies.
  [[nodiscard]] const StoredTensor& stored(std::size_t index) const { return *stored_.at(index); }
  /// Its file and its name there, as messages begin.
  [[nodiscard]] std::string where(std::size_t index) const;
  /// The format of matrices that the tensor of that index is kept in, which its bytes have too if they are of U8;
  /// nothing of one that is stored as numbers and meant to be.
  [[nodiscard]] const std::optional<StoredFormat>& format(std::size_t index) const { return formats_.at(index); }
  /// Whether matrices are stored in formats, or meant to be kept in them.
  [[nodiscard]] bool has_formats() const noexcept { return has_formats_; }
  /// The name of the recipe that these were made with; empty without one.
  [[nodiscard]] const std::string& recipe() const noexcept { return recipe_; }
  /// The type that the matrix of that index is meant to be kept in, bfloat16 as `bfloat`. Where tensors that become one
  /// matrix, as gate and up do, are stored in several, it is one that holds them all.
  [[nodiscard]] ElementType kept_type(std::size_t index, ElementType bfloat) const;
  /// Where the rows of the tensor of that index are stored.
  [[nodiscard]] RowOrder order(std::size_t index) const { return orders_.empty() ? RowOrder() : orders_.at(index); }
  /// Whether the tensor of that index is kept in a format whose rows the file does not have one by one.
  [[nodiscard]] bool is_transposed(std::size_t index) const { return coding(index) == RowCoding::awq; }
  /// Writes a row of such a tensor in its file form.
  void read_file_row(std::size_t index, std::int64_t row, std::span<std::byte> out) const;
  /// How another program quantized the folder.
  [[nodiscard]] FolderQuantization quantization() const noexcept { return quantization_; }
  /// Writes elements of the tensor of that index from `first` on, as many as `out` holds, as float32, float16 or
  /// bfloat16. Throws as `read_weights`, naming the file.
  void read(std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) const;
  /// Says that the tensor of that index will not be read soon, so that its memory is free for others.
  void forget(std::size_t index) const noexcept;
  /// Bytes of all of them in the files.
  [[nodiscard]] std::int64_t stored_bytes() const noexcept;

 private:
  Checkpoint() = default;
  [[nodiscard]] static Checkpoint open_gguf(const ModelLocation& model, const ModelConfig& config);
  [[nodiscard]] RowCoding coding(std::size_t index) const {
    return codings_.empty() ? RowCoding::format : codings_.at(index);
  }
  [[nodiscard]] StoredMatrix matrix(std::size_t index) const;
  [[nodiscard]] std::filesystem::path file_of(std::size_t index) const;
  void read_values(std::size_t index, ElementType type, std::int64_t first, std::span<std::byte> out) const;
  // Of weights that need one type and are made of tensors stored in several.
  void join_types(const ModelConfig& config);

  std::vector<Safetensors> files_;
  std::vector<TensorSpec> specs_;
  std::vector<const StoredTensor*> stored_;           // a tensor of files_ for each of specs_
  std::vector<std::optional<StoredFormat>> formats_;  // likewise
  std::optional<GgufFile> gguf_;
  std::optional<GgufFile> projector_;
  std::vector<std::vector<std::byte>> own_bytes_;  // of tensors that a file has in parts
  std::vector<StoredTensor> gguf_tensors_;         // empty unless of a GGUF file, as orders_
  std::vector<RowOrder> orders_;
  std::vector<RowCoding> codings_;  // also of a quantized folder
  std::vector<MatrixParts> parts_;  // of a quantized folder, else empty
  FolderQuantization quantization_ = FolderQuantization::none;
  std::map<std::size_t, ElementType> joined_types_;  // by the tensor's index
  bool has_formats_ = false;
  std::string recipe_;
};

/// What a folder holds: each matrix in the format that it is stored in, or as the number that it is stored as, bfloat16
/// as `bfloat`. Named after the recipe that the folder was made with.
[[nodiscard]] WeightRecipe stored_recipe(const Checkpoint& checkpoint, ElementType bfloat);

}  // namespace pascaline
