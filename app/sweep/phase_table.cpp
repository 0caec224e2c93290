#include "app/sweep/phase_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/text.hpp"
#include "report/text.hpp"

namespace pascaline {
namespace {

std::vector<std::string> phase_cells(const PhaseTime& time) {
  const bool known = time.after_us > 0;
  return {clean_line(time.phase),
          fmt::format("{:g}", time.calls),
          known ? sum_text(time.before_us) : "-",
          known ? sum_text(time.after_us) : "-",
          known ? fmt::format("{:.2f}x", time.before_us / time.after_us) : "-",
          time.without_times > 0 ? fmt::format("{} of {}", time.problems, time.problems + time.without_times)
                                 : fmt::format("{}", time.problems)};
}

PhaseTime sum_of(const std::vector<PhaseTime>& phases) {
  PhaseTime sum;
  sum.phase = "all";
  for (const PhaseTime& phase : phases) {
    sum.calls += phase.calls;
    sum.before_us += phase.before_us;
    sum.after_us += phase.after_us;
    sum.problems += phase.problems;
    sum.without_times += phase.without_times;
  }
  return sum;
}

std::string device_table(const std::vector<PhaseTime>& phases, bool several_devices) {
  std::vector<std::vector<std::string>> rows{{"phase", "calls", "before", "after", "speedup", "problems"}};
  for (const PhaseTime& phase : phases) {
    rows.push_back(phase_cells(phase));
  }
  const PhaseTime all = sum_of(phases);
  if (phases.size() > 1) {
    rows.push_back(phase_cells(all));
    rows.back().back().clear();  // a problem may be part of several phases
  }
  std::string text = fmt::format("model time{}, before (defaults) and after (winners), summed over the calls:\n",
                                 several_devices ? " on " + clean_line(phases.front().device) : "");
  text += aligned_columns(rows);
  if (all.without_times > 0) {
    text += "problems that lack a winner or a default to compare it with are in no sum\n";
  }
  return text;
}

}  // namespace

std::string phase_table(const std::vector<PhaseTime>& phases) {
  const bool several = std::any_of(phases.begin(), phases.end(),
                                   [&](const PhaseTime& phase) { return phase.device != phases.front().device; });
  std::string text;
  for (auto first = phases.begin(); first != phases.end();) {
    const auto last =
        std::find_if(first, phases.end(), [&](const PhaseTime& phase) { return phase.device != first->device; });
    text += device_table({first, last}, several);
    first = last;
  }
  return text;
}

nlohmann::json phases_json(const std::vector<PhaseTime>& phases) {
  nlohmann::json list = nlohmann::json::array();
  for (const PhaseTime& phase : phases) {
    list.push_back(
        {{"device", phase.device},
         {"phase", phase.phase},
         {"calls", phase.calls},
         {"before_us", phase.before_us},
         {"after_us", phase.after_us},
         {"speedup", phase.after_us > 0 ? nlohmann::json(phase.before_us / phase.after_us) : nlohmann::json()},
         {"problems", phase.problems},
         {"without_times", phase.without_times}});
  }
  return list;
}

}  // namespace pascaline
