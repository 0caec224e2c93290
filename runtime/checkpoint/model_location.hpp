#pragma once

#include <concepts>
#include <filesystem>
#include <utility>

namespace pascaline {

/// Where a model is: a folder, or a GGUF file with the file of its projector, if it is to read images.
struct ModelLocation {
  std::filesystem::path path;       ///< of the folder or the file of the text model
  std::filesystem::path projector;  ///< GGUF file of the vision tower; empty: none

  ModelLocation() = default;
  // Implicit, as a path alone says where most models are.
  template <typename Path>
  requires std::convertible_to<Path, std::filesystem::path> ModelLocation(
      Path&& model, std::filesystem::path projector_file = {})  // NOLINT(google-explicit-*)
      : path(std::forward<Path>(model)), projector(std::move(projector_file)) {}
};

}  // namespace pascaline
