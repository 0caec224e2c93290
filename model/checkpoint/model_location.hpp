#pragma once

#include <concepts>
#include <filesystem>
#include <utility>

#include "model/checkpoint/given_model.hpp"

namespace pascaline {

/// Where a model is: a folder, or a GGUF file with the file of its projector, if it is to read images. A folder may be
/// given as `downloaded_model` takes it.
struct ModelLocation {
  std::filesystem::path path;       ///< of the folder or the file of the text model
  std::filesystem::path projector;  ///< GGUF file of the vision tower; empty: none

  ModelLocation() = default;
  // Implicit, as a path alone says where most models are.
  template <typename Path>
  requires std::convertible_to<Path, std::filesystem::path> ModelLocation(
      Path&& model, std::filesystem::path projector_file = {})  // NOLINT(google-explicit-*)
      : path(downloaded_model(std::forward<Path>(model))), projector(std::move(projector_file)) {}
};

}  // namespace pascaline
