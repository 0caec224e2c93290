#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace pascaline {

/// Splits text into the pieces that are encoded each on its own: the matches of a regular expression and what lies
/// between them. Copies of the pattern may not be made; several threads may use one at a time.
class SplitPattern {
 public:
  static constexpr std::uint32_t kMatchLimit = 10'000'000;

  /// Compiles the pattern (see pcre_pattern for what it may hold), to machine code where the system allows it. No
  /// match takes more than `match_limit` steps, and four more for each byte of the text. Throws Error with the place
  /// of what is wrong, also if the pattern can match nothing at all.
  explicit SplitPattern(const std::string& pattern, std::uint32_t match_limit = kMatchLimit);

  /// The pieces, in order, as parts of the text, which must be valid UTF-8. Throws Error if PCRE2 reaches a limit;
  /// there is no other result than the whole right one.
  [[nodiscard]] std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const noexcept;
  };
  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
  std::uint32_t match_limit_;
};

}  // namespace pascaline
