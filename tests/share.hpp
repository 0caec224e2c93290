#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace pascaline::testing {

/// $PASCALINE_TEST_SHARE where that is a number above one: tests that do much the same many times take such a part of
/// it, as `scripts/test.sh --lean` wants. Otherwise 1: all of it.
inline std::size_t test_share() {
  const char* text = std::getenv("PASCALINE_TEST_SHARE");
  const int number = text != nullptr ? std::atoi(text) : 1;
  return number > 1 ? static_cast<std::size_t>(number) : 1;
}

/// The share of `whole`, rounded up; where it is not all, the test's output says so.
inline std::size_t shared_part(std::size_t whole, const char* what) {
  const std::size_t part = (whole + test_share() - 1) / test_share();
  if (part < whole) {
    std::printf("a share of the test: %zu of %zu %s (PASCALINE_TEST_SHARE)\n", part, whole, what);
  }
  return part;
}

/// The elements that a share of the test takes, evenly spaced, beginning with number `turn`; `what` names them in its
/// message.
template <typename T>
std::vector<T> share_of(const std::vector<T>& all, const char* what, std::size_t turn = 0) {
  const std::size_t part = shared_part(all.size(), what);
  std::vector<T> taken;
  for (std::size_t i = 0; i < part; ++i) {
    taken.push_back(all[(turn + i * all.size() / part) % all.size()]);
  }
  return taken;
}

}  // namespace pascaline::testing
