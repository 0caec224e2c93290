#include "tuner/sweep/recall_finals.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/dispatch/identity.hpp"

namespace pascaline {
namespace {

// The finals of a run: the last trial of each configuration, and the number of finals.
struct StoredFinals {
  std::vector<Trial> last;
  int most = 0;
};

StoredFinals last_of_each(const std::vector<Trial>& trials) {
  StoredFinals finals;
  std::map<std::string, std::pair<std::size_t, int>> sites;
  for (const Trial& trial : trials) {
    const auto [site, fresh] = sites.try_emplace(trial.config.text(), finals.last.size(), 0);
    if (fresh) {
      finals.last.push_back(trial);
    } else {
      finals.last[site->second.first] = trial;
    }
    finals.most = std::max(finals.most, ++site->second.second);
  }
  return finals;
}

}  // namespace

void recall_finals(SweepRecorder& recorder, SweepTask& task, const std::string& run,
                   const std::vector<ToolkitRow>& toolkits, const DeviceRow& own_device) {
  const Problem& problem = task.search.wanted().problem;
  const auto compiler_of = [&](const ToolkitRow& toolkit) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < task.rows.contexts.size(); ++i) {
      if (toolkits[i] == toolkit) {
        return i;
      }
    }
    return std::nullopt;
  };
  const auto of_search = [&](Trial& trial, const ToolkitRow& toolkit, const KernelRow& kernel,
                             const DeviceRow& device) {
    const auto compiler = compiler_of(toolkit);
    if (!compiler || kernel.source_hash != task.tunable.source.hash || !same_identity(device, own_device) ||
        !trial.time) {
      return false;
    }
    trial.config = task.tunable.compilers->with(trial.config, *compiler);
    return true;
  };
  std::vector<Trial> finals;
  std::optional<Config> winner;
  recorder.persist([&](Store& store) {
    finals.clear();
    winner.reset();
    std::set<std::int64_t> sessions;
    for (const SessionRow& session : store.sessions()) {
      if (session.run_uuid == run) {
        sessions.insert(session.id);
      }
    }
    TrialFilter filter;
    filter.kernel = problem.kernel;
    filter.problem = problem.text();
    for (StoredTrial& stored : store.trials(filter)) {
      if (stored.trial.stage == TrialStage::finals && sessions.contains(stored.session_id) &&
          of_search(stored.trial, stored.toolkit, stored.kernel, stored.device)) {
        finals.push_back(std::move(stored.trial));
      }
    }
    for (Winner& stored : store.winners(problem.kernel, &own_device)) {
      if (!winner && stored.trial.problem == problem &&
          of_search(stored.trial, stored.toolkit, stored.kernel, stored.device)) {
        winner = stored.trial.config;
      }
    }
  });
  task.result.winner = winner;
  const StoredFinals stored = last_of_each(finals);
  const auto found = std::find_if(stored.last.begin(), stored.last.end(),
                                  [&](const Trial& trial) { return winner && trial.config == *winner; });
  if (found != stored.last.end()) {
    task.finals.open = open_finals(stored.last, static_cast<std::size_t>(found - stored.last.begin()));
  }
  task.finals.again = std::clamp(stored.most - 1, 0, kMaxFinalsAgain);
}

}  // namespace pascaline
