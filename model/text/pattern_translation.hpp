#pragma once

#include <string>
#include <string_view>

namespace pascaline {

/// The split pattern of a tokenizer, written for Oniguruma, as PCRE2 must be given it to match the same. Accepted are
/// the constructs that mean the same to both: literals, classes of literals, ranges and \p{general category}, \s, \S,
/// \d, \r, \n, \t, groups, (?: (?i: (?= (?! and quantifiers; \s and \S are spelled out, because the two disagree on
/// U+180E. Throws Error that names the construct for all else.
[[nodiscard]] std::string pcre_pattern(std::string_view pattern);

}  // namespace pascaline
