#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/util/json_reader.hpp"
#include "db/exchange/json_outline.hpp"
#include "db/exchange/recorded_space.hpp"

namespace pascaline {

// One reader a format, behind read_recorded_space.

[[nodiscard]] RecordedSpace parse_kernel_tuner(const JsonOutline& outline, const std::string& file);
[[nodiscard]] RecordedSpace parse_clblast(const JsonOutline& outline, const std::string& file);
[[nodiscard]] RecordedSpace parse_ktt(const JsonOutline& outline, const std::string& file);
[[nodiscard]] RecordedSpace parse_t4(const JsonOutline& outline, const std::string& file);
[[nodiscard]] RecordedSpace parse_recorded_csv(std::string_view text, const std::string& file);

/// Milliseconds since 1970 of "2023-12-22 09:53:48.691683+00:00" and other forms of ISO 8601; UTC if it names no zone,
/// 0 for anything else.
[[nodiscard]] std::int64_t unix_ms_of(std::string_view timestamp);
/// "2023-12-22 09:53:48.691000+00:00".
[[nodiscard]] std::string timestamp_of(std::int64_t unix_ms);

/// Microseconds of a unit of time by its name, in capitals or not; 0 for another.
[[nodiscard]] double microseconds_of(std::string_view unit);
/// A parameter's value: an integer, a number that is finite, true, false or text.
[[nodiscard]] Value value_of(const JsonNode& node);
/// A number times `unit`, if it is positive and a plausible time; nothing for anything else.
[[nodiscard]] std::optional<double> positive_time(const JsonNode& node, double unit);
/// That of a member; nothing if it is missing.
[[nodiscard]] std::optional<double> positive_time(const JsonNode& parent, std::string_view key, double unit);
/// As above, of all elements of an array; nothing if one is not, or if it is no array.
[[nodiscard]] std::optional<std::vector<double>> positive_times(const JsonNode& array, double unit);
/// The member as a duration: a positive number times `unit`; 0 for anything else.
[[nodiscard]] double duration_of(const JsonNode& parent, std::string_view key, double unit);
/// The member as text, empty if it is missing or null.
[[nodiscard]] std::string member_text(const JsonNode& parent, std::string_view key);
/// The member as it is written (text without its quotes), empty if it is missing or null.
[[nodiscard]] std::string written(const JsonNode& parent, std::string_view key);

}  // namespace pascaline
