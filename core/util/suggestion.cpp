#include "core/util/suggestion.hpp"

#include <algorithm>

namespace pascaline {
namespace {

// Beyond that it is no typing error, and comparing would take long.
constexpr std::size_t kMaxNameLength = 100;

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_letter(char a, char b) { return lower_case(a) == lower_case(b); }

std::string only_continuation(std::string_view given, const std::vector<std::string>& known) {
  constexpr std::size_t kMinLength = 3;
  const auto continues = [&](const std::string& name) { return name.starts_with(given); };
  if (given.size() < kMinLength || std::count_if(known.begin(), known.end(), continues) != 1) {
    return {};
  }
  return *std::find_if(known.begin(), known.end(), continues);
}

}  // namespace

std::size_t edit_distance(std::string_view from, std::string_view to) {
  // Rows of the table of distances between the beginnings of both texts: the last but one, the last, and this one.
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> last(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (same_letter(from[i - 1], to[j - 1]) ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && same_letter(from[i - 1], to[j - 2]) && same_letter(from[i - 2], to[j - 1]);
      row[j] = swapped ? std::min(row[j], before[j - 2] + 1) : row[j];
    }
    before.swap(last);
    last.swap(row);
  }
  return last[to.size()];
}

std::string closest_name(std::string_view given, const std::vector<std::string>& known) {
  if (given.empty() || given.size() > kMaxNameLength) {
    return {};
  }
  std::string closest;
  std::size_t least = given.size() / 3 + 1;
  for (const std::string& name : known) {
    if (name.size() > kMaxNameLength) {
      continue;
    }
    if (const std::size_t distance = edit_distance(given, name); distance < least) {
      closest = name;
      least = distance;
    }
  }
  return closest.empty() ? only_continuation(given, known) : closest;
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
  const std::string closest = closest_name(given, known);
  return closest.empty() ? "" : " (did you mean '" + closest + "'?)";
}

}  // namespace pascaline
