#pragma once

#include <optional>
#include <string_view>

#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/weight_recipe.hpp"

namespace pascaline {

/// What a model's matrices are written as; at most one of the two is given, and without both each stays as it is
/// stored. Everything that is no matrix is written as float32.
struct WantedTypes {
  std::optional<GgufType> number;      ///< all as F32, F16 or BF16
  std::optional<WeightRecipe> recipe;  ///< quantized
};

/// The element type of F32, F16 and BF16.
[[nodiscard]] ElementType number_of(GgufType type) noexcept;

/// What a tensor is stored as.
struct StoredKind {
  std::optional<GgufType> type = GgufType::F32;  ///< that holds it; nothing if GGUF has none
  std::optional<ElementType> format;             ///< of blocks
  bool is_fp8 = false;                           ///< codes of 8 bits with scales, which are no format of blocks

  /// That of its blocks or codes, as messages name it; not of numbers.
  [[nodiscard]] std::string_view name() const;
};
/// That of tensor `index` of a checkpoint. Of blocks that no matrix is kept in, and of a tensor that becomes one matrix
/// with others in other formats, it is a type that holds them.
[[nodiscard]] StoredKind stored_kind(const Checkpoint& checkpoint, std::size_t index);

/// The type that a tensor is written as, which is stored as `stored`. In a GGUF file (`rows_are_blocks`) rows that are
/// no whole blocks of the type become Q8_0 or, where they are no whole blocks of that either, F16; and the embedding of
/// patches is of numbers of which a convolution can be made, F16 or F32. Throws ModelError naming the tensor for a
/// format that GGUF has not, and for one that would be quantized twice.
[[nodiscard]] GgufType written_type(const TensorSpec& tensor, const StoredKind& stored, const WantedTypes& wanted,
                                    bool rows_are_blocks);

/// The type that a GGUF file cannot have the tensor in, whose rows are no whole blocks of it, so that `written_type` is
/// another one; nothing if there is no such obstacle.
[[nodiscard]] std::optional<GgufType> unfit_type(const TensorSpec& tensor, const StoredKind& stored,
                                                 const WantedTypes& wanted);

}  // namespace pascaline
