#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/directives.hpp"

namespace pascaline {

/// Stands in a macro's value, and in what comes of it, for digits that are not known.
inline constexpr char kAnyNumber = '\x01';

/// The definitions that macros have in any branch of a source and by any value of a parameter. So what becomes of a
/// line depends on no compiler and on none of its macros.
class PossibleMacros {
 public:
  /// The text of a `#define`: `NAME value` or `NAME(a, b) value`.
  void define(std::string_view text);

  /// All that a text in a file of this name may expand to, each macro having one of its definitions; at most some
  /// ten thousand.
  [[nodiscard]] std::vector<std::vector<CodeToken>> expansions(std::string_view text, const std::string& file) const;

 private:
  friend class Expansion;
  struct Definition {
    bool has_arguments = false;
    std::vector<std::string> parameters{};  ///< the last is `__VA_ARGS__`, or what its name is, of a variadic one
    bool variadic = false;
    std::vector<CodeToken> body{};
  };
  std::map<std::string, std::vector<Definition>, std::less<>> macros_;
};

}  // namespace pascaline
