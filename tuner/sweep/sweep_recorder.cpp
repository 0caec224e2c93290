#include "tuner/sweep/sweep_recorder.hpp"

#include <fmt/format.h>

#include <vector>

#include "tuner/sweep/sweep_task.hpp"

namespace pascaline {

void SweepRecorder::store_trial(SweepTask& task, const Trial& trial, const std::string& agrees_with, int planned) {
  const ContextIds context = task.stored(trial.config).context;
  const Trial stored = task.stored_trial(trial);
  const std::int64_t id = persist([&](Store& store) { return store.add_trial(task.session, context, stored); });
  if (trial.shared_trial != 0) {
    task.agreement.add_same(trial.shared_trial);
  } else {
    task.agreement.add(id, trial.status, agrees_with);
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
