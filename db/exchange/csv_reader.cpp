#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/util/csv.hpp"
#include "db/exchange/readers.hpp"
#include "db/exchange/space_builder.hpp"

namespace pascaline {
namespace {

template <typename Number>
std::optional<Number> number_from(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// The JSON library has the check.
bool is_utf8(const std::string& text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80U; })) {
    return true;
  }
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

Value value_from(const std::string& text) {
  if (const auto integer = number_from<std::int64_t>(text)) {
    return *integer;
  }
  if (const auto real = number_from<double>(text); real && std::isfinite(*real)) {
    return *real;
  }
  if (text == "True" || text == "False" || text == "true" || text == "false") {
    return text.front() == 'T' || text.front() == 't';
  }
  return text;
}

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : rest_(text), file_(file), builder_("csv") {}

  RecordedSpace read() {
    const Complain complain = [this](const std::string& problem) { fail(problem); };
    read_heading(complain);
    builder_.space().name = space_name(file_);
    while (!rest_.empty()) {
      const std::vector<std::string> cells = next_row();
      if (cells.size() == 1 && cells.front().empty()) {
        continue;
      }
      read_row(cells, complain);
    }
    if (builder_.space().left_out == 0 && builder_.space().trials.empty()) {
      fail("there are no rows below the heading");
    }
    builder_.require_trials(complain);
    return builder_.finish();
  }

 private:
  using Complain = SpaceBuilder::Complain;
  static constexpr std::size_t kOwnColumns = 3;

  [[noreturn]] void fail(const std::string& problem) const {
    throw SpaceError(file_, "", fmt::format("row {}: {}", row_, problem));
  }

  void read_heading(const Complain& complain) {
    const std::vector<std::string> names = next_row();
    const std::size_t own = names.size() - std::min(names.size(), kOwnColumns);
    if (own == 0 || names[own] != "time_ms" || names[own + 1] != "status" || names[own + 2] != "eval_cost_ms") {
      fail(
          "this is neither JSON nor a table of a recorded space, whose heading is the parameters' names, time_ms, "
          "status, eval_cost_ms");
    }
    for (std::size_t i = 0; i < own; ++i) {
      builder_.add_parameter(names[i], {}, complain);
    }
  }

  // The cells up to the end of the line; a cell in double quotes may hold commas, quotes (doubled) and line ends.
  std::vector<std::string> next_row() {
    ++row_;
    std::vector<std::string> cells(1);
    std::size_t at = 0;
    while (at < rest_.size() && rest_[at] != '\n') {
      const char c = rest_[at];
      if (c == '"' && cells.back().empty()) {
        at = read_quoted(at + 1, cells.back());
        continue;
      }
      if (c == ',') {
        cells.emplace_back();
        if (cells.size() > SpaceBuilder::kMaxParameters + kOwnColumns) {
          fail("has too many columns");
        }
      } else if (c != '\r' || (at + 1 < rest_.size() && rest_[at + 1] != '\n')) {
        cells.back() += c;
      }
      ++at;
    }
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!is_utf8(cells[i])) {
        fail(fmt::format("cell {} is not valid UTF-8; save the table in that encoding", i + 1));
      }
      cells[i] = std::string(csv_original(cells[i]));
    }
    return cells;
  }

  // From behind the opening quote to behind the closing one.
  std::size_t read_quoted(std::size_t at, std::string& cell) const {
    for (; at < rest_.size(); ++at) {
      if (rest_[at] == '"') {
        if (at + 1 >= rest_.size() || rest_[at + 1] != '"') {
          return at + 1;
        }
        ++at;
      }
      cell += rest_[at];
    }
    fail("a quote is not closed");
  }

  void read_row(const std::vector<std::string>& cells, const Complain& complain) {
    const std::size_t parameters = builder_.parameters();
    if (cells.size() != parameters + kOwnColumns) {
      fail(fmt::format("has {} cells, but the heading has {}", cells.size(), parameters + kOwnColumns));
    }
    std::vector<Value> values;
    for (std::size_t i = 0; i < parameters; ++i) {
      if (cells[i].empty()) {
        fail(fmt::format("the parameter '{}' has no value", builder_.space().parameters[i].name));
      }
      values.push_back(value_from(cells[i]));
    }
    RecordedTrial trial;
    if (!read_outcome(cells[parameters], cells[parameters + 1], trial)) {
      builder_.leave_out();
      return;
    }
    const std::string& cost = cells[parameters + 2];
    const auto cost_ms = cost.empty() ? std::optional(0.0) : number_from<double>(cost);
    if (!cost_ms || !std::isfinite(*cost_ms) || *cost_ms < 0) {
      fail(fmt::format("eval_cost_ms is '{}', which is not a duration", cost));
    }
    trial.measure_ms = *cost_ms;
    builder_.add(std::move(trial), values, fmt::format("row {}", row_), complain);
  }

  // False if it worked, but its time is not positive.
  bool read_outcome(const std::string& time, const std::string& status, RecordedTrial& trial) const {
    if (status.empty()) {
      fail("the status is empty");
    }
    if (status != "ok") {
      if (!time.empty()) {
        fail(fmt::format("the status is '{}', so time_ms must be empty, and it is '{}'", one_line(status), time));
      }
      trial.status = status_of_failure(status).value_or(TrialStatus::launch_failed);
      trial.reason = one_line(status);
      return true;
    }
    const auto time_ms = number_from<double>(time);
    if (!time_ms) {
      fail(fmt::format("time_ms is '{}', which is not a number", one_line(time)));
    }
    trial.time_us = *time_ms * 1000;
    return trial.time_us > 0 && std::isfinite(trial.time_us);
  }

  std::string_view rest_;
  const std::string& file_;
  SpaceBuilder builder_;
  std::size_t row_ = 0;
};

}  // namespace

RecordedSpace parse_recorded_csv(std::string_view text, const std::string& file) {
  return CsvReader(text, file).read();
}

}  // namespace pascaline
