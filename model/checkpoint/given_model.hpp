#pragma once

#include <filesystem>
#include <string>

namespace pascaline {

/// The folder of a model for the folder that a user gave: of an entry of the Hugging Face cache (`models--OWNER--NAME`,
/// or the `snapshots` in it) the snapshot that `refs/main` names, or the only one; else the given one.
[[nodiscard]] std::filesystem::path downloaded_model(std::filesystem::path given);

/// Why `folder`, which may not be one, is not a model's folder, or why it lacks `file`, with what to do, for a message;
/// it begins with a path.
[[nodiscard]] std::string reason_not_a_model(const std::filesystem::path& folder, std::string_view file);

/// What a message says of a folder with a LoRA adapter in place of a model, after its name; empty if it has none.
[[nodiscard]] std::string adapter_text(const std::filesystem::path& folder);

/// What a message says of a folder whose weights are in a file of PyTorch, TensorFlow or Flax, after its name; empty if
/// there is none.
[[nodiscard]] std::string other_weights_text(const std::filesystem::path& folder);

/// Warns of an adapter beside a model, which is not applied (see `pass_over`).
void pass_over_adapter(const std::filesystem::path& folder);

}  // namespace pascaline
