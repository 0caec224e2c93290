#include "model/checkpoint/hf/safetensors.hpp"

#include <fmt/format.h>

#include "model/checkpoint/model_error.hpp"

namespace pascaline {

Safetensors::Safetensors(const std::filesystem::path& file)
    : file_(file), content_(parse_safetensors(file_.bytes(), file.string())) {
  for (std::size_t i = 0; i < content_.tensors.size(); ++i) {
    index_.emplace(content_.tensors[i].name, i);
  }
}

const StoredTensor* Safetensors::find(std::string_view name) const noexcept {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &content_.tensors[found->second];
}

const StoredTensor& Safetensors::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) {
    throw ModelError(fmt::format("{}: there is no tensor {} among its {}", path().string(), quoted_name(name),
                                 content_.tensors.size()));
  }
  return *tensor;
}

}  // namespace pascaline
