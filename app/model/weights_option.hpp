#pragma once

#include <string>
#include <vector>

#include "model/checkpoint/model_location.hpp"
#include "model/checkpoint/weight_recipe.hpp"

namespace pascaline {

/// What `--weights` may be beside a recipe, where a model is run.
inline constexpr const char* kAutomaticWeights = "auto";

/// The recipe of that name, or in that file. Throws Error as WeightRecipe does.
[[nodiscard]] WeightRecipe given_weights(const std::string& given);
/// Of a command line's `--weights`: what is wrong with it, or an empty text.
[[nodiscard]] std::string check_given_weights(const std::string& given);
/// The same where a recipe must have one of these names, if it is no file.
[[nodiscard]] std::string check_weights_among(const std::string& given, const std::vector<std::string>& names);
/// The same, where `auto` is possible.
[[nodiscard]] std::string check_weights_or_auto(const std::string& given);

/// What a quantized folder's matrices are stored in; `usual` of a folder that is not quantized, or has no weights,
/// which some commands do without. Throws as opening the folder's weights does.
[[nodiscard]] WeightRecipe weights_of_folder(const ModelLocation& model, ElementType usual);
/// What `--weights auto` chooses from, the most accurate first.
[[nodiscard]] std::vector<WeightRecipe> automatic_weights(const ModelLocation& model, bool on_processor);

}  // namespace pascaline
