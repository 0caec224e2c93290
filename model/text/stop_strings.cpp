#include "model/text/stop_strings.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace pascaline {

StopStrings::StopStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
  if (std::any_of(texts_.begin(), texts_.end(), [](const std::string& text) { return text.empty(); })) {
    throw Error("a text that ends answers must not be empty");
  }
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) {
    return {};
  }
  held_ += piece;
  std::size_t first = std::string::npos;
  std::size_t kept = 0;  // characters at the end that may begin one of the texts
  for (const std::string& text : texts_) {
    first = std::min(first, held_.find(text));
    for (std::size_t length = std::min(text.size() - 1, held_.size()); length > kept; --length) {
      if (held_.ends_with(std::string_view(text).substr(0, length))) {
        kept = length;
      }
    }
  }
  found_ = first != std::string::npos;
  std::string shown = held_.substr(0, found_ ? first : held_.size() - kept);
  held_.erase(0, found_ ? held_.size() : shown.size());
  return shown;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace pascaline
