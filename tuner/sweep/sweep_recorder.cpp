#include "tuner/sweep/sweep_recorder.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {

void SweepRecorder::begin_attempt(const SweepTask& task, const Config& config, TrialStage stage) {
  const TaskRows::Stored stored = task.rows.stored(config);
  persist([&](Store& store) {
    store.begin_attempt(task.rows.session, stored.context, stored.config, stage, stored.is_default);
  });
}

void SweepRecorder::end_attempt(const SweepTask& task, const Config& config) {
  const TaskRows::Stored stored = task.rows.stored(config);
  persist([&](Store& store) { store.end_attempt(task.rows.session, stored.context, stored.config); });
}

std::int64_t SweepRecorder::add_trial(const SweepTask& task, const Trial& trial) {
  const ContextIds context = task.rows.stored(trial.config).context;
  const Trial stored = task.rows.stored_trial(trial);
  return persist([&](Store& store) { return store.add_trial(task.rows.session, context, stored); });
}

void SweepRecorder::count_decided(SweepTask& task) {
  if (!std::exchange(task.result.decided, true) && !task.search.wanted().between) {
    ++summary_.problems.done;
  }
}

void SweepRecorder::store_trial(SweepTask& task, const Trial& trial, const std::string& agrees_with, int planned) {
  const std::int64_t id = add_trial(task, trial);
  if (trial.shared_trial != 0) {
    task.reference.agreement.add_same(trial.shared_trial);
  } else {
    task.reference.agreement.add(id, trial.status, agrees_with);
  }
  summary_.add(trial);
  const bool had_hope = task.search.hopeless().empty();
  const std::vector<ProblemSearch::ResolvedTrial> same = task.search.observe(trial, id);
  if (had_hope && !task.search.hopeless().empty()) {
    note(fmt::format(
        "{}: the first {} configurations all do not compile, for the same reason, and no more are tried: {}",
        trial.problem.text(), HopelessRule::kAfter, task.search.hopeless()));
  }
  if (events_.trial) {
    events_.trial(trial, task.search.done(), planned, task.search.best_us(), task.search.default_us());
  }
  for (const ProblemSearch::ResolvedTrial& resolved : same) {
    store_trial(task, resolved.trial, {}, planned);
  }
}

}  // namespace pascaline
