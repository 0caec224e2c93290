#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model/checkpoint/model_config.hpp"

namespace pascaline {

inline constexpr std::string_view kHeadTensor = "lm_head.weight";

/// Whether a tensor of that official name is the embedding of a decoder.
[[nodiscard]] bool is_embedding_tensor(std::string_view official) noexcept;

/// Compares head and embedding of a folder whose configuration ties them, if it has weights and both are among them.
/// Where their values differ the configuration is wrong: the head is untied, as Transformers 5 does, and
/// a warning says so (`pass_over`). Weights that cannot be opened are left for `Checkpoint::open` to complain of.
void untie_other_head(const std::filesystem::path& folder, ModelConfig& config);

}  // namespace pascaline
