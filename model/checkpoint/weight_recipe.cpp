#include "model/checkpoint/weight_recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/util/json_reader.hpp"
#include "core/util/paths.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline {
namespace {

// Embedding and head in one piece of memory where they are tied, so both must have one type.
constexpr const char* kEmbeddingPattern = "*embed_tokens.weight";
constexpr const char* kHeadPattern = "*lm_head.weight";
constexpr const char* kVisionPattern = "*visual.*";

bool is_kept(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 || is_matrix_format(type);
}

struct Mix {
  std::string_view name;
  ElementType layers;
  ElementType embedding;  // and head
  ElementType vision;
};

constexpr auto kMixes = [] {
  std::array<Mix, 2 + matrix_formats().size()> mixes{
      {{"float32", ElementType::float32, ElementType::float32, ElementType::float32},
       {"float16", ElementType::float16, ElementType::float16, ElementType::float16}}};
  std::transform(matrix_formats().begin(), matrix_formats().end(), mixes.begin() + 2, [](const FormatTraits& format) {
    return Mix{format.recipe.name, format.type, format.recipe.embedding,
               format.type == ElementType::float16x ? format.type : ElementType::q8_0};
  });
  return mixes;
}();

constexpr auto kNames = [] {
  std::array<std::string_view, kMixes.size()> names;
  std::transform(kMixes.begin(), kMixes.end(), names.begin(), [](const Mix& mix) { return mix.name; });
  return names;
}();

ElementType read_type(const JsonNode& node) {
  const auto type = element_type_from(node.text());
  if (!type || !is_kept(*type)) {
    std::vector<std::string> known;
    for (const FormatTraits& traits : kElementTypes) {
      if (is_kept(traits.type)) {
        known.emplace_back(traits.name);
      }
    }
    node.fail(fmt::format("no weight can be kept as '{}'{}; known are {}", node.text(),
                          did_you_mean(node.text(), known), fmt::join(known, ", ")));
  }
  return *type;
}

}  // namespace

bool fits_pattern(std::string_view pattern, std::string_view name) noexcept {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last one met, and the letter that what follows it is tried at
  std::size_t tried = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string hidden_patterns_text(std::string_view recipe, std::span<const std::string> patterns) {
  return fmt::format("{}: '{}' decide{} nothing, as earlier patterns fit all of its matrices; put narrower ones first",
                     recipe, fmt::join(patterns, "', '"), patterns.size() == 1 ? "s" : "");
}

WeightRecipe::WeightRecipe(ElementType all) : WeightRecipe(std::string(name_of(all)), {{"*", all}}) {}

WeightRecipe::WeightRecipe(std::string name, std::vector<Rule> rules)
    : name_(std::move(name)), rules_(std::move(rules)) {
  for (const Rule& rule : rules_) {
    if (!is_kept(rule.type)) {
      throw Error(fmt::format("{}: no weight is kept as {}", name_, name_of(rule.type)));
    }
  }
  if (rules_.empty() || rules_.back().pattern != "*") {
    throw Error(fmt::format("{}: the last rule must be for all other tensors", name_));
  }
}

WeightRecipe WeightRecipe::named(std::string_view name) {
  const auto mix = std::find_if(kMixes.begin(), kMixes.end(), [&](const Mix& known) { return known.name == name; });
  if (mix == kMixes.end()) {
    throw Error(fmt::format("there is no recipe '{}'{}; known are {}", name,
                            did_you_mean(name, {kNames.begin(), kNames.end()}), fmt::join(kNames, ", ")));
  }
  std::vector<Rule> rules;
  if (mix->embedding != mix->layers) {
    rules.push_back({kEmbeddingPattern, mix->embedding});
    rules.push_back({kHeadPattern, mix->embedding});
  }
  if (mix->vision != mix->layers) {
    rules.push_back({kVisionPattern, mix->vision});
  }
  rules.push_back({"*", mix->layers});
  return {std::string(name), std::move(rules)};
}

WeightRecipe WeightRecipe::load(const std::filesystem::path& file) {
  const std::string where = file.string();
  const nlohmann::json document = parse_json(read_file(file), where);
  const JsonNode root(document, where);
  root.only_keys({"tensors", "others"});
  std::vector<Rule> rules;
  if (root.has("tensors")) {
    const JsonNode list = root.at("tensors");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      const JsonNode rule = list.at(i);
      rule.only_keys({"name", "type"});
      rules.push_back({rule.at("name").text(), read_type(rule.at("type"))});
    }
  }
  rules.push_back({"*", read_type(root.at("others"))});
  WeightRecipe recipe(where, std::move(rules));
  recipe.is_own_ = true;
  return recipe;
}

ElementType WeightRecipe::of(const WeightEntry& weight) const {
  if (weight.kind() != TensorKind::matrix) {
    return ElementType::float32;
  }
  const TensorSpec& first = weight.tensors.front();
  const ElementType type = of(first.name);
  for (const TensorSpec& other : weight.tensors) {
    if (of(other.name) != type) {
      throw Error(fmt::format("{}: {} and {} are one matrix here and need one type, not {} and {}", name_, first.name,
                              other.name, name_of(type), name_of(of(other.name))));
    }
  }
  return type;
}

std::vector<WeightEntry> weight_table(const ModelConfig& config, ModelWeights& places, const WeightRecipe& recipe) {
  std::vector<WeightEntry> table;
  for (WeightEntry& entry : weight_table(config, places)) {
    if (entry.most_matrices < entry.tensors.size()) {
      table.push_back(std::move(entry));
      continue;
    }
    TensorView* place = entry.place;
    for (std::size_t i = 0; i < entry.tensors.size(); ++i) {
      if (i == 0 || recipe.of(entry.tensors[i].name) != recipe.of(entry.tensors[i - 1].name)) {
        table.push_back({place++, {}, entry.layout, entry.part});
      }
      table.back().tensors.push_back(entry.tensors[i]);
    }
  }
  return table;
}

void WeightRecipe::require_uses(std::span<const WeightEntry> weights) const {
  std::vector<std::string> matrices;
  for (const WeightEntry& weight : weights) {
    for (const TensorSpec& tensor : weight.tensors) {
      if (tensor.kind == TensorKind::matrix) {
        matrices.push_back(tensor.name);
      }
    }
  }
  for (std::size_t i = 0; is_own_ && i + 1 < rules_.size(); ++i) {
    const std::string& pattern = rules_[i].pattern;
    if (std::none_of(matrices.begin(), matrices.end(),
                     [&](const std::string& name) { return fits_pattern(pattern, name); })) {
      throw Error(fmt::format("{}: '{}' fits no matrix of this model, which has e.g. {}", name_, pattern,
                              matrices.empty() ? "none" : matrices.front()));
    }
  }
}

std::vector<std::string> WeightRecipe::hidden_patterns(std::span<const TensorSpec> tensors) const {
  std::vector<bool> fits(rules_.size());
  std::vector<bool> decides(rules_.size());
  for (const TensorSpec& tensor : tensors) {
    bool is_first = tensor.kind == TensorKind::matrix;
    for (std::size_t i = 0; tensor.kind == TensorKind::matrix && i < rules_.size(); ++i) {
      if (fits_pattern(rules_[i].pattern, tensor.name)) {
        fits[i] = true;
        decides[i] = decides[i] || is_first;
        is_first = false;
      }
    }
  }
  std::vector<std::string> hidden;
  for (std::size_t i = 0; is_own_ && i + 1 < rules_.size(); ++i) {
    if (fits[i] && !decides[i]) {
      hidden.push_back(rules_[i].pattern);
    }
  }
  return hidden;
}

std::span<const std::string_view> WeightRecipe::names() noexcept { return kNames; }

ElementType WeightRecipe::of(std::string_view tensor) const {
  return std::find_if(rules_.begin(), rules_.end(),
                      [&](const Rule& rule) { return fits_pattern(rule.pattern, tensor); })
      ->type;
}

bool WeightRecipe::has_packed_formats() const noexcept {
  return std::any_of(rules_.begin(), rules_.end(), [](const Rule& rule) { return is_packed_format(rule.type); });
}

}  // namespace pascaline
