#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/util/shown_text.hpp"
#include "db/store.hpp"

namespace pascaline {

/// "2026-03-01 04:05 UTC"; "-" for 0.
[[nodiscard]] std::string utc_time(std::int64_t unix_ms);

/// "nvrtc 12.9, driver 12.4", without the target.
[[nodiscard]] std::string toolkit_text(const ToolkitRow& toolkit);

/// At least four significant digits, never with an exponent unless tiny.
[[nodiscard]] std::string short_number(double value);

/// The text as Markdown shows it literally, on one line, in a table cell or elsewhere.
[[nodiscard]] std::string markdown_escape(std::string_view text);

/// What became of a default configuration that another stands in for; `why` is what is stored of it.
[[nodiscard]] std::string default_fate(const std::string& why);

/// Explains the word "provisional", once a listing.
inline constexpr std::string_view kProvisionalMeaning =
    "provisional: the best by the search's trials, without finals, which a longer sweep holds, or --resume";

/// Number of code points, which is near enough to how wide a terminal shows it.
[[nodiscard]] std::size_t display_width(std::string_view text);

}  // namespace pascaline
