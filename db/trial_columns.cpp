#include "db/trial_columns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "db/rows.hpp"

namespace pascaline {
namespace {

constexpr std::string_view kConfigColumns = "config_text, config";
constexpr std::string_view kTimeColumns = "median_us, low_us, high_us, sample_count";

std::string list_columns() {
  std::string columns;
  const Trial trial{};
  for_each_field(trial, [&](std::string_view name, const auto& value) {
    using Field = std::decay_t<decltype(value)>;
    columns += columns.empty() ? "" : ", ";
    columns += std::is_same_v<Field, Config>                       ? kConfigColumns
               : std::is_same_v<Field, std::optional<TimeSummary>> ? kTimeColumns
                                                                   : name;
  });
  return columns;
}

// How each type of field is bound, to as many parameters as it has columns.
class Binder {
 public:
  Binder(Query& to, int index) : to_(&to), index_(index) {}
  [[nodiscard]] int index() const noexcept { return index_; }

  template <typename Plain>
  void bind(const Plain& value) {
    to_->bind_at(index_++, value);
  }
  // SQLite knows no "not a number" and stores NULL, which would read as "not known".
  void bind(const std::optional<double>& value) {
    to_->bind_at(index_++,
                 value && std::isnan(*value) ? std::optional(std::numeric_limits<double>::infinity()) : value);
  }
  void bind(TrialStatus status) { bind(name_of(status)); }
  void bind(TrialStage stage) { bind(name_of(stage)); }
  void bind(const Config& config) {
    bind(config.text());
    bind(config.json().dump());
  }
  void bind(const std::optional<TimeSummary>& time) {
    // "Not a number" becomes NULL here, which the table's own checks refuse.
    for (const auto value : {field(time, &TimeSummary::median_us), field(time, &TimeSummary::low_us),
                             field(time, &TimeSummary::high_us)}) {
      to_->bind_at(index_++, value);
    }
    bind(field(time, &TimeSummary::count));
  }

 private:
  Query* to_;
  int index_;
};

// How each type of field is read.
void read_field(Query& row, bool& value) { value = row.flag(); }
void read_field(Query& row, int& value) { value = static_cast<int>(row.integer()); }
void read_field(Query& row, std::int64_t& value) { value = row.integer(); }
void read_field(Query& row, double& value) { value = row.real(); }
void read_field(Query& row, std::string& value) { value = row.text(); }
void read_field(Query& row, std::optional<double>& value) { value = row.optional_real(); }
void read_field(Query& row, std::optional<TimeSummary>& value) { value = read_summary(row); }
void read_field(Query& row, TrialStatus& value) {
  const std::string name = row.text();
  value = known(trial_status_from(name), name);
}
void read_field(Query& row, TrialStage& value) {
  const std::string name = row.text();
  value = known(trial_stage_from(name), name);
}
void read_field(Query& row, Config& value) {
  row.skip();  // the text follows from the JSON
  value = read_config(row, "trials");
}

}  // namespace

const std::string& trial_columns() {
  static const std::string columns = list_columns();
  return columns;
}

int trial_column_count() {
  static const int count = 1 + static_cast<int>(std::count(trial_columns().begin(), trial_columns().end(), ','));
  return count;
}

std::string parameter_list(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    list += i == 0 ? "?" : ",?";
  }
  return list;
}

int bind_trial_columns(Query& to, int index, const Trial& trial) {
  Binder binder(to, index);
  for_each_field(trial, [&](std::string_view, const auto& value) { binder.bind(value); });
  return binder.index();
}

std::string detail_trial_columns() {
  return "kernel, dimensions, types, data, " + trial_columns() + ", shared_trial_id";
}

Trial read_trial(Query& row) {
  Trial trial;
  trial.problem = read_problem(row);
  for_each_field(trial, [&](std::string_view, auto& value) { read_field(row, value); });
  trial.shared_trial = row.optional_integer().value_or(0);
  return trial;
}

}  // namespace pascaline
