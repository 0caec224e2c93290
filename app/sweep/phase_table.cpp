#include "app/sweep/phase_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/text.hpp"
#include "core/util/counted.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

double speedup_of(const PhaseTime& time) { return time.after_us > 0 ? time.before_us / time.after_us : 1; }

double share_at_default(const PhaseTime& time) { return time.before_us > 0 ? time.at_default_us / time.before_us : 0; }

// A share is never rounded to all or nothing.
std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.1) {
    return "less than 0.1 %";
  }
  if (percent > 99 && percent < 100) {
    return fmt::format("{:.1f} %", std::min(percent, 99.9));
  }
  return percent < 1 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

std::vector<std::string> phase_cells(const PhaseTime& time) {
  return {clean_line(time.phase),
          fmt::format("{:g}", time.calls),
          sum_text(time.before_us),
          sum_text(time.after_us),
          fmt::format("{:.2f}x", speedup_of(time)),
          time.at_default > 0 ? fmt::format("{} of {}", time.problems, time.problems + time.at_default)
                              : fmt::format("{}", time.problems)};
}

std::string device_table(const std::vector<PhaseTime>& phases, const std::vector<ModelResult>& models,
                         bool several_devices) {
  std::vector<std::vector<std::string>> rows{{"phase", "calls", "before", "after", "speedup", "problems"}};
  if (std::ranges::all_of(phases, [](const PhaseTime& phase) { return phase.problems == 0; })) {
    return {};
  }
  for (const PhaseTime& phase : phases) {
    rows.push_back(phase_cells(phase));
  }
  const auto model = std::ranges::find_if(
      models, [&](const ModelResult& result) { return result.total.device == phases.front().device; });
  if (phases.size() > 1 && model != models.end()) {
    rows.push_back(phase_cells(model->total));
  }
  return fmt::format("model time{}, before (defaults) and after (winners), summed over the calls:\n",
                     several_devices ? " on " + clean_line(phases.front().device) : "") +
         aligned_columns(rows);
}

nlohmann::json phase_json(const PhaseTime& phase) {
  const bool known = phase.problems > 0;
  return {{"device", phase.device},
          {"phase", phase.phase},
          {"calls", phase.calls},
          {"before_us", phase.before_us},
          {"after_us", phase.after_us},
          {"speedup", known ? nlohmann::json(speedup_of(phase)) : nlohmann::json()},
          {"speedup_low", known ? nlohmann::json(phase.speedup_low) : nlohmann::json()},
          {"speedup_high", known ? nlohmann::json(phase.speedup_high) : nlohmann::json()},
          {"problems", phase.problems},
          {"at_default", phase.at_default},
          {"at_default_us", phase.at_default_us}};
}

}  // namespace

std::string phase_table(const std::vector<PhaseTime>& phases, const std::vector<ModelResult>& models) {
  const bool several = std::any_of(phases.begin(), phases.end(),
                                   [&](const PhaseTime& phase) { return phase.device != phases.front().device; });
  std::string text;
  for (auto first = phases.begin(); first != phases.end();) {
    const auto last =
        std::find_if(first, phases.end(), [&](const PhaseTime& phase) { return phase.device != first->device; });
    text += device_table({first, last}, models, several);
    first = last;
  }
  return text;
}

std::vector<std::string> model_lines(const std::vector<ModelResult>& models) {
  std::vector<std::string> lines;
  for (const ModelResult& model : models) {
    const PhaseTime& total = model.total;
    if (total.problems > 0) {
      lines.push_back(fmt::format(
          "whole model{}: {:.2f}x as fast as with the defaults, {:.2f}x to {:.2f}x (95 %); results for {} of its time",
          models.size() > 1 ? " on " + clean_line(total.device) : "", speedup_of(total), total.speedup_low,
          total.speedup_high, percent_text(1 - share_at_default(total))));
    }
  }
  return lines;
}

std::string left_text(const SweepSummary& summary) {
  const int left = summary.problems.planned - summary.problems.decided;
  if (left <= 0) {
    return {};
  }
  double before_us = 0;
  double at_default_us = 0;
  for (const ModelResult& model : summary.models) {
    before_us += model.total.before_us;
    at_default_us += model.total.at_default_us;
  }
  return fmt::format(
      "{} of {}{} {} left at {}", left, counted(summary.problems.planned, "shape"),
      before_us > 0 ? fmt::format(", {} of the model's time,", percent_text(at_default_us / before_us)) : "",
      left == 1 ? "was" : "were", left == 1 ? "its default" : "their defaults");
}

nlohmann::json phases_json(const std::vector<PhaseTime>& phases) {
  nlohmann::json list = nlohmann::json::array();
  std::ranges::transform(phases, std::back_inserter(list), phase_json);
  return list;
}

nlohmann::json models_json(const std::vector<ModelResult>& models) {
  nlohmann::json list = nlohmann::json::array();
  for (const ModelResult& model : models) {
    nlohmann::json& entry = list.emplace_back(phase_json(model.total));
    entry.erase("phase");
    entry["curve"] = nlohmann::json::array();
    for (const ModelPoint& point : model.curve) {
      entry["curve"].push_back(
          {{"elapsed_s", point.elapsed_s}, {"model_us", point.model_us}, {"default_us", point.default_us}});
    }
  }
  return list;
}

nlohmann::json forecasts_json(const std::vector<Forecast>& forecasts) {
  nlohmann::json list = nlohmann::json::array();
  for (const Forecast& forecast : forecasts) {
    list.push_back(
        {{"device", forecast.device},
         {"limit_s", forecast.limit_s},
         {"reached", forecast.reached},
         {"problems", forecast.problems},
         {"model_share", forecast.reached_share ? nlohmann::json(*forecast.reached_share) : nlohmann::json()},
         {"needed_s", forecast.needed_s}});
  }
  return list;
}

}  // namespace pascaline
