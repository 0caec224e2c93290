#pragma once

#include <filesystem>
#include <vector>

#include "model/checkpoint/hf/safetensors.hpp"

namespace pascaline {

/// Opens the weights of a model folder: `model.safetensors`, or the shards that `model.safetensors.index.json` names.
/// Throws ModelError if neither or both are there, a shard is no plain file name of the folder, or index and shards do
/// not have exactly the same tensors in the same files; and whatever Safetensors throws.
[[nodiscard]] std::vector<Safetensors> open_model_files(const std::filesystem::path& folder);

}  // namespace pascaline
