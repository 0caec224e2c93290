#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace pascaline::testing {

/// How long a fuzz test runs: $PASCALINE_FUZZ_SECONDS, 5 by default, shared out over `parts` tests.
[[nodiscard]] std::chrono::milliseconds fuzz_time(int parts);

/// Seed of the fuzz tests: $PASCALINE_FUZZ_SEED, 1 by default.
[[nodiscard]] std::uint64_t fuzz_seed();

/// The words of a dictionary, which have '|' between them; they refer to it.
[[nodiscard]] std::vector<std::string_view> word_list(std::string_view dictionary);

/// Damages texts in the ways that parsers fail on; the same seed gives the same damage.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed, std::span<const std::string_view> dictionary)
      : random_(seed), dictionary_(dictionary) {}

  /// One to eight changes: flipped bits, words spliced in, pieces removed, repeated or swapped, truncation, nesting
  /// bombs, huge numbers.
  [[nodiscard]] std::string damaged(std::string text);
  /// The document with one to four of its values replaced, removed or moved, still valid JSON.
  [[nodiscard]] nlohmann::json altered(nlohmann::json document);
  /// A number below `bound`.
  [[nodiscard]] std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  void change(std::string& text);
  [[nodiscard]] std::string word();
  [[nodiscard]] nlohmann::json value();

  std::mt19937_64 random_;
  std::span<const std::string_view> dictionary_;
};

}  // namespace pascaline::testing
