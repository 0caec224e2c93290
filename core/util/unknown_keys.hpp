#pragma once

#include <span>
#include <string>

namespace pascaline {

/// While it lives, `pass_over_unknown` of this thread throws instead of warning, if `strict`.
class StrictKeys {
 public:
  explicit StrictKeys(bool strict) noexcept;
  StrictKeys(const StrictKeys&) = delete;
  StrictKeys& operator=(const StrictKeys&) = delete;
  ~StrictKeys();

 private:
  bool before_;
};

/// Warns on stderr that this is passed over, once in a process for each text. Throws Error with it under StrictKeys.
void pass_over(const std::string& text);

/// The same of keys of a model's file that nothing here knows, in one line; nothing if there are none.
void pass_over_unknown(const std::string& file, std::span<const std::string> keys);

}  // namespace pascaline
