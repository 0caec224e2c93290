#pragma once

#include <string>
#include <string_view>

namespace pascaline {

/// A cell of a CSV line, in quotes where needed. Text that a spreadsheet would run as a formula (it begins with =, @, a
/// tab or a line end, or with + or - and is not a number) gets an apostrophe in front, as does such text that begins
/// with apostrophes, so that `csv_original` can tell them apart.
[[nodiscard]] std::string csv_field(std::string_view text);

/// The text that `csv_field` was given, of a cell without its quotes.
[[nodiscard]] std::string_view csv_original(std::string_view cell);

}  // namespace pascaline
