#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pascaline {

/// Looks for texts that end an answer while it is written piece by piece, also where one is spread over pieces.
class StopStrings {
 public:
  /// Throws Error if one is empty.
  explicit StopStrings(std::vector<std::string> texts);

  /// Takes the next piece of the answer and gives what can be shown: not a text that ends it, nor what may become the
  /// beginning of one. After one was found, nothing.
  [[nodiscard]] std::string push(std::string_view piece);
  /// Gives what was held back, at the end of an answer.
  [[nodiscard]] std::string finish();
  [[nodiscard]] bool found() const noexcept { return found_; }

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace pascaline
