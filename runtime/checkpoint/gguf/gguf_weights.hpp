#pragma once

#include <optional>
#include <vector>

#include "runtime/checkpoint/gguf/gguf_file.hpp"
#include "runtime/checkpoint/model_config.hpp"
#include "runtime/checkpoint/stored_formats.hpp"
#include "runtime/checkpoint/weight_table.hpp"

namespace pascaline {

/// A tensor of the model as a GGUF file holds it.
struct GgufWeight {
  StoredTensor tensor;                 ///< blocks as U8: a row of bytes for each row of the matrix
  std::optional<StoredFormat> format;  ///< of blocks that matrices are kept in
  RowCoding coding = RowCoding::format;
  RowOrder order;
};

/// The tensors of `specs`, in that order, under the names that GGUF has for them. Throws ModelError that counts and
/// names those that are missing, unknown, wrongly shaped, or quantized though they are no matrices.
[[nodiscard]] std::vector<GgufWeight> match_gguf_weights(const GgufFile& file, const std::vector<TensorSpec>& specs);

/// GGUF's name of a tensor with that official name; empty if it has none.
[[nodiscard]] std::string gguf_tensor_name(std::string_view official);

}  // namespace pascaline
