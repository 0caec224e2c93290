#include "core/util/duration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>

#include "core/error.hpp"

namespace pascaline {
namespace {

using SystemClock = std::chrono::system_clock;

constexpr double kLongest = 10 * 365.25 * 24 * 3600;
constexpr const char* kTooFarAhead = "is more than ten years ahead";

[[noreturn]] void fail_duration(std::string_view text, std::string_view problem) {
  throw Error(
      fmt::format("'{}' is not a duration: {}; give hours, minutes or seconds with h, m or s, such as 8h, 90m, "
                  "45s, 1h30m or 1.5h",
                  text, problem));
}

[[noreturn]] void fail_time(std::string_view text, std::string_view problem) {
  throw Error(
      fmt::format("'{}' {}; give a local time such as 07:00, 7:00 or 07:00:30, with or without a date before "
                  "it (2026-11-22 07:00)",
                  text, problem));
}

struct LocalTime {
  bool has_date = false;
  std::tm fields{};
};

std::optional<LocalTime> read_local_time(const std::string& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') {  // strptime would pass over blanks
    return std::nullopt;
  }
  for (const char* format :
       {"%H:%M:%S", "%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"}) {
    LocalTime read;
    const char* end = ::strptime(text.c_str(), format, &read.fields);
    if (end != nullptr && *end == '\0' && read.fields.tm_sec < 60) {
      read.has_date = format[1] == 'Y';
      return read;
    }
  }
  return std::nullopt;
}

bool same(const std::tm& a, const std::tm& b) {
  return a.tm_year == b.tm_year && a.tm_mon == b.tm_mon && a.tm_mday == b.tm_mday && a.tm_hour == b.tm_hour &&
         a.tm_min == b.tm_min && a.tm_sec == b.tm_sec;
}

std::time_t made(std::tm fields, int summer_time) {
  fields.tm_isdst = summer_time;
  return std::mktime(&fields);
}

// The first moment after `now` at which local clocks show these fields; none if they are all past.
std::optional<std::time_t> first_after(const std::tm& fields, SystemClock::time_point now) {
  std::optional<std::time_t> first;
  bool shown = false;
  const auto take = [&](std::time_t moment) {
    if (SystemClock::from_time_t(moment) > now && (!first || moment < *first)) {
      first = moment;
    }
  };
  for (const int summer_time : {0, 1, -1}) {
    const std::time_t moment = made(fields, summer_time);
    std::tm back{};
    if (::localtime_r(&moment, &back) != nullptr && same(back, fields)) {
      shown = true;
      take(moment);
    }
  }
  if (!shown) {  // skipped as summer time begins
    take(made(fields, 0));
  }
  return first;
}

// The same time of another day, which may lie in another month; the date is brought in order at noon, which exists on
// every day.
std::tm on_day(const std::tm& today, int days, const std::tm& time) {
  std::tm fields = today;
  fields.tm_mday += days;
  fields.tm_hour = 12;
  fields.tm_min = 0;
  fields.tm_sec = 0;
  fields.tm_isdst = -1;
  std::mktime(&fields);
  fields.tm_hour = time.tm_hour;
  fields.tm_min = time.tm_min;
  fields.tm_sec = time.tm_sec;
  return fields;
}

bool is_calendar_day(const std::tm& fields) {
  const std::tm noon_of_day = [&] {
    std::tm noon{};
    noon.tm_hour = 12;
    return on_day(fields, 0, noon);
  }();
  return noon_of_day.tm_mday == fields.tm_mday && noon_of_day.tm_mon == fields.tm_mon;
}

}  // namespace

double parse_duration_s(std::string_view text) {
  constexpr std::string_view kUnits = "hms";
  constexpr double kSeconds[] = {3600, 60, 1};
  double total = 0;
  std::size_t next_unit = 0;
  if (text.empty()) {
    fail_duration(text, "it is empty");
  }
  for (const char* at = text.data(); at != text.data() + text.size();) {
    double value = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc() || *at == '-' || !std::isfinite(value)) {
      fail_duration(text, "a number is missing or out of range");
    }
    if (end == text.data() + text.size()) {
      fail_duration(text, "a number has no unit");
    }
    const std::size_t unit = kUnits.find(*end);
    if (unit == std::string_view::npos) {
      fail_duration(text, fmt::format("unknown unit '{}'", std::string_view(end, text.data() + text.size())));
    }
    if (unit < next_unit) {
      fail_duration(text, "each unit may come once, the largest first");
    }
    next_unit = unit + 1;
    total += value * kSeconds[unit];
    at = end + 1;
  }
  if (total > kLongest) {
    fail_duration(text, "it is longer than ten years");
  }
  return total;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::clamp(seconds, 0.0, 1e12));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string duration_text(double seconds) {
  const double clamped = std::clamp(seconds, 0.0, 1e12);
  const auto whole = std::llround(clamped);
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{} min", whole / 60) + (whole % 60 == 0 ? "" : fmt::format(" {} s", whole % 60));
  }
  const auto minutes = std::llround(clamped / 60);
  return fmt::format("{} h", minutes / 60) + (minutes % 60 == 0 ? "" : fmt::format(" {} min", minutes % 60));
}

SystemClock::time_point parse_time_of_day(std::string_view text, SystemClock::time_point now) {
  const std::optional<LocalTime> wanted = read_local_time(std::string(text));
  if (!wanted) {
    fail_time(text, "is not a time");
  }
  const std::time_t now_s = SystemClock::to_time_t(now);
  std::tm today{};
  if (::localtime_r(&now_s, &today) == nullptr) {
    throw Error("cannot get the local time; check the machine's clock");
  }
  if (wanted->has_date) {
    if (!is_calendar_day(wanted->fields)) {
      fail_time(text, "is not a date in the calendar");
    }
    // Before a moment is made of it, which the clock's 64 bits may not hold.
    if (wanted->fields.tm_year > today.tm_year + 10) {
      fail_time(text, kTooFarAhead);
    }
    const auto moment = first_after(wanted->fields, now);
    if (!moment) {
      fail_time(text, "is in the past");
    }
    if (std::difftime(*moment, now_s) > kLongest) {
      fail_time(text, kTooFarAhead);
    }
    return SystemClock::from_time_t(*moment);
  }
  for (int days = 0; days < 3; ++days) {  // a day may lack the time, and be short itself
    if (const auto moment = first_after(on_day(today, days, wanted->fields), now)) {
      return SystemClock::from_time_t(*moment);
    }
  }
  fail_time(text, "does not come again in the local time zone");
}

}  // namespace pascaline
