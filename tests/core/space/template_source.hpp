#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pascaline::testing {

/// One parameter of a kernel's signature.
struct TemplateParameter {
  std::string type;  ///< without const, `*` and __restrict__
  std::string name;
  bool is_pointer = false;
  bool is_const = false;
};

/// What a search space must agree with: a kernel template's macros and entry points.
class TemplateSource {
 public:
  explicit TemplateSource(std::string text) : text_(std::move(text)) {}

  [[nodiscard]] bool defines(const std::string& macro) const;
  /// Parameters of the extern "C" __global__ function of that name; nothing if there is none.
  [[nodiscard]] std::optional<std::vector<TemplateParameter>> signature(const std::string& function) const;

 private:
  std::string text_;
};

}  // namespace pascaline::testing
