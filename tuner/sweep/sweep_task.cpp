#include "tuner/sweep/sweep_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace pascaline {

std::string_view name_of(TaskStage stage) noexcept {
  switch (stage) {
    case TaskStage::reserved:
      return "reserved";
    case TaskStage::waiting:
      return "waiting";
    case TaskStage::searching:
      return "searching";
    case TaskStage::gathering:
      return "gathering";
    case TaskStage::finals:
      return "finals";
    case TaskStage::done:
      return "done";
    case TaskStage::left_out:
      return "left_out";
  }
  return "";
}

void TaskState::move(bool allowed, TaskStage to) {
  if (!allowed) {
    throw Error(
        fmt::format("a problem of the sweep cannot go from '{}' to '{}'; this is a fault of the program, "
                    "please report it",
                    name_of(stage_), name_of(to)));
  }
  stage_ = to;
}

void TaskState::open() { move(reserved(), TaskStage::waiting); }

void TaskState::take() { move(stage_ == TaskStage::waiting, TaskStage::searching); }

void TaskState::gather() { move(stage_ == TaskStage::searching || stage_ == TaskStage::finals, TaskStage::gathering); }

void TaskState::compare() { move(stage_ == TaskStage::gathering, TaskStage::finals); }

void TaskState::release() { move(taken(), TaskStage::waiting); }

void TaskState::finish() { move(taken() || stage_ == TaskStage::waiting, TaskStage::done); }

void TaskState::leave_out(std::string reason) {
  move(taken(), TaskStage::left_out);
  why_left_out_ = std::move(reason);
}

TaskRows::Stored TaskRows::stored(const Config& config) const {
  Stored stored{contexts.at(tunable.compilers->index_of(config)), tunable.compilers->without(config), false};
  stored.is_default = stored.config == own_bound.default_config();
  return stored;
}

Trial TaskRows::stored_trial(Trial trial) const {
  Stored as = stored(trial.config);
  trial.config = std::move(as.config);
  trial.is_default = as.is_default;
  return trial;
}

void TaskLook::put_off(double seconds) {
  put_off_s = seconds;
  no_time = fmt::format("no trial in its turn of {:.1f} s", seconds);
}

void TaskLook::note_run() {
  if (!std::exchange(had, true)) {
    no_time.clear();
  }
}

std::string TaskLaunches::winners() const {
  std::string winners;
  for (const SweepTask* task : tasks) {
    const std::optional<Config>& winner = task->result.winner;
    const bool is_default = !winner || *winner == task->search.bound().default_config();
    winners += is_default ? "\n" : winner->text() + "\n";
  }
  return winners;
}

bool TaskFinals::misses_binaries() const {
  return std::any_of(binaries.begin(), binaries.end(), [](const auto& entry) { return !entry.second; });
}

SweepTask::SweepTask(const Tunable& wanted_tunable, const SweepProblem& wanted, const DeviceLimits& limits,
                     const SweepOptions& options)
    : tunable(wanted_tunable),
      search(tunable, wanted, limits, options),
      rows{tunable, BoundSpace(*tunable.own_space, wanted.problem, limits)},
      state(wanted.between ? TaskStage::reserved : TaskStage::waiting),
      weight(wanted.count) {
  reference.stage = tunable.has_reference() ? TaskReference::Stage::wanted : TaskReference::Stage::none;
}

std::vector<Config> SweepTask::wanted_finalists(bool by_time_alone) const {
  std::vector<Config> configs = search.finalist_configs();
  if (deepening.what == Deepening::finals && by_time_alone) {
    const std::optional<Config> baseline = search.baseline();
    std::erase_if(configs, [&](const Config& config) {
      return config != baseline && std::ranges::find(finals.open.among, config.text()) == finals.open.among.end();
    });
  }
  return configs;
}

}  // namespace pascaline
