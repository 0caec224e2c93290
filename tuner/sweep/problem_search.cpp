#include "tuner/sweep/problem_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/space/enumeration.hpp"
#include "runtime/dispatch/closest_valid.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {
namespace {

// Spaces of up to this many combinations are counted, so that plan and time left are right where they are small.
constexpr double kCountedSpace = 100'000;
// A search without a limit cools down over so many trials.
constexpr int kMaxExpectedTrials = 1000;
constexpr double kLaunchOverheadSeconds = 1e-3;

int enough(const Tunable& tunable, int wanted) {
  return tunable.compares_all() ? std::max(wanted, static_cast<int>(tunable.space->raw_size())) : wanted;
}

Proposals::Options proposal_options(const Tunable& tunable, const SweepOptions& options) {
  const bool searches = options.search.searcher != kNoSearcher && !tunable.compares_all();
  return {searches ? options.search.searcher : "", options.search.seed, options.search.min_gain,
          !has_time_limit(options)};
}

}  // namespace

void ReadAhead::note_starved(std::size_t open) {
  if (open >= most_ && !std::exchange(starved_, true)) {
    most_ += 1 + most_ / 4;
  }
}

void ReadAhead::note_trial(std::size_t ready) {
  starved_ = false;
  if (ready > kFirst && most_ > kFirst) {
    --most_;
  }
}

void HopelessRule::note_failure(const std::string& reason, int done) {
  if (reason != reason_) {
    reason_ = reason;
    alike_ = 0;
  }
  if (++alike_ == kAfter && done == kAfter) {
    why_ = reason_;
  }
}

ProblemSearch::ProblemSearch(const Tunable& tunable, SweepProblem wanted, const DeviceLimits& limits,
                             const SweepOptions& options)
    : options_(options),
      compilers_(tunable.compilers->several() ? tunable.compilers : nullptr),
      wanted_(std::move(wanted)),
      trials_(
          enough(tunable, options.trials >= kUnlimitedTrials ? options.trials : wanted_.part.share_of(options.trials))),
      bound_(*tunable.space, wanted_.problem, limits),
      baseline_(bound_),
      table_(compilers_),
      proposals_(bound_, part(), proposal_options(tunable, options)),
      finalists_(enough(tunable, options.finalists), compilers_) {
  if (tunable.space->raw_size() <= kCountedSpace) {
    count_valid();
  }
  // Finals compare with the default, which each part measures beside its own.
  if (!in_part(bound_.default_indices())) {
    trials_ += trials_ < kUnlimitedTrials ? 1 : 0;
    if (valid_ && !bound_.why_invalid(baseline_.default_config())) {
      ++*valid_;
    }
  }
  proposals_.expect(std::min(trials_, kMaxExpectedTrials));
  begin_with_defaults();
  if (tunable.compares_all()) {
    begin_with_all();
  } else {
    begin_with_portfolio();
  }
}

// How many are valid; of a part's trials as many as there are for configurations of its own. Parts are not of one size,
// and together they are to have all trials.
void ProblemSearch::count_valid() {
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(wanted_.part.count), 0);
  const std::size_t parameters = part().parameters;
  Enumerator(bound_).for_each([&](std::span<const std::uint16_t> indices) {
    ++sizes[wanted_.part.is_whole() ? 0 : SpacePart::index_of(indices.first(parameters), wanted_.part.count) - 1];
    return true;
  });
  valid_ = sizes[static_cast<std::size_t>(wanted_.part.index - 1)];
  if (!wanted_.part.is_whole() && options_.trials < kUnlimitedTrials) {
    trials_ = wanted_.part.share_of(options_.trials, sizes);
  }
}

// The default is measured before anything else, so that every gain has something to be compared with; then that of
// each further compiler.
void ProblemSearch::begin_with_defaults() {
  const Config& standard = baseline_.default_config();
  if (const auto why = bound_.why_invalid(standard)) {
    baseline_.lose_default(fmt::format("not valid here: {}", *why));
    return;
  }
  proposals_.add(standard);
  for (std::size_t compiler = 1; compiler < table_.rankings_of_compilers().size(); ++compiler) {
    proposals_.add(compilers_->with(compilers_->without(standard), compiler));
  }
}

void ProblemSearch::begin_with_all() {
  Enumerator(bound_).for_each([&](std::span<const std::uint16_t> indices) {
    if (Config config = bound_.space().config_at(indices); config != baseline_.default_config()) {
      proposals_.add(std::move(config));
    }
    return true;
  });
}

// Then what is known to be good for some shape of the kernel, in place of a member that is not valid here the nearest
// one that is.
void ProblemSearch::begin_with_portfolio() {
  for (const Config& member : bound_.space().portfolio_for(bound_.limits())) {
    const auto config = nearest_valid(bound_, member);
    if (config && in_part(bound_.space().indices_of(*config)) && !proposals_.lists(*config)) {
      proposals_.add(*config);
    }
  }
}

// Parts do not depend on the parameter of the compilers, which may be others on another machine.
SearchedPart ProblemSearch::part() const {
  return {wanted_.part, bound_.space().parameters.size() - (compilers_ != nullptr ? 1 : 0)};
}

std::vector<bool> ProblemSearch::begin_with_winners(const std::vector<Config>& winners) {
  return proposals_.add_winners(winners, baseline_.default_config(), table_.rankings_of_compilers().size(), table_);
}

// A space may have lost values since; what was measured with them is of no use to this sweep.
bool ProblemSearch::belongs(const Config& config) const {
  try {
    return !bound_.why_invalid(config);
  } catch (const Error&) {
    return false;
  }
}

void ProblemSearch::recall(const std::vector<Store::Known>& known, const std::vector<Config>& left) {
  const Config& standard = baseline_.default_config();
  for (const Store::Known& entry : known) {
    const bool failed = entry.status == TrialStatus::timed_out || entry.status == TrialStatus::crashed ||
                        entry.status == TrialStatus::launch_failed;
    if (!belongs(entry.config) || (failed && options_.search.retry_failed && !entry.in_run)) {
      continue;
    }
    const bool usable = has_time(entry.status) && (!entry.failed_in_finals || options_.search.retry_failed);
    table_.recall(entry.config, usable ? entry.median_us : 0, entry.trial_id);
    proposals_.observe(entry.config, {usable ? entry.status : TrialStatus::crashed, entry.median_us});
    if (usable) {
      baseline_.note_usable(entry.config);
    } else if (entry.config == standard) {
      baseline_.lose_default(entry.failed_in_finals ? "failed in earlier finals"
                                                    : fmt::format("{} in an earlier run", name_of(entry.status)));
    }
    if (entry.in_run) {
      best_history_us_.push_back(best_us());
    } else {
      ++reused_.all;
      reused_.usable += usable ? 1 : 0;
    }
  }
  for (const Config& config : left) {
    if (belongs(config) && config != standard) {
      proposals_.add_first(config);
    }
  }
}

std::optional<Config> ProblemSearch::propose() {
  while (!spent() && may_try()) {
    if (auto stand_in = baseline_.next_stand_in(table_, proposals_.check())) {
      table_.propose(*stand_in, false);
      return stand_in;
    }
    const std::optional<Proposals::Proposal> next = proposals_.next();
    if (!next) {
      return std::nullopt;
    }
    if (table_.propose(next->config, next->searched)) {
      return next->config;
    }
  }
  if (done() >= trials_) {
    proposals_.end();
  }
  return std::nullopt;
}

// Of those that the searcher proposed.
std::optional<CodeJudge::Verdict> ProblemSearch::cannot_win(const Candidate& candidate) const {
  return judge_ && candidate.searched ? judge_->cannot_win(candidate.config) : std::nullopt;
}

std::optional<ProblemSearch::ResolvedTrial> ProblemSearch::compiled(const Config& config, Compiled compiled) {
  Binary& binary = compiled.result.binary;
  ResolvedTrial settled;
  settled.trial = blank_trial(bound_, config, binary);
  settled.trial.status = compiled.status;
  settled.trial.reason = compiled.result.reason;
  if (compiled.status != TrialStatus::ok) {
    return settled;
  }
  if (const auto problem = exceeds_limits(bound_, bound_.space().launches, config, binary)) {
    settled.trial.status = TrialStatus::rejected;
    settled.trial.reason = *problem;
    return settled;
  }
  std::string key = run_key(bound_, config, binary);
  if (judge_) {
    judge_->take(config, binary);
    const auto slow = cannot_win(*table_.find(config));
    if (slow && !table_.has_code(key)) {
      settled.trial.status = TrialStatus::rejected;
      settled.trial.reason = slow->reason;
      return settled;
    }
  }
  const Candidate* const original = table_.add_code(config, std::move(binary), std::move(key));
  if (original == nullptr) {
    return std::nullopt;
  }
  if (original->stage == Candidate::Stage::settled) {
    return share(std::move(settled.trial), *original);
  }
  // The default is measured before all others, so one of the same code that is still here waits for it, not it for
  // that.
  if (config == baseline_.default_config()) {
    table_.swap_with_twin(config);
  }
  return std::nullopt;
}

ProblemSearch::ResolvedTrial ProblemSearch::share(Trial blank, const Candidate& original) {
  const Trial& result = *original.result;
  ResolvedTrial settled{std::move(blank), true};
  Trial& trial = settled.trial;
  trial.status = result.status;
  trial.reason = fmt::format("same machine code and launch as {}, whose result this is{}{}", result.config.text(),
                             result.reason.empty() ? "" : ": ", result.reason);
  trial.max_error = result.max_error;
  trial.time = result.time;
  trial.canary_us = result.canary_us;
  trial.clock_scale = result.clock_scale;
  trial.shared_trial = original.trial;
  return settled;
}

// In the order they were compiled; of those that the searcher proposed the one whose code promises most, but none for
// ever behind others.
std::size_t ProblemSearch::most_promising() {
  const std::deque<Candidate*>& ready = table_.ready();
  if (!judge_ || ready.empty() || !ready.front()->searched || ready.front()->passed_over >= kMaxPassedOver) {
    return 0;
  }
  const auto first =
      std::ranges::min_element(ready, {}, [&](const Candidate* one) { return judge_->middle_us(one->config); });
  std::for_each(ready.begin(), first, [](Candidate* candidate) { ++candidate->passed_over; });
  return static_cast<std::size_t>(first - ready.begin());
}

const Candidate* ProblemSearch::take_ready() {
  // Until the default is measured nothing else is, whatever is compiled first. One of the same code on the device tells
  // of the default as well.
  const Candidate* const standard = table_.find(baseline_.default_config());
  const bool default_first = standard != nullptr && (standard->stage == Candidate::Stage::proposed ||
                                                     standard->stage == Candidate::Stage::ready);
  const std::deque<Candidate*>& ready = table_.ready();
  const std::size_t next =
      default_first ? static_cast<std::size_t>(std::ranges::find(ready, standard) - ready.begin()) : most_promising();
  if (next == ready.size()) {
    if (!default_first) {
      ahead_.note_starved(open());
    }
    return nullptr;
  }
  // Those of others can be had from the cache again.
  table_.drop_binaries(finalists_.kept_binaries(), [&](const Candidate& candidate) { return &candidate == standard; });
  return &table_.take(next);
}

std::vector<ProblemSearch::ResolvedTrial> ProblemSearch::observe(const Trial& trial, std::int64_t stored_id) {
  const bool is_default = trial.config == baseline_.default_config();
  const std::vector<const Candidate*> twins = table_.settle(trial, stored_id);
  const Candidate& candidate = *table_.find(trial.config);
  ahead_.note_trial(ready());
  best_history_us_.push_back(best_us());
  if (has_time(trial.status)) {
    if (candidate.has_own_time) {
      baseline_.note_usable(trial.config);
    }
    if (is_default) {
      baseline_.lose_default({});
    }
  } else if (is_default) {
    baseline_.lose_default(trial.reason.empty() ? std::string(name_of(trial.status))
                                                : fmt::format("{}: {}", name_of(trial.status), trial.reason));
  }
  if (trial.status == TrialStatus::compile_failed && usable() == 0) {
    hopeless_.note_failure(trial.reason, done());
    if (!hopeless_.why().empty()) {
      proposals_.end();
    }
  }
  const double median_us = trial.time ? trial.time->median_us : 0;
  Observation seen{trial.status, median_us};
  if (judge_ && has_time(trial.status) && usable() > 0 && best() == trial.config) {
    judge_->set_fastest(trial.config, median_us);
  } else if (const auto slow = trial.status == TrialStatus::rejected ? cannot_win(candidate) : std::nullopt) {
    seen = {TrialStatus::ok, slow->expected_us};
  }
  proposals_.observe(trial.config, seen);
  std::vector<ResolvedTrial> settled;
  for (const Candidate* twin : twins) {
    settled.push_back(share(blank_trial(bound_, twin->config, *twin->binary), candidate));
  }
  return settled;
}

void ProblemSearch::discard(const Config& config) {
  table_.discard(config);
  baseline_.note_discarded(config, table_);
  if (config == baseline_.default_config()) {
    baseline_.lose_default("failed in the finals");
  }
}

double ProblemSearch::default_us() const {
  const Candidate* standard = table_.find_usable(baseline_.default_config());
  return standard != nullptr ? standard->median_us : 0;
}

int ProblemSearch::remaining() const noexcept {
  if (spent()) {
    return static_cast<int>(open());
  }
  const int allowed = std::max(trials_ - done(), 0);
  if (proposals_.only_list()) {
    return std::min(allowed, static_cast<int>(proposals_.listed() + open()));
  }
  if (!valid_) {
    return allowed;
  }
  const std::uint64_t known = table_.known() - open();
  return std::min(allowed, static_cast<int>(*valid_ - std::min(*valid_, known)));
}

std::int64_t ProblemSearch::trial_of(const Config& config) const {
  const Candidate* found = table_.find_usable(config);
  return found == nullptr ? 0 : found->trial;
}

std::optional<double> ProblemSearch::time_us(const Config& config) const {
  const Candidate* found = table_.find_usable(config);
  return found == nullptr ? std::nullopt : std::optional(found->median_us);
}

double ProblemSearch::launch_s_of(const std::string& config) const {
  const Candidate* found = table_.find(config);
  if (found != nullptr && found->launch_s > 0) {
    return found->launch_s;
  }
  return kLaunchOverheadSeconds + 1e-6 * (found != nullptr && found->median_us > 0 ? found->median_us : default_us());
}

std::vector<std::pair<Config, std::optional<Binary>>> ProblemSearch::finalists() const {
  std::vector<std::pair<Config, std::optional<Binary>>> finalists;
  for (Config& config : finalist_configs()) {
    const Candidate* kept = table_.find(config);
    finalists.emplace_back(std::move(config), kept == nullptr ? std::nullopt : kept->binary);
  }
  return finalists;
}

std::string ProblemSearch::finalists_key() const {
  std::string key;
  for (const Config& config : finalists_.found(table_, baseline(), baseline_.default_config())) {
    key += config.text() + "\n";
  }
  return key;
}

std::vector<std::pair<Config, double>> ProblemSearch::times_us() const {
  std::vector<std::pair<Config, double>> times;
  for (const auto& [time_us, candidate] : table_.ranking()) {
    times.emplace_back(candidate->config, time_us);
  }
  return times;
}

double ProblemSearch::best_after_us(int trials) const noexcept {
  const auto last = static_cast<std::size_t>(std::min(trials, done()));
  return last > 0 ? best_history_us_[last - 1] : 0;
}

}  // namespace pascaline
