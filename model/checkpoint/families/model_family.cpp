#include "model/checkpoint/families/model_family.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/error.hpp"
#include "model/checkpoint/model_error.hpp"

namespace pascaline {

std::span<const FamilyTraits> known_families() noexcept {
  static const std::array families{qwen3_vl_family(), qwen3_family(), llama_family()};
  return families;
}

const FamilyTraits& traits_of(ModelFamily family) {
  const auto index = static_cast<std::size_t>(family);
  if (index >= known_families().size()) {
    throw Error(fmt::format("there is no model family number {}", index));
  }
  return known_families()[index];
}

ModelFamily family_named(const JsonNode& model_type) {
  const std::string name = model_type.text();
  std::vector<std::string> known;
  for (std::size_t i = 0; i < known_families().size(); ++i) {
    const FamilyTraits& family = known_families()[i];
    if (name == family.model_type) {
      return static_cast<ModelFamily>(i);
    }
    known.push_back(fmt::format("'{}' ({})", family.model_type, family.name));
  }
  model_type.fail(fmt::format("the model family {} is not known, only {}; take a model of one of these",
                              quoted_name(name), fmt::join(known, ", ")));
}

}  // namespace pascaline
