#include <algorithm>
#include <set>

#include "report/gather_parts.hpp"

namespace pascaline {
namespace {

using TrialIndices = std::vector<std::size_t>;

// TrialIndices to be shown, each once, until there is no more room.
class Choice {
 public:
  explicit Choice(std::size_t room) : room_(room) {}
  void add(std::size_t row) {
    if (chosen_.size() < room_ && known_.insert(row).second) {
      chosen_.push_back(row);
    }
  }
  void add_up_to(const TrialIndices& rows, std::size_t count) {
    for (std::size_t i = 0; i < rows.size() && count > 0; ++i) {
      const std::size_t before = chosen_.size();
      add(rows[i]);
      count -= chosen_.size() - before;
    }
  }
  [[nodiscard]] std::size_t room() const { return room_ - chosen_.size(); }
  [[nodiscard]] TrialIndices rows() const { return chosen_; }

 private:
  std::size_t room_;
  TrialIndices chosen_;
  std::set<std::size_t> known_;
};

// One failure of each status in turn, the latest first.
TrialIndices failures_in_turn(const GatheredProblem& problem) {
  std::array<TrialIndices, kTrialStatuses> by_status;
  for (std::size_t row = problem.trials.size(); row-- > 0;) {
    const TrialStatus status = problem.trials[row].status;
    if (!has_time(status)) {
      by_status[static_cast<std::size_t>(status)].push_back(row);
    }
  }
  TrialIndices rows;
  for (std::size_t turn = 0, before = 1; before != rows.size() || turn == 0; ++turn) {
    before = rows.size();
    for (const TrialIndices& failed : by_status) {
      if (turn < failed.size()) {
        rows.push_back(failed[turn]);
      }
    }
  }
  return rows;
}

TrialIndices fastest_first(const GatheredProblem& problem) {
  TrialIndices rows;
  for (std::size_t row = 0; row < problem.trials.size(); ++row) {
    if (has_time(problem.trials[row].status)) {
      rows.push_back(row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return problem.trials[a].median_us < problem.trials[b].median_us;
  });
  return rows;
}

// The latest of each stage.
TrialIndices defaults_of(const GatheredProblem& problem) {
  TrialIndices rows;
  for (const TrialStage stage : {TrialStage::finals, TrialStage::search}) {
    for (std::size_t row = problem.trials.size(); row-- > 0;) {
      if (problem.trials[row].is_default && problem.trials[row].stage == stage) {
        rows.push_back(row);
        break;
      }
    }
  }
  return rows;
}

TrialIndices choose_rows(const GatheredProblem& problem, std::size_t room) {
  Choice choice(room);
  if (const auto best = best_of(problem)) {
    choice.add(*best);
  }
  for (const std::size_t row : defaults_of(problem)) {
    choice.add(row);
  }
  TrialIndices finalists;
  for (std::size_t row = problem.trials.size(); row-- > 0;) {
    if (problem.trials[row].stage == TrialStage::finals) {
      finalists.push_back(row);
    }
  }
  choice.add_up_to(finalists, choice.room() / 2);
  choice.add_up_to(failures_in_turn(problem), choice.room() / 6);
  const TrialIndices fastest = fastest_first(problem);
  choice.add_up_to(fastest, choice.room() / 2);
  // The rest shows how the others are spread.
  for (const std::size_t at : evenly(fastest.size(), choice.room())) {
    choice.add(fastest[at]);
  }
  choice.add_up_to(fastest, choice.room());
  choice.add_up_to(failures_in_turn(problem), choice.room());
  return choice.rows();
}

std::optional<double> mean_of(const std::vector<Sample>& samples, std::optional<double> Sample::*reading) {
  double sum = 0;
  int count = 0;
  for (const Sample& sample : samples) {
    if (sample.counted() && sample.*reading) {
      sum += *(sample.*reading);
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

void set_samples(ReportConfiguration& out, const std::vector<Sample>& samples, std::size_t most) {
  out.temperature_c = mean_of(samples, &Sample::temperature_c);
  out.sm_clock_mhz = mean_of(samples, &Sample::sm_clock_mhz);
  out.power_w = mean_of(samples, &Sample::power_w);
  std::vector<double> times;
  for (const Sample& sample : samples) {
    if (sample.counted()) {
      times.push_back(sample.time_us * out.trial.clock_scale);
    }
  }
  for (const std::size_t at : evenly(times.size(), most)) {
    out.samples_us.push_back(times[at]);
  }
}

std::vector<StoredTrial> with_samples(const Store& store, std::int64_t trial_id) {
  TrialFilter filter;
  filter.trial_id = trial_id;
  filter.with_samples = true;
  return store.trials(filter);
}

}  // namespace

std::vector<ReportConfiguration> shown_configurations(const Store& store, const GatheredProblem& problem,
                                                      const std::vector<std::size_t>& order,
                                                      const ReportDetail& detail) {
  const auto best = best_of(problem);
  std::vector<ReportConfiguration> shown;
  for (const std::size_t row : choose_rows(problem, detail.configurations)) {
    std::vector<StoredTrial> stored = with_samples(store, problem.trials[row].id);
    if (stored.empty()) {
      continue;
    }
    ReportConfiguration out;
    out.trial_id = stored.front().id;
    out.session = stored.front().session_id;
    out.best = best == row;
    out.trial = std::move(stored.front().trial);
    std::vector<Sample> samples = std::move(out.trial.samples);
    if (samples.empty() && out.trial.shared_trial != 0) {
      // Of an identical binary: that trial was measured, and its samples are this one's.
      const std::vector<StoredTrial> measured = with_samples(store, out.trial.shared_trial);
      samples = measured.empty() ? std::vector<Sample>{} : measured.front().trial.samples;
    }
    set_samples(out, samples, detail.samples);
    out.trial.samples.clear();
    for (const std::size_t column : order) {
      const auto index = problem.configs.index(column, row);
      out.values.push_back(index ? std::optional(problem.configs.values(column)[*index]) : std::nullopt);
    }
    shown.push_back(std::move(out));
  }
  return shown;
}

}  // namespace pascaline
