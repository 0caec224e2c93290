#include "core/util/unknown_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/util/counted.hpp"
#include "core/util/shown_text.hpp"

namespace pascaline {
namespace {

constexpr std::size_t kMaxKeysShown = 12;

thread_local bool is_strict = false;

// Whether the text was not told before in this process.
bool is_news(const std::string& text) {
  static std::mutex guard;
  static std::set<std::string> told;
  const std::lock_guard lock(guard);
  return told.insert(text).second;
}

}  // namespace

StrictKeys::StrictKeys(bool strict) noexcept : before_(is_strict) { is_strict = is_strict || strict; }

StrictKeys::~StrictKeys() { is_strict = before_; }

void pass_over(const std::string& text) {
  const std::string line = clean_line(text);
  if (is_strict) {
    throw Error(line + "; --strict refuses that");
  }
  if (is_news(line)) {
    fmt::print(stderr, "pascaline: warning: {}\n", line);
  }
}

void pass_over_unknown(const std::string& file, std::span<const std::string> keys) {
  if (keys.empty()) {
    return;
  }
  const std::vector<std::string> shown(
      keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(keys.size(), kMaxKeysShown)));
  pass_over(fmt::format("{}: {} unknown here and ignored: {}{}", file,
                        counted(keys.size(), "key") + (keys.size() == 1 ? " is" : " are"), fmt::join(shown, ", "),
                        keys.size() > kMaxKeysShown ? fmt::format(" and {} more", keys.size() - kMaxKeysShown) : ""));
}

}  // namespace pascaline
