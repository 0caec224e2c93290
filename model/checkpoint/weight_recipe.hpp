#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {

/// Which type or format of matrices each matrix of a model is kept in: rules for tensors' names, of which the first
/// that fits decides. Everything that is no matrix is float32.
class WeightRecipe {
 public:
  /// One of the rules: a pattern in which `*` stands for any letters, and a type.
  struct Rule {
    std::string pattern;
    ElementType type;
    friend bool operator==(const Rule&, const Rule&) = default;
  };

  /// All matrices in that type; implicit, as a type alone says how. Throws Error for one that no matrix is kept in.
  WeightRecipe(ElementType all);  // NOLINT(google-explicit-*)
  WeightRecipe(std::string name, std::vector<Rule> rules);

  /// One of `names()`: a type, or a mix of them. Throws Error for another name.
  static WeightRecipe named(std::string_view name);
  /// A recipe of the user's: `{"tensors": [{"name": "PATTERN", "type": "TYPE"}, …], "others": "TYPE"}`. Throws Error
  /// with the file and what is wrong in it.
  static WeightRecipe load(const std::filesystem::path& file);
  [[nodiscard]] static std::span<const std::string_view> names() noexcept;

  /// As options and messages call it: a name, or the file's.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<Rule>& rules() const noexcept { return rules_; }
  /// The type of the matrix of that name.
  [[nodiscard]] ElementType of(std::string_view tensor) const;
  /// The type of a weight: float32 if it is no matrix. Throws Error if it is made of tensors that have different types.
  [[nodiscard]] ElementType of(const WeightEntry& weight) const;
  /// Throws Error if a rule of a user's recipe fits none of a model's matrices.
  void require_uses(std::span<const WeightEntry> weights) const;
  /// Patterns of a user's recipe that fit matrices of a model, but only such as an earlier pattern fits.
  [[nodiscard]] std::vector<std::string> hidden_patterns(std::span<const TensorSpec> tensors) const;
  /// Whether some rule gives a packed format, whose products round activations to int8.
  [[nodiscard]] bool has_packed_formats() const noexcept;
  friend bool operator==(const WeightRecipe&, const WeightRecipe&) = default;

 private:
  std::string name_;
  std::vector<Rule> rules_;
  bool is_own_ = false;  // of a user's file
};

/// The table of a model's weights as a recipe keeps them: stacked tensors that it gives several types are a weight for
/// each run of one type, where the table allows that.
[[nodiscard]] std::vector<WeightEntry> weight_table(const ModelConfig& config, ModelWeights& places,
                                                    const WeightRecipe& recipe);

/// What to say of patterns that earlier ones hide.
[[nodiscard]] std::string hidden_patterns_text(std::string_view recipe, std::span<const std::string> patterns);

/// Whether a name fits a pattern, in which `*` stands for any letters, also none.
[[nodiscard]] bool fits_pattern(std::string_view pattern, std::string_view name) noexcept;

}  // namespace pascaline
