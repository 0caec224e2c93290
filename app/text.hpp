#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pascaline {

/// Columns that a terminal gives to a line of UTF-8: 2 to wide characters, 0 to combining ones, 1 to a stray byte.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// The line, with its end replaced by "…" if it takes more columns than that; empty for 0 columns.
[[nodiscard]] std::string cut_to_columns(std::string_view text, std::size_t columns);

/// Rows as aligned columns, the first row their headings: numbers and the like to the right, the first column to the
/// left. Every row has as many cells as the first.
[[nodiscard]] std::string aligned_columns(const std::vector<std::vector<std::string>>& rows);

/// The word as a shell reads it: as it is if nothing in it means something there, else in single quotes.
[[nodiscard]] std::string shell_word(std::string_view word);

/// The command that resumes a database's last unfinished sweep, for a shell; `paths`: options with paths to give;
/// `more`: further options, as a shell reads them.
[[nodiscard]] std::string resume_command(std::string_view database,
                                         const std::vector<std::pair<std::string, std::string>>& paths = {},
                                         std::string_view more = {});

/// Names the first of the problems that a sweep had no time for, and how many more there are.
[[nodiscard]] std::string not_reached_text(const std::vector<std::string>& problems);
/// "no time so far (1): matmul M=8: no trial in its turn of 3.0 s", of which the first are named.
[[nodiscard]] std::string no_time_text(const std::vector<std::string>& problems);
/// "provisional, without finals so far (1): matmul M=8".
[[nodiscard]] std::string provisional_text(const std::vector<std::string>& problems);

/// "12.31 us", "1.234 ms".
[[nodiscard]] std::string time_text(double time_us);

/// "12.3 ms", "4 s": a sum of times.
[[nodiscard]] std::string sum_text(double time_us);

}  // namespace pascaline
