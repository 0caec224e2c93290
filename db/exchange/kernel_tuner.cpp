#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/error.hpp"
#include "db/exchange/readers.hpp"
#include "db/exchange/space_builder.hpp"

namespace pascaline {
namespace {

using nlohmann::json;

constexpr double kMicroseconds = 1000;  // of a file's millisecond
constexpr double kOldFailure = 1e20;    // time of a failed configuration in old files

// Whether a piece of an entry's name is how Python writes the value.
bool is_written_as(const Value& value, std::string_view piece) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return *text == piece;
  }
  if (piece == "True" || piece == "False") {
    piece = piece == "True" ? "1" : "0";
  }
  double number = 0;
  const auto [end, code] = std::from_chars(piece.data(), piece.data() + piece.size(), number);
  if (code != std::errc() || end != piece.data() + piece.size()) {
    return false;
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return *real == number;
  }
  const auto* flag = std::get_if<bool>(&value);
  return static_cast<double>(flag != nullptr ? std::int64_t{*flag} : std::get<std::int64_t>(value)) == number;
}

class KernelTunerReader {
 public:
  KernelTunerReader(const json& document, const std::string& file)
      : root_(document, file), file_(file), builder_("kernel_tuner") {}

  RecordedSpace read() {
    check_version();
    RecordedSpace& space = builder_.space();
    space.name = space_name(file_);
    space.kernel = member_text(root_, "kernel_name");
    space.device = member_text(root_, "device_name");
    space.problem_size = written(root_, "problem_size");
    read_parameters();
    const JsonNode cache = root_.at("cache");
    if (!cache.value().is_object()) {
      cache.fail(fmt::format("expected an object of configurations, found {}", cache.value().type_name()));
    }
    for (auto entry = cache.value().begin(); entry != cache.value().end(); ++entry) {
      read_entry(cache.at(entry.key()), entry.key());
    }
    builder_.require_trials([&](const std::string& problem) { cache.fail(problem); });
    return builder_.finish();
  }

 private:
  void check_version() const {
    const std::string version = member_text(root_, "schema_version");
    if (!version.empty() && !version.starts_with("1.")) {
      root_.at("schema_version")
          .fail(fmt::format("version {} of Kernel Tuner's cache is unknown; known is 1.x", version));
    }
  }

  void read_parameters() {
    const JsonNode keys = root_.at("tune_params_keys");
    const JsonNode lists = root_.at("tune_params");
    if (!lists.value().is_object()) {
      lists.fail(fmt::format("expected an object of lists, found {}", lists.value().type_name()));
    }
    if (keys.array_size() == 0) {
      keys.fail("there is no parameter");
    }
    for (std::size_t i = 0; i < keys.array_size(); ++i) {
      const JsonNode key = keys.at(i);
      const std::string name = key.name();
      const JsonNode list = lists.at(name);
      std::vector<Value> values;
      for (std::size_t j = 0; j < list.array_size(); ++j) {
        values.push_back(value_of(list.at(j)));
      }
      if (values.empty()) {
        list.fail("a parameter needs a value");
      }
      builder_.add_parameter(name, values, [&](const std::string& problem) { key.fail(problem); });
      names_.push_back(name);
    }
    for (auto list = lists.value().begin(); list != lists.value().end(); ++list) {
      if (std::find(names_.begin(), names_.end(), list.key()) == names_.end()) {
        lists.at(list.key()).fail("this parameter is not among tune_params_keys");
      }
    }
  }

  void read_entry(const JsonNode& entry, const std::string& key) {
    if (!entry.value().is_object()) {
      entry.fail(fmt::format("expected an object, found {}", entry.value().type_name()));
    }
    std::vector<Value> values;
    for (const std::string& name : names_) {
      if (!entry.has(name)) {
        entry.fail(fmt::format("the parameter '{}' is missing", name));
      }
      values.push_back(value_of(entry.at(name)));
    }
    check_key(entry, key, values);
    RecordedTrial trial;
    if (!read_outcome(entry, trial)) {
      builder_.leave_out();
      return;
    }
    trial.compile_ms = duration_of(entry, "compile_time", 1);
    trial.verify_ms = duration_of(entry, "verification_time", 1);
    trial.measure_ms = duration_of(entry, "benchmark_time", 1);
    trial.framework_ms = duration_of(entry, "framework_time", 1);
    trial.search_ms = duration_of(entry, "strategy_time", 1);
    trial.started_unix_ms = unix_ms_of(written(entry, "timestamp"));
    builder_.add(std::move(trial), values, entry.pointer(), [&](const std::string& problem) { entry.fail(problem); });
  }

  // The key is the values, joined; where it is not, one of both is damaged.
  static void check_key(const JsonNode& entry, const std::string& key, const std::vector<Value>& values) {
    std::string_view rest = key;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto* text = std::get_if<std::string>(&values[i]);
      const std::size_t length = text != nullptr ? text->size() : rest.find(',');  // text may hold commas
      const std::string_view piece = rest.substr(0, length);
      rest.remove_prefix(piece.size());
      const bool last = i + 1 == values.size();
      if (!is_written_as(values[i], piece) || (last ? !rest.empty() : !rest.starts_with(','))) {
        entry.fail("the entry's key is not its parameters' values in the order of tune_params_keys");
      }
      rest.remove_prefix(last ? 0 : 1);
    }
  }

  // False if it worked, but its time is none.
  static bool read_outcome(const JsonNode& entry, RecordedTrial& trial) {
    if (entry.has("__error__")) {
      fail_with(trial, one_line(written(entry, "__error__")));
      return true;
    }
    if (!entry.has("time")) {
      return false;
    }
    const JsonNode time = entry.at("time");
    if (time.has("__error__")) {
      fail_with(trial, one_line(written(time, "__error__")));
    } else if (time.value().is_string() && status_of_failure(time.text())) {
      fail_with(trial, time.text());
    } else if (time.value().is_number() && time.real() == kOldFailure) {
      fail_with(trial, "the time is 1e20");
    } else {
      trial.time_us = positive_time(time, kMicroseconds).value_or(0);
      return trial.time_us > 0 && read_samples(entry, trial);
    }
    return true;
  }

  static void fail_with(RecordedTrial& trial, const std::string& reason) {
    const std::string_view name = std::string_view(reason).substr(0, reason.find_first_of(":( "));
    trial.status = status_of_failure(name).value_or(TrialStatus::launch_failed);
    trial.reason = reason;
  }

  // False if one is none.
  static bool read_samples(const JsonNode& entry, RecordedTrial& trial) {
    if (!entry.has("times") || entry.at("times").value().is_null()) {
      return true;
    }
    const auto times = positive_times(entry.at("times"), kMicroseconds);
    trial.samples_us = times.value_or(std::vector<double>{});
    return times.has_value();
  }

  JsonNode root_;
  const std::string& file_;
  SpaceBuilder builder_;
  std::vector<std::string> names_;
};

}  // namespace

RecordedSpace parse_kernel_tuner(const JsonOutline& outline, const std::string& file) {
  const json document = parse_json(outline.completed(), file);
  return KernelTunerReader(document, file).read();
}

}  // namespace pascaline
