#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

namespace pascaline {

/// Copies of the values that a launch was given.
class KeptArguments {
 public:
  KeptArguments(std::span<void* const> arguments, const unsigned* bytes) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      values_.emplace_back(bytes[i] / sizeof(std::max_align_t) + 1);
      std::memcpy(values_.back().data(), arguments[i], bytes[i]);
    }
  }
  [[nodiscard]] std::vector<void*> pointers() {
    std::vector<void*> out;
    for (auto& value : values_) {
      out.push_back(value.data());
    }
    return out;
  }

 private:
  std::vector<std::vector<std::max_align_t>> values_;
};

/// One step of a recorded graph.
struct EmulatedStep {
  enum class Kind { fill, launch };
  Kind kind = Kind::fill;
  std::function<void()> run;
};

using EmulatedGraph = std::vector<EmulatedStep>;

/// Whether two graphs have the same kinds of steps in the same order, as a GPU's must to be updated in place.
[[nodiscard]] inline bool same_form(const EmulatedGraph& a, const EmulatedGraph& b) noexcept {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].kind != b[i].kind) {
      return false;
    }
  }
  return true;
}

}  // namespace pascaline
