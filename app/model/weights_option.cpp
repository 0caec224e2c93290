#include "app/model/weights_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.hpp"
#include "core/util/suggestion.hpp"
#include "model/checkpoint/checkpoint.hpp"

namespace pascaline {
namespace {

bool is_recipe_name(const std::string& given) {
  const auto names = WeightRecipe::names();
  return std::find(names.begin(), names.end(), given) != names.end();
}

std::string fault_of(const std::string& given, bool with_auto) {
  const auto known = WeightRecipe::names();
  std::vector<std::string> names{known.begin(), known.end()};
  if (with_auto) {
    names.emplace_back(kAutomaticWeights);
  }
  return check_weights_among(given, names);
}

bool has_weights(const ModelLocation& model) {
  if (is_gguf_path(model.path)) {
    return true;
  }
  std::error_code unreadable;
  const std::filesystem::directory_iterator files(model.path, unreadable);
  return std::any_of(begin(files), end(files), [](const std::filesystem::directory_entry& entry) {
    return entry.path().extension() == ".safetensors";
  });
}

// Throws what opening the folder does, if there are weights in it.
std::optional<WeightRecipe> recipe_of_model(const ModelLocation& model, ElementType bfloat) {
  if (!has_weights(model)) {
    return std::nullopt;
  }
  const Checkpoint checkpoint = Checkpoint::open(model, load_model_config(model));
  return checkpoint.has_formats() || !checkpoint.recipe().empty() ? std::optional(stored_recipe(checkpoint, bfloat))
                                                                  : std::nullopt;
}

}  // namespace

WeightRecipe given_weights(const std::string& given) {
  return is_recipe_name(given) ? WeightRecipe::named(given) : WeightRecipe::load(given);
}

std::string check_weights_among(const std::string& given, const std::vector<std::string>& names) {
  std::error_code unreadable;
  if (std::find(names.begin(), names.end(), given) != names.end() ||
      std::filesystem::is_regular_file(given, unreadable)) {
    return {};
  }
  return fmt::format("'{}'{} is none of {}, and {}", given, did_you_mean(given, names), fmt::join(names, ", "),
                     std::filesystem::exists(given, unreadable) ? "what has that name is no regular file"
                                                                : "a file of that name does not exist");
}

std::string check_given_weights(const std::string& given) { return fault_of(given, false); }

std::string check_weights_or_auto(const std::string& given) { return fault_of(given, true); }

WeightRecipe weights_of_folder(const ModelLocation& model, ElementType usual) {
  return recipe_of_model(model, usual).value_or(usual);
}

std::vector<WeightRecipe> automatic_weights(const ModelLocation& model, bool on_processor) {
  if (auto stored = recipe_of_model(model, ElementType::float16)) {
    return {*std::move(stored)};
  }
  std::vector<WeightRecipe> choices;
  // On the processor a token takes as long as reading the weights: more bits than needed are not worth it.
  for (const char* name : {"float16", "q8_0", "q6_k", "q4_k"}) {
    if (!on_processor || std::string_view(name) != "float16") {
      choices.push_back(WeightRecipe::named(name));
    }
  }
  return choices;
}

}  // namespace pascaline
