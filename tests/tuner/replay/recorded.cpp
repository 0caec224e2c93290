#include "tests/tuner/replay/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pascaline::testing {
namespace {

RecordedTrial outcome(std::vector<std::uint16_t> indices, double time_us, double cost_ms) {
  RecordedTrial trial;
  trial.indices = std::move(indices);
  trial.status = time_us > 0 ? TrialStatus::ok : TrialStatus::compile_failed;
  trial.time_us = std::max(time_us, 0.0);
  trial.measure_ms = cost_ms;
  return trial;
}

RecordedParameter parameter(const std::string& name, std::size_t values) {
  RecordedParameter out{name, {}};
  for (std::size_t i = 0; i < values; ++i) {
    out.values.emplace_back(static_cast<std::int64_t>(i));
  }
  return out;
}

}  // namespace

RecordedSpace recorded_times(const std::vector<double>& times_us, double cost_ms) {
  RecordedSpace space;
  space.name = "times";
  space.parameters = {parameter("X", times_us.size())};
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    space.trials.push_back(outcome({static_cast<std::uint16_t>(i)}, times_us[i], cost_ms));
  }
  return space;
}

RecordedSpace recorded_bowl(const std::string& name, int failing, double cost_ms) {
  RecordedSpace space;
  space.name = name;
  space.parameters = {parameter("X", 8), parameter("Y", 8), parameter("Z", 8)};
  for (std::uint16_t i = 0; i < 512; ++i) {
    const std::vector<std::uint16_t> at{static_cast<std::uint16_t>(i / 64), static_cast<std::uint16_t>(i / 8 % 8),
                                        static_cast<std::uint16_t>(i % 8)};
    const double bowl = 0.05 * std::pow(at[0] - 5, 2) + 0.03 * std::pow(at[1] - 2, 2) + 0.04 * std::pow(at[2] - 3, 2);
    const double ripple = 0.1 * (i * 37 % 101) / 101.0;
    const bool fails = i * 53 % 100 < failing;
    space.trials.push_back(outcome(at, fails ? 0 : 100 * std::exp(bowl + ripple), cost_ms * (1 + 0.1 * (i % 5))));
  }
  return space;
}

void record_launches(RecordedSpace& space, int launches, double spread) {
  for (RecordedTrial& trial : space.trials) {
    for (int i = 0; trial.status == TrialStatus::ok && i < launches; ++i) {
      const double place = launches > 1 ? 2.0 * i / (launches - 1) - 1 : 0;
      trial.samples_us.push_back(trial.time_us * (1 + spread * place));
    }
  }
}

std::string table_of(const RecordedSpace& space) {
  std::string text;
  for (const RecordedParameter& each : space.parameters) {
    text += each.name + ",";
  }
  text += "time_ms,status,eval_cost_ms\n";
  for (const RecordedTrial& trial : space.trials) {
    for (const std::uint16_t index : trial.indices) {
      text += fmt::format("{},", index);
    }
    text += trial.status == TrialStatus::ok ? fmt::format("{},ok,", trial.time_us / 1000) : ",compile,";
    text += trial.cost_ms() > 0 ? fmt::format("{}\n", trial.cost_ms()) : "\n";
  }
  return text;
}

}  // namespace pascaline::testing
