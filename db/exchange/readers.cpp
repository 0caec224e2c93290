#include "db/exchange/readers.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "db/exchange/space_builder.hpp"

namespace pascaline {
namespace {

// Takes what a time is written with from the front of a text.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(text) {}

  // A number of exactly that many digits.
  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (i >= rest_.size() || rest_[i] < '0' || rest_[i] > '9') {
        good_ = false;
        return 0;
      }
      value = 10 * value + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return value;
  }
  bool accept(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) {
      return false;
    }
    last_ = rest_.front();
    rest_.remove_prefix(1);
    return true;
  }
  void expect(std::string_view any_of) { good_ = accept(any_of) && good_; }
  // Digits behind a point, as milliseconds.
  int fraction_ms() {
    int value = 0;
    int scale = 100;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      value += scale * (rest_.front() - '0');
      scale /= 10;
      rest_.remove_prefix(1);
    }
    return value;
  }
  [[nodiscard]] char last() const noexcept { return last_; }
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
  char last_ = '\0';
  bool good_ = true;
};

}  // namespace

std::int64_t unix_ms_of(std::string_view timestamp) {
  TimeText text(timestamp);
  const int year = text.number(4);
  text.expect("-");
  const int month = text.number(2);
  text.expect("-");
  const int day = text.number(2);
  text.expect("T ");
  const int hour = text.number(2);
  text.expect(":");
  const int minute = text.number(2);
  text.expect(":");
  const int second = text.number(2);
  const int milliseconds = text.accept(".") ? text.fraction_ms() : 0;
  int zone_minutes = 0;
  if (text.accept("+-")) {
    const int sign = text.last() == '-' ? -1 : 1;
    zone_minutes = 60 * text.number(2);
    text.accept(":");
    zone_minutes = sign * (zone_minutes + (text.empty() ? 0 : text.number(2)));
  } else {
    text.accept("Z");
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!text.good() || !text.empty() || !date.ok() || hour > 23 || minute > 59 || second > 60) {
    return 0;
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute - zone_minutes) * 60'000 + second * 1000 + milliseconds;
}

std::string timestamp_of(std::int64_t unix_ms) {
  std::int64_t seconds = unix_ms / 1000;
  std::int64_t left = unix_ms % 1000;
  if (left < 0) {
    left += 1000;
    --seconds;
  }
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}000+00:00", fmt::gmtime(static_cast<std::time_t>(seconds)), left);
}

Value value_of(const JsonNode& node) {
  const nlohmann::json& value = node.value();
  if (value.is_boolean()) {
    return value.get<bool>();
  }
  if (value.is_number_integer()) {
    return node.integer();
  }
  if (value.is_number()) {
    if (!std::isfinite(value.get<double>())) {
      node.fail("the number is too large");
    }
    return value.get<double>();
  }
  if (const auto unreal = unreal_number(value)) {
    node.fail(fmt::format("{} cannot be a parameter's value", *unreal));
  }
  if (!value.is_string()) {
    node.fail(fmt::format("expected a number, boolean or text as a parameter's value, found {}", value.type_name()));
  }
  return value.get<std::string>();
}

std::optional<double> positive_time(const JsonNode& parent, std::string_view key, double unit) {
  return parent.has(key) ? positive_time(parent.at(key), unit) : std::nullopt;
}

std::optional<double> positive_time(const JsonNode& node, double unit) {
  const double time = node.value().is_number() ? node.real() * unit : 0;
  return time > 0 && time <= 1000 * SpaceBuilder::kMaxTimeMs ? std::optional(time) : std::nullopt;
}

std::optional<std::vector<double>> positive_times(const JsonNode& array, double unit) {
  if (!array.value().is_array()) {
    return std::nullopt;
  }
  std::vector<double> times;
  for (std::size_t i = 0; i < array.array_size(); ++i) {
    times.push_back(positive_time(array.at(i), unit).value_or(0));
  }
  const bool all = std::all_of(times.begin(), times.end(), [](double time) { return time > 0; });
  return all ? std::optional(std::move(times)) : std::nullopt;
}

double microseconds_of(std::string_view unit) {
  std::string name(unit);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  using Unit = std::pair<std::string_view, double>;
  constexpr std::array<Unit, 13> kUnits{{{"seconds", 1e6},
                                         {"second", 1e6},
                                         {"s", 1e6},
                                         {"milliseconds", 1000},
                                         {"millisecond", 1000},
                                         {"miliseconds", 1000},  // as T4 files have it
                                         {"ms", 1000},
                                         {"microseconds", 1},
                                         {"microsecond", 1},
                                         {"us", 1},
                                         {"nanoseconds", 1e-3},
                                         {"nanosecond", 1e-3},
                                         {"ns", 1e-3}}};
  const auto* found =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& known) { return known.first == name; });
  return found == kUnits.end() ? 0 : found->second;
}

double duration_of(const JsonNode& parent, std::string_view key, double unit) {
  return positive_time(parent, key, unit).value_or(0);
}

std::string member_text(const JsonNode& parent, std::string_view key) {
  return parent.has_value(key) ? parent.at(key).text() : std::string();
}

std::string written(const JsonNode& parent, std::string_view key) {
  if (!parent.has(key)) {
    return {};
  }
  const JsonNode node = parent.at(key);
  if (node.value().is_null()) {
    return {};
  }
  return node.value().is_string() ? node.value().get<std::string>() : node.value().dump();
}

}  // namespace pascaline
