#pragma once

#include <string>
#include <string_view>

#include "model/checkpoint/model_config.hpp"

namespace pascaline {

/// The official name of a tensor of that family that a file holds under the name another program uses (base model
/// class, vLLM and SGLang, MLX, Qwen2-VL); a name of no known scheme comes back in some form that no model has.
[[nodiscard]] std::string official_tensor_name(std::string_view stored, ModelFamily family);

/// Whether only quantized checkpoints have tensors of that name: scales, zero points, packed weights.
[[nodiscard]] bool is_quantisation_tensor(std::string_view stored) noexcept;

}  // namespace pascaline
