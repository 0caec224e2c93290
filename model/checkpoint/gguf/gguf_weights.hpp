#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/checkpoint/stored_formats.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {

/// A tensor of the model as a GGUF file holds it.
struct GgufWeight {
  StoredTensor tensor;                 ///< blocks as U8: a row of bytes for each row of the matrix
  std::vector<std::byte> bytes;        ///< those of the tensor, if they are not in the file as they are
  std::optional<StoredFormat> format;  ///< of blocks that matrices are kept in
  RowOrder order;
};

/// The tensor by whose numbers a file of the family llama may have frequencies of rotary embedding divided; its
/// configuration has them.
inline constexpr const char* kGgufRopeFactors = "rope_freqs.weight";

/// What a GGUF file calls the tensor with that official name.
using GgufNaming = std::function<std::string(std::string_view official)>;

/// GGUF's name of a tensor with that official name; empty if it has none.
[[nodiscard]] std::string gguf_tensor_name(std::string_view official);

/// The order in which GGUF files have the rows of a tensor with that official name: queries and keys of the family
/// llama have their own.
[[nodiscard]] RowOrder gguf_row_order(const ModelConfig& config, std::string_view official) noexcept;

/// The tensors of `specs`, in that order, under the names that GGUF has for them. One called `ignored` may be there,
/// too. Throws ModelError that counts and names those that are missing, unknown, wrongly shaped, or quantized though
/// they are no matrices.
[[nodiscard]] std::vector<GgufWeight> match_gguf_weights(const GgufFile& file, const std::vector<TensorSpec>& specs,
                                                         const GgufNaming& naming = gguf_tensor_name,
                                                         std::string_view ignored = {});
/// The same of a text model, with the order of rows.
[[nodiscard]] std::vector<GgufWeight> match_gguf_text_weights(const GgufFile& file,
                                                              const std::vector<TensorSpec>& specs,
                                                              const ModelConfig& config);

}  // namespace pascaline
