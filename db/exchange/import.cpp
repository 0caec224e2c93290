#include "db/exchange/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/data_hash.hpp"
#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/statistics.hpp"
#include "core/version.hpp"
#include "db/exchange/read.hpp"
#include "db/exchange/unpack.hpp"

namespace pascaline {
namespace {

constexpr std::array<std::string_view, 3> kSizeNames{"X", "Y", "Z"};

// The numbers of "[4096, 4096]", "(256,)" or "1024 x 768"; none if anything else is among them.
std::vector<std::int64_t> sizes_of(const std::string& problem_size) {
  std::vector<std::int64_t> sizes;
  const char* at = problem_size.data();
  const char* const end = at + problem_size.size();
  while (at != end) {
    if (std::string_view("[]() ,;x*").find(*at) != std::string_view::npos) {
      ++at;
      continue;
    }
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0) {
      return {};
    }
    sizes.push_back(size);
    at = next;
  }
  return sizes.size() <= kSizeNames.size() ? sizes : std::vector<std::int64_t>{};
}

bool is_identifier(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

// Adds a dimension or a type; false if the text is neither, or its name is taken.
bool add_setting(std::string_view name, std::string_view text, Problem& problem) {
  const auto is_taken = [name](const auto& known) { return known.first == name; };
  if (!is_identifier(name) || std::any_of(problem.dimensions.begin(), problem.dimensions.end(), is_taken) ||
      std::any_of(problem.types.begin(), problem.types.end(), is_taken)) {
    return false;
  }
  if (name == kDataName) {
    const bool fits = problem.data.empty() && is_data_hash(text);
    problem.data = text;
    return fits;
  }
  if (const auto type = element_type_from(text)) {
    problem.types.emplace_back(name, *type);
    return true;
  }
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  problem.dimensions.emplace_back(name, size);
  return error == std::errc() && end == text.data() + text.size();
}

// The problem of "ROWS=64 WIDTH=256 STORAGE=float32", as Pascaline itself writes one.
std::optional<Problem> own_problem(std::string_view settings, const std::string& kernel) {
  Problem problem{kernel, {}, {}};
  while (!settings.empty()) {
    const std::string_view setting = settings.substr(0, settings.find(' '));
    settings.remove_prefix(std::min(settings.size(), setting.size() + 1));
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos ||
        !add_setting(setting.substr(0, equals), setting.substr(equals + 1), problem)) {
      return std::nullopt;
    }
  }
  return problem;
}

Problem problem_of(const RecordedSpace& space, const std::string& kernel) {
  if (auto own = own_problem(space.problem_size, kernel)) {
    return *std::move(own);
  }
  Problem problem;
  problem.kernel = kernel;
  for (const std::int64_t size : sizes_of(space.problem_size)) {
    problem.dimensions.emplace_back(kSizeNames.at(problem.dimensions.size()), size);
  }
  return problem;
}

std::string space_json_of(const RecordedSpace& space, const std::string& kernel) {
  nlohmann::json parameters = nlohmann::json::array();
  for (const RecordedParameter& parameter : space.parameters) {
    nlohmann::json values = nlohmann::json::array();
    for (const Value& value : parameter.values) {
      std::visit([&](const auto& native) { values.push_back(native); }, value);
    }
    parameters.push_back({{"name", parameter.name}, {"values", std::move(values)}});
  }
  return nlohmann::json{{"kernel", kernel}, {"parameters", std::move(parameters)}}.dump();
}

bool is_time(double time_us) { return std::isfinite(time_us) && time_us > 0; }

Trial trial_of(const RecordedSpace& space, const RecordedTrial& recorded, const Problem& problem) {
  Trial trial;
  trial.problem = problem;
  trial.config = space.config(recorded);
  trial.status = recorded.status;
  trial.reason = recorded.reason;
  trial.compile_ms = recorded.compile_ms;
  trial.verify_ms = recorded.verify_ms;
  trial.measure_ms = recorded.measure_ms + recorded.framework_ms;
  trial.started_unix_ms = recorded.started_unix_ms;
  if (recorded.status != TrialStatus::ok) {
    return trial;
  }
  if (!recorded.samples_us.empty() && std::all_of(recorded.samples_us.begin(), recorded.samples_us.end(), is_time)) {
    for (const double time_us : recorded.samples_us) {
      trial.samples.emplace_back().time_us = time_us;
    }
    trial.time = summarize(trial.samples);
  } else {
    trial.time = TimeSummary{recorded.time_us, recorded.time_us, recorded.time_us, 0};
  }
  return trial;
}

// Made of the content and the kernel that its trials are stored under (which can be named by the file), so that a file
// imported into two databases is one session when they are merged.
std::string uuid_of(const std::string& content_hash, const std::string& kernel) {
  FieldHash fields;
  fields.add(content_hash);
  fields.add(kernel);
  const std::string hash = fields.hex();
  return fmt::format("{}-{}-{}-{}-{}", hash.substr(0, 8), hash.substr(8, 4), hash.substr(12, 4), hash.substr(16, 4),
                     hash.substr(20));
}

SessionRow session_of(const RecordedSpace& space, const KernelRow& kernel, const std::string& content_hash,
                      const std::string& command_line) {
  SessionRow session;
  session.uuid = uuid_of(content_hash, kernel.name);
  session.state = "finished";
  session.searcher = "unknown";
  session.command_line = command_line;
  session.program_version = kVersion;
  session.options_json =
      nlohmann::json{{"format", space.format}, {"name", space.name}, {"problem_size", space.problem_size}}.dump();
  double spent_ms = 0;
  std::int64_t last_unix_ms = 0;
  for (const RecordedTrial& trial : space.trials) {
    spent_ms += trial.cost_ms() + trial.search_ms;
    last_unix_ms = std::max(last_unix_ms, trial.started_unix_ms);
    if (trial.started_unix_ms > 0 &&
        (session.started_unix_ms == 0 || trial.started_unix_ms < session.started_unix_ms)) {
      session.started_unix_ms = trial.started_unix_ms;
    }
  }
  session.finished_unix_ms = last_unix_ms;
  session.spent_ms = static_cast<std::int64_t>(std::clamp(spent_ms, 0.0, 1e15));
  return session;
}

}  // namespace

ImportedResults imported_results(const RecordedSpace& space, const std::string& source, const std::string& content_hash,
                                 const std::string& command_line) {
  ImportedResults results;
  const std::string kernel = space.kernel.empty() ? space.name : space.kernel;
  results.source = source;
  results.content_hash = content_hash;
  results.device.kind = "foreign";
  results.device.name = space.device.empty() ? "unknown device" : space.device;
  results.device.limits_json = "{}";
  results.toolkit.compiler = space.format;
  results.kernel = {kernel, "imported:" + content_hash};
  results.space_hash = results.kernel.source_hash;
  results.space_json = space_json_of(space, kernel);
  results.problem = problem_of(space, kernel);
  results.session = session_of(space, results.kernel, content_hash, command_line);
  results.trials.reserve(space.trials.size());
  for (const RecordedTrial& recorded : space.trials) {
    results.trials.push_back(trial_of(space, recorded, results.problem));
  }
  return results;
}

ResultsFile read_results(const std::filesystem::path& file, const std::string& command_line) {
  const std::string text = read_plain_or_gzip(file);
  if (text.starts_with("SQLite format 3")) {
    throw Error(fmt::format("{}: cannot import a database; merge it with `pascaline merge`", file.string()));
  }
  const RecordedSpace space = parse_recorded_space(text, file.string());
  return {file, space.format, imported_results(space, file.filename().string(), hash_hex(text), command_line),
          space.left_out};
}

}  // namespace pascaline
