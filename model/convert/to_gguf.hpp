#pragma once

#include <filesystem>

#include "model/convert/tensor_types.hpp"
#include "model/convert/tensor_writing.hpp"

namespace pascaline {

/// Where a model's GGUF files are written.
struct GgufTargets {
  std::filesystem::path text;
  std::filesystem::path projector;  ///< of a model that reads images
};

/// Writes a model folder as new GGUF files, in memory that is bounded whatever its size; gives what was done, or
/// nothing if `goes_on` ended it. The files are then of no use, as they are after an exception. Throws Error and its
/// kinds for what is wrong in the folder or cannot be said or written in GGUF, and Error as SizedFile. With `is_random`
/// the weights are `random_weights`, F16 where nothing else is wanted, and the folder needs only config.json.
[[nodiscard]] std::optional<TensorProgress> write_gguf_files(const std::filesystem::path& folder,
                                                             const GgufTargets& targets, const WantedTypes& wanted,
                                                             const ConvertSettings& settings = {},
                                                             bool is_random = false);

}  // namespace pascaline
