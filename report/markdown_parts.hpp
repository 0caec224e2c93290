#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/trial.hpp"

namespace pascaline {

/// What stands in a cell for a value that there is not.
inline constexpr std::string_view kNoValue = "–";

/// Rows of a table that stand open; those beyond are folded.
inline constexpr std::size_t kOpenRows = 20;

/// The body behind a line to be clicked; `summary` is escaped text.
[[nodiscard]] std::string markdown_details(std::string_view summary, std::string_view body);

/// A table: `head` is its first two lines, each of `rows` one, all without their newlines. Rows beyond `open` are
/// folded. Ends with an empty line.
[[nodiscard]] std::string markdown_table(std::string_view head, const std::vector<std::string>& rows,
                                         std::size_t open = kOpenRows);

/// The median as a short number, or `kNoValue`.
[[nodiscard]] std::string median_cell(const std::optional<TimeSummary>& time);

/// How many times faster `best` is than `baseline`: "2.00× (1.64–2.44)", with the widest interval that the two 95 %
/// intervals allow; `kNoValue` where one is missing.
[[nodiscard]] std::string speedup_cell(const std::optional<TimeSummary>& baseline,
                                       const std::optional<TimeSummary>& best);

}  // namespace pascaline
