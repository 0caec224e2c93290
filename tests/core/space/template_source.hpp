#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pascaline::testing {

/// `#ifndef NAME / #define NAME default  // meaning / #endif` of a kernel template.
struct TemplateMacro {
  std::string value;
  std::string meaning;
};

/// One parameter of a kernel's signature.
struct TemplateParameter {
  std::string type;  ///< without const, `*` and __restrict__
  std::string name;
  bool is_pointer = false;
  bool is_const = false;
};

/// What a search space must agree with: a kernel template's tunable macros and entry points.
class TemplateSource {
 public:
  explicit TemplateSource(std::string text);

  [[nodiscard]] const std::map<std::string, TemplateMacro>& macros() const { return macros_; }
  /// Parameters of the extern "C" __global__ function of that name; nothing if there is none.
  [[nodiscard]] std::optional<std::vector<TemplateParameter>> signature(const std::string& function) const;

 private:
  std::string text_;
  std::map<std::string, TemplateMacro> macros_;
};

}  // namespace pascaline::testing
