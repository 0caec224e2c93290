#include "db/exchange/space_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "core/util/counted.hpp"

namespace pascaline {
namespace {

bool is_number(const Value& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

double number_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return static_cast<double>(*integer);
  }
  return std::get<double>(value);
}

bool less(const Value& a, const Value& b) {
  const auto* left = std::get_if<std::int64_t>(&a);
  const auto* right = std::get_if<std::int64_t>(&b);
  return left != nullptr && right != nullptr ? *left < *right : number_of(a) < number_of(b);
}

std::string key_of(std::span<const std::uint16_t> indices) {
  std::string key;
  key.reserve(2 * indices.size());
  for (const std::uint16_t index : indices) {
    key += static_cast<char>(index & 0xFFU);
    key += static_cast<char>(index >> 8U);
  }
  return key;
}

// Sums over millions of trials must stay far from what a double or 64 bits hold.
void require_plausible(const RecordedTrial& trial, const SpaceBuilder::Complain& complain) {
  double longest_us = trial.time_us;
  for (const double sample_us : trial.samples_us) {
    longest_us = std::max(longest_us, sample_us);
  }
  if (!(longest_us <= 1000 * SpaceBuilder::kMaxTimeMs)) {
    complain(
        fmt::format("a time is {} ms, more than the plausible {} ms", longest_us / 1000, SpaceBuilder::kMaxTimeMs));
  }
  const double cost_ms = trial.cost_ms() + trial.search_ms;
  if (!(cost_ms <= SpaceBuilder::kMaxCostMs)) {
    complain(
        fmt::format("the configuration cost {} ms, more than the plausible {} ms", cost_ms, SpaceBuilder::kMaxCostMs));
  }
}

std::string outcome(const RecordedTrial& trial) {
  return has_time(trial.status) ? fmt::format("{} us", trial.time_us) : std::string(name_of(trial.status));
}

}  // namespace

std::string value_key(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return "'" + *text;
  }
  if (const auto* real = std::get_if<double>(&value)) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (std::abs(*real) > kExact || *real != std::floor(*real)) {
      return fmt::format("{}", *real);
    }
    return fmt::format("{}", static_cast<std::int64_t>(*real));
  }
  const auto* flag = std::get_if<bool>(&value);
  return fmt::format("{}", flag != nullptr ? std::int64_t{*flag} : std::get<std::int64_t>(value));
}

std::size_t ValueIndex::add(const Value& value) {
  const auto [place, added] = places_.try_emplace(value_key(value), values_.size());
  if (added) {
    values_.push_back(value);
  }
  return place->second;
}

std::size_t ValueIndex::find(const Value& value) const {
  const auto place = places_.find(value_key(value));
  return place == places_.end() ? kNone : place->second;
}

void SpaceBuilder::add_parameter(const std::string& name, const std::vector<Value>& values, const Complain& complain) {
  if (name.empty()) {
    complain("a parameter has no name");
  }
  if (std::any_of(space_.parameters.begin(), space_.parameters.end(),
                  [&](const RecordedParameter& known) { return known.name == name; })) {
    complain(fmt::format("the parameter '{}' is a duplicate", name));
  }
  if (space_.parameters.size() == kMaxParameters) {
    complain(fmt::format("more than {} parameters", kMaxParameters));
  }
  ValueIndex index;
  for (const Value& value : values) {
    index.add(value);
  }
  if (index.values().size() > kMaxValues) {
    complain(fmt::format("the parameter '{}' has more than {} values", name, kMaxValues));
  }
  space_.parameters.push_back({name, {}});
  indices_.push_back(std::move(index));
  declared_.push_back(!values.empty());
}

void SpaceBuilder::add(RecordedTrial trial, std::span<const Value> values, const std::string& place,
                       const Complain& complain) {
  require_plausible(trial, complain);
  trial.indices.clear();
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    const std::size_t index = declared_[i] ? indices_[i].find(values[i]) : indices_[i].add(values[i]);
    if (index == ValueIndex::kNone) {
      complain(fmt::format("'{}' is not among the values of the parameter '{}'", to_text(values[i]),
                           space_.parameters[i].name));
    }
    if (index >= kMaxValues) {
      complain(fmt::format("the parameter '{}' has more than {} values", space_.parameters[i].name, kMaxValues));
    }
    trial.indices.push_back(static_cast<std::uint16_t>(index));
  }
  const auto [known, added] = known_.try_emplace(key_of(trial.indices), space_.trials.size());
  if (added) {
    space_.trials.push_back(std::move(trial));
    places_.push_back(place);
    return;
  }
  const RecordedTrial& earlier = space_.trials[known->second];
  if (earlier.status != trial.status || earlier.time_us != trial.time_us) {
    complain(fmt::format("duplicate of {}, with a different result ({} there, {} here)", places_[known->second],
                         outcome(earlier), outcome(trial)));
  }
}

void SpaceBuilder::require_trials(const Complain& complain) const {
  if (space_.trials.empty()) {
    complain(space_.left_out == 0
                 ? "it has no complete configuration"
                 : fmt::format("{}, of which none has a positive time", counted(space_.left_out, "configuration")));
  }
}

void SpaceBuilder::sort_values(std::size_t parameter) {
  const std::vector<Value>& seen = indices_[parameter].values();
  std::vector<std::size_t> order(seen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!declared_[parameter] && std::all_of(seen.begin(), seen.end(), is_number)) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return less(seen[a], seen[b]); });
  }
  std::vector<std::uint16_t> rank(seen.size());
  std::vector<Value>& values = space_.parameters[parameter].values;
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = static_cast<std::uint16_t>(i);
    values.push_back(seen[order[i]]);
  }
  for (RecordedTrial& trial : space_.trials) {
    trial.indices[parameter] = rank[trial.indices[parameter]];
  }
}

RecordedSpace SpaceBuilder::finish() {
  for (std::size_t i = 0; i < space_.parameters.size(); ++i) {
    sort_values(i);
  }
  return std::move(space_);
}

std::string space_name(const std::string& file) {
  std::filesystem::path name = std::filesystem::path(file).filename();
  if (name.extension() == ".gz") {
    name = name.stem();
  }
  return name.stem().string();
}

std::optional<TrialStatus> status_of_failure(std::string_view name) noexcept {
  using Entry = std::pair<std::string_view, TrialStatus>;
  constexpr std::array<Entry, 13> kNames{{{"constraints", TrialStatus::rejected},
                                          {"compile", TrialStatus::compile_failed},
                                          {"runtime", TrialStatus::launch_failed},
                                          {"correctness", TrialStatus::wrong_result},
                                          {"timeout", TrialStatus::timed_out},
                                          {"InvalidConfig", TrialStatus::rejected},
                                          {"CompilationFailedConfig", TrialStatus::compile_failed},
                                          {"RuntimeFailedConfig", TrialStatus::launch_failed},
                                          {"ErrorConfig", TrialStatus::launch_failed},
                                          {"DeviceLimitsExceeded", TrialStatus::rejected},
                                          {"CompilationFailed", TrialStatus::compile_failed},
                                          {"ComputationFailed", TrialStatus::launch_failed},
                                          {"ValidationFailed", TrialStatus::wrong_result}}};
  for (const Entry& entry : kNames) {
    if (entry.first == name) {
      return entry.second;
    }
  }
  const auto own = trial_status_from(name);
  return own && has_time(*own) ? std::nullopt : own;
}

std::string one_line(std::string_view text) {
  constexpr std::size_t kMaxBytes = 500;
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.size() > kMaxBytes) {
    std::size_t end = kMaxBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      --end;  // not through the middle of a character
    }
    text = text.substr(0, end);
  }
  return std::string(text);
}

}  // namespace pascaline
