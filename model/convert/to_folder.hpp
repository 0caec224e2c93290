#pragma once

#include <filesystem>
#include <optional>

#include "model/checkpoint/model_location.hpp"
#include "model/convert/tensor_types.hpp"
#include "model/convert/tensor_writing.hpp"

namespace pascaline {

/// Writes a model of GGUF files into a folder that is there and has nothing in it: weights in safetensors,
/// configuration, and the files of tokenizer and images as far as the GGUF files have what is in them. Without wanted
/// numbers matrices stay as they are stored: blocks as `pascaline quantize` writes them (docs/formats.md), but those of
/// a type that no matrix is kept in, or of tensors that become one matrix and have several, in one that holds them all.
/// Gives what was done, or nothing if `goes_on` ended it; the folder is then of no use, as it is after an exception.
/// Throws Error and its kinds for what is wrong in the files or cannot be written.
[[nodiscard]] std::optional<TensorProgress> write_model_files(const ModelLocation& model,
                                                              const std::filesystem::path& folder,
                                                              std::optional<GgufType> numbers,
                                                              const ConvertSettings& settings = {});

}  // namespace pascaline
