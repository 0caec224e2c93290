#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace pascaline {

/// Seconds of "8h", "90m", "45s", "1h30m" or "1.5h"; throws Error if there is no unit or anything else is wrong, or
/// if it is longer than ten years.
[[nodiscard]] double parse_duration_s(std::string_view text);

/// Seconds as a clock shows them, cut to whole ones: "1:02:03". Negative ones count as 0.
[[nodiscard]] std::string clock_text(double seconds);

/// Seconds as people say them, rounded: "45 s", "5 min 30 s", "2 h 10 min". Negative ones count as 0.
[[nodiscard]] std::string duration_text(double seconds);

/// The next time after `now` that a clock in the local time zone shows "07:00", "7:00" or "07:00:30", or the one time
/// of "2026-11-22 07:00". Of a time that comes twice when summer time ends, the first after `now`; a time that is
/// skipped when it begins is taken in standard time, an hour later on the clock. Throws Error if the text is no time
/// or its date is past.
[[nodiscard]] std::chrono::system_clock::time_point parse_time_of_day(std::string_view text,
                                                                      std::chrono::system_clock::time_point now);

}  // namespace pascaline
