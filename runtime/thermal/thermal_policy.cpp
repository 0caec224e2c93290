#include "runtime/thermal/thermal_policy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/util/json_reader.hpp"
#include "core/util/shown_text.hpp"
#include "core/util/suggestion.hpp"

namespace pascaline {
namespace {

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const Objective objective : kObjectives) {
    names.emplace_back(name_of(objective));
  }
  return names;
}

Objective objective_at(const JsonNode& node) {
  const std::string name = node.text();
  if (const auto objective = objective_from(name)) {
    return *objective;
  }
  node.fail(fmt::format("there is no objective '{}'{}; there are: {}", clean_line(name),
                        did_you_mean(clean_line(name), objective_names()), fmt::join(objective_names(), ", ")));
}

ThermalPolicy::Objectives objectives_at(const JsonNode& node) {
  if (!node.value().is_array()) {
    return {objective_at(node)};
  }
  ThermalPolicy::Objectives objectives;
  for (std::size_t i = 0; i < node.array_size(); ++i) {
    const Objective objective = objective_at(node.at(i));
    if (std::find(objectives.begin(), objectives.end(), objective) != objectives.end()) {
      node.at(i).fail(fmt::format("'{}' is a duplicate", name_of(objective)));
    }
    objectives.push_back(objective);
  }
  if (objectives.empty()) {
    node.fail("expected at least one objective");
  }
  return objectives;
}

void read_states(const JsonNode& states, ThermalPolicy& policy) {
  for (const std::string& name : states.keys()) {
    const auto state = thermal_state_named(name);
    if (!state) {
      states.fail(fmt::format("there is no state '{}'; there are: cool, hot, throttled", clean_line(name)));
    }
    policy.objectives[static_cast<std::size_t>(*state)] = objectives_at(states.at(name));
    policy.in_file[static_cast<std::size_t>(*state)] = true;
  }
}

// A number within bounds, if it is there.
void read_within(const JsonNode& root, const char* key, double least, double most, double& value) {
  if (!root.has(key)) {
    return;
  }
  const double number = root.at(key).real();
  if (!(number >= least && number <= most)) {
    root.at(key).fail(fmt::format("expected a number from {} to {}, not {}", least, most, number));
  }
  value = number;
}

void require_resume(const JsonNode& root, const char* resume, double resume_c, const char* margin, double margin_c) {
  if (!(resume_c >= margin_c)) {
    root.fail(
        fmt::format("'{}' ({}) must be at least '{}' ({}): it is how far below the limit a hot card must be to "
                    "count as cool again",
                    resume, resume_c, margin, margin_c));
  }
}

}  // namespace

namespace {

bool has(const ThermalPolicy::Objectives& objectives, Objective objective) {
  return std::find(objectives.begin(), objectives.end(), objective) != objectives.end();
}

}  // namespace

bool ThermalPolicy::names(Objective objective) const noexcept {
  return std::any_of(objectives.begin(), objectives.end(),
                     [&](const Objectives& of_state) { return has(of_state, objective); });
}

bool ThermalPolicy::file_names(Objective objective) const noexcept {
  for (std::size_t state = 0; state < kThermalStates; ++state) {
    if (in_file[state] && has(objectives[state], objective)) {
      return true;
    }
  }
  return false;
}

ThermalPolicy parse_thermal_policy(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  const JsonNode root(document, file);
  root.only_keys({"states", "margin_c", "resume_c", "limit_c", "processor_margin_c", "processor_resume_c",
                  "power_throttle", "rise_s", "fall_s", "dwell_s", "keep_s", "period_s"});
  ThermalPolicy policy;
  policy.file = file;
  if (root.has("states")) {
    read_states(root.at("states"), policy);
  }
  constexpr double kMaxMargin = 60;
  constexpr double kMaxSeconds = 3600;
  ThermalThresholds& thresholds = policy.thresholds;
  read_within(root, "margin_c", 0, kMaxMargin, thresholds.margin_c);
  read_within(root, "resume_c", 0, kMaxMargin, thresholds.resume_c);
  read_within(root, "processor_margin_c", 0, kMaxMargin, thresholds.processor_margin_c);
  read_within(root, "processor_resume_c", 0, kMaxMargin, thresholds.processor_resume_c);
  require_resume(root, "resume_c", thresholds.resume_c, "margin_c", thresholds.margin_c);
  require_resume(root, "processor_resume_c", thresholds.processor_resume_c, "processor_margin_c",
                 thresholds.processor_margin_c);
  if (root.has("limit_c")) {
    double limit_c = 0;
    read_within(root, "limit_c", 30, 120, limit_c);
    thresholds.limit_c = limit_c;
  }
  if (root.has("power_throttle")) {
    thresholds.power_throttle = root.at("power_throttle").boolean();
  }
  read_within(root, "rise_s", 0, kMaxSeconds, thresholds.rise_s);
  read_within(root, "fall_s", 0, kMaxSeconds, thresholds.fall_s);
  read_within(root, "dwell_s", 0, kMaxSeconds, thresholds.dwell_s);
  read_within(root, "keep_s", 0, kMaxSeconds, thresholds.keep_s);
  read_within(root, "period_s", 0.05, 2, policy.period_s);  // looks farther apart are no evidence: ThermalMonitor
  return policy;
}

ThermalPolicy load_thermal_policy(const std::filesystem::path& file) {
  return parse_thermal_policy(read_space_file(file), file.string());
}

}  // namespace pascaline
