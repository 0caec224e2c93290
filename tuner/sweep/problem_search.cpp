#include "tuner/sweep/problem_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/space/enumeration.hpp"
#include "model/fusion/site_space.hpp"
#include "runtime/dispatch/closest_valid.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {
namespace {

// Spaces of up to this many combinations are counted, so that plan and time left are right where they are small.
constexpr double kCountedSpace = 100'000;
// A search without a limit cools down over so many trials.
constexpr int kMaxExpectedTrials = 1000;
// Of a kernel that fails everywhere not all is to be tried in this order.
constexpr std::size_t kMaxStandIns = 64;
constexpr double kLaunchOverheadSeconds = 1e-3;

}  // namespace

ProblemSearch::ProblemSearch(const Space& space, SweepProblem wanted, const DeviceLimits& limits,
                             const SweepOptions& options, const CompilerAxis* compilers)
    : options_(options),
      compilers_(compilers != nullptr && compilers->several() ? compilers : nullptr),
      wanted_(std::move(wanted)),
      trials_(options.trials >= kUnlimitedTrials ? options.trials : wanted_.part.share_of(options.trials)),
      finalists_(options.finalists),
      bound_(space, wanted_.problem, limits),
      default_config_(bound_.default_config()),
      stop_rule_(options.min_gain) {
  if (is_site(space.kernel)) {  // all of its alternatives are tried and compared
    trials_ = std::max(trials_, static_cast<int>(space.parameters.front().values.size()));
    finalists_ = std::max(finalists_, static_cast<int>(space.parameters.front().values.size()));
  }
  if (space.raw_size() <= kCountedSpace) {
    count_valid();
  }
  // Finals compare with the default, which each part measures beside its own.
  if (!in_part(bound_.default_indices())) {
    trials_ += trials_ < kUnlimitedTrials ? 1 : 0;
    if (valid_ && !bound_.why_invalid(default_config_)) {
      ++*valid_;
    }
  }
  if (compilers_ != nullptr) {
    of_compiler_.resize(compilers_->count());
  }
  begin_with_defaults();
  begin_with_portfolio();
}

// How many are valid; of a part's trials as many as there are for configurations of its own. Parts are not of one size,
// and together they are to have all trials.
void ProblemSearch::count_valid() {
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(wanted_.part.count), 0);
  const std::size_t parameters = own_parameters();
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
  if (const auto why = bound_.why_invalid(default_config_)) {
    lose_default(fmt::format("not valid here: {}", *why));
    return;
  }
  first_.push_back(default_config_);
  for (std::size_t compiler = 1; compiler < of_compiler_.size(); ++compiler) {
    first_.push_back(compilers_->with(compilers_->without(default_config_), compiler));
  }
}

// Then what is known to be good for some shape of the kernel, in place of a member that is not valid here the nearest
// one that is.
void ProblemSearch::begin_with_portfolio() {
  if (is_site(bound_.space().kernel)) {
    for (const Value& value : bound_.space().parameters.front().values) {
      Config config({{kAlternativeParameter, value}});
      if (config != default_config_) {
        first_.push_back(std::move(config));
      }
    }
    return;
  }
  for (const Config& member : bound_.space().portfolio_for(bound_.limits())) {
    const auto config = nearest_valid(bound_, member);
    if (config && in_part(bound_.space().indices_of(*config)) &&
        std::find(first_.begin(), first_.end(), *config) == first_.end()) {
      first_.push_back(*config);
    }
  }
}

bool ProblemSearch::in_part(std::span<const std::uint16_t> indices) const {
  return wanted_.part.holds(indices.first(own_parameters()));
}

// Without that of the compilers, which may be others on another machine.
std::size_t ProblemSearch::own_parameters() const {
  return bound_.space().parameters.size() - (compilers_ != nullptr ? 1 : 0);
}

std::vector<bool> ProblemSearch::begin_with_winners(const std::vector<Config>& winners) {
  const auto standard = std::find(first_.begin(), first_.end(), default_config_);
  std::size_t at = static_cast<std::size_t>(standard - first_.begin());
  at = standard == first_.end() ? 0 : at + std::max<std::size_t>(1, of_compiler_.size());
  std::vector<bool> among;
  for (const Config& winner : winners) {
    const auto config = nearest_valid(bound_, winner);
    among.push_back(config && in_part(bound_.space().indices_of(*config)) && !known_.contains(config->text()));
    if (!among.back() || *config == default_config_) {
      continue;
    }
    const auto twin = std::find(first_.begin(), first_.end(), *config);
    if (twin != first_.end()) {
      const auto place = static_cast<std::size_t>(twin - first_.begin());
      if (place < at) {
        continue;
      }
      first_.erase(twin);
    }
    at = std::min(at, first_.size());
    first_.insert(first_.begin() + static_cast<std::ptrdiff_t>(at++), *config);
  }
  return among;
}

std::vector<Config> ProblemSearch::untried_near(const std::vector<Config>& centres, std::size_t most) {
  if (!domain_) {
    domain_.emplace(bound_, wanted_.part, own_parameters(), SearchDomain::kMaxTuples, check_);
  }
  const Space& space = bound_.space();
  std::vector<Config> found;
  std::set<std::string> taken;
  const auto add = [&](const Config& config) {
    if (found.size() < most && in_part(space.indices_of(config)) && !known_.contains(config.text()) &&
        taken.insert(config.text()).second) {
      found.push_back(config);
    }
  };
  std::vector<Point> points;
  for (const Config& centre : centres) {
    if (const auto config = nearest_valid(bound_, centre)) {
      add(*config);
      points.push_back(space.indices_of(*config));
    }
  }
  for (const Reach reach : {Reach::any, Reach::pair}) {
    for (const Point& point : points) {
      if (found.size() == most) {
        return found;
      }
      for (const Point& neighbour : domain_->neighbours(point, reach)) {
        add(space.config_at(neighbour));
      }
    }
  }
  return found;
}

void ProblemSearch::try_only(const std::vector<Config>& configs) {
  search_spent_ = spent_;
  only_first_ = true;
  spent_ = false;
  first_.assign(configs.begin(), configs.end());
}

void ProblemSearch::search_on() {
  if (only_first_) {
    first_.clear();
    only_first_ = false;
    spent_ = search_spent_;
  }
}

void ProblemSearch::lose_default(std::string why) {
  default_us_ = 0;
  why_no_default_ = std::move(why);
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
  for (const Store::Known& entry : known) {
    const bool failed = entry.status == TrialStatus::timed_out || entry.status == TrialStatus::crashed ||
                        entry.status == TrialStatus::launch_failed;
    if (!belongs(entry.config) || (failed && options_.retry_failed && !entry.in_run)) {
      continue;
    }
    const bool usable = entry.status == TrialStatus::ok && (!entry.failed_in_finals || options_.retry_failed);
    known_.insert(entry.config.text());
    recalled_.emplace_back(entry.config, Observation{usable ? entry.status : TrialStatus::crashed, entry.median_us});
    (entry.in_run ? done_ : reused_) += 1;
    if (usable) {
      reused_ok_ += entry.in_run ? 0 : 1;
      keep(entry.config, entry.median_us, entry.trial_id);
    } else if (entry.config == default_config_) {
      lose_default(entry.failed_in_finals ? "failed in earlier finals"
                                          : fmt::format("{} in an earlier run", name_of(entry.status)));
    }
    if (entry.in_run) {
      best_history_us_.push_back(best_us());
    }
  }
  for (const Config& config : left) {
    if (belongs(config) && config != default_config_) {
      first_.push_front(config);
    }
  }
}

void ProblemSearch::begin_search() {
  domain_.emplace(bound_, wanted_.part, own_parameters(), SearchDomain::kMaxTuples, check_);
  SearchOptions search;
  search.seed = options_.seed;
  search.expected_trials = std::min(trials_, kMaxExpectedTrials);
  if (knowledge_) {
    search.priors = knowledge_(*domain_);
  }
  searcher_ = make_searcher(options_.searcher, *domain_, search);
  for (const auto& [config, observation] : recalled_) {
    searcher_->observe(bound_.space().indices_of(config), observation);
  }
  recalled_.clear();
}

// The configurations that an untuned program would try, one after the other, until one is usable.
std::optional<Config> ProblemSearch::propose_stand_in() {
  while (no_stand_in_.size() < kMaxStandIns) {
    if (!stand_in_) {
      stand_in_ = closest_valid(bound_, no_stand_in_, check_);
      if (!stand_in_) {
        return std::nullopt;
      }
    }
    const std::string text = stand_in_->text();
    if (known_.insert(text).second) {
      return stand_in_;
    }
    if (measured_.contains(text) || waiting_.contains(text)) {
      return std::nullopt;
    }
    no_stand_in_.push_back(*std::exchange(stand_in_, std::nullopt));
  }
  return std::nullopt;
}

std::optional<Config> ProblemSearch::propose() {
  const auto within = [&] { return done_ + static_cast<int>(open_) < trials_; };
  looking_ = false;
  while (!spent_ && within()) {
    Config next;
    if (auto stand_in = why_no_default_.empty() ? std::nullopt : propose_stand_in()) {
      ++open_;
      waiting_.insert(stand_in->text());
      return stand_in;
    }
    if (!first_.empty()) {
      next = std::move(first_.front());
      first_.pop_front();
    } else {
      spent_ = only_first_ || options_.searcher == kNoSearcher || is_site(bound_.space().kernel);
      if (spent_) {
        break;
      }
      if (!searcher_) {
        begin_search();
      }
      const std::vector<Point> proposals = searcher_->propose(1);
      looking_ = proposals.empty() && searcher_->looking();
      if (looking_) {
        return std::nullopt;
      }
      little_left_ = !proposals.empty() && stop_rule_.is_reached(*searcher_);
      spent_ = proposals.empty() || (little_left_ && !has_time_limit(options_));
      if (spent_) {
        break;
      }
      next = bound_.space().config_at(proposals.front());
      if (judge_) {
        searched_.insert(next.text());
      }
    }
    if (known_.insert(next.text()).second) {
      ++open_;
      waiting_.insert(next.text());
      default_open_ = default_open_ || next == default_config_;
      return next;
    }
  }
  spent_ = spent_ || done_ >= trials_;
  return std::nullopt;
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
  const Geometry geometry = bound_.geometry(bound_.space().launch, config);
  if (const auto problem = exceeds_limits(binary.resources, geometry, bound_.limits())) {
    settled.trial.status = TrialStatus::rejected;
    settled.trial.reason = *problem;
    return settled;
  }
  Candidate candidate{config, std::move(binary), {}};
  candidate.run_key = run_key(bound_, config, candidate.binary);
  if (judge_) {
    judge_->take(config, candidate.binary);
    const auto slow = searched_.contains(config.text()) ? judge_->cannot_win(config) : std::nullopt;
    if (slow && !originals_.contains(candidate.run_key)) {
      settled.trial.status = TrialStatus::rejected;
      settled.trial.reason = slow->reason;
      return settled;
    }
  }
  const auto [original, first] = originals_.try_emplace(candidate.run_key);
  if (first) {
    ready_.push_back(std::move(candidate));
    return std::nullopt;
  }
  if (!original->second.stored) {
    if (config == default_config_) {
      go_before_its_twin(candidate);
    }
    original->second.waiting.push_back(std::move(candidate));
    return std::nullopt;
  }
  return share(config, candidate.binary, original->second.stored->first, original->second.stored->second);
}

// The default is measured before all others, so one of the same code that is still here waits for it, not it for that.
// One that is on the device already tells of the default as well.
void ProblemSearch::go_before_its_twin(Candidate& standard) {
  const auto twin = std::find_if(ready_.begin(), ready_.end(),
                                 [&](const Candidate& candidate) { return candidate.run_key == standard.run_key; });
  if (twin != ready_.end()) {
    std::swap(*twin, standard);
  } else {
    default_open_ = false;
  }
}

ProblemSearch::ResolvedTrial ProblemSearch::share(const Config& config, const Binary& binary, const Trial& original,
                                                  std::int64_t original_id) const {
  ResolvedTrial settled{blank_trial(bound_, config, binary), true};
  Trial& trial = settled.trial;
  trial.status = original.status;
  trial.reason = fmt::format("same machine code and launch as {}, whose result this is{}{}", original.config.text(),
                             original.reason.empty() ? "" : ": ", original.reason);
  trial.max_error = original.max_error;
  trial.time = original.time;
  trial.canary_us = original.canary_us;
  trial.clock_scale = original.clock_scale;
  trial.shared_trial = original_id;
  return settled;
}

// In the order they were compiled; of those that the searcher proposed the one whose code promises most, but none for
// ever behind others.
std::deque<ProblemSearch::Candidate>::iterator ProblemSearch::most_promising() {
  if (!judge_ || ready_.empty() || !searched_.contains(ready_.front().config.text()) ||
      ready_.front().passed_over >= kMaxPassedOver) {
    return ready_.begin();
  }
  const auto first = std::min_element(ready_.begin(), ready_.end(), [&](const Candidate& a, const Candidate& b) {
    return judge_->middle_us(a.config) < judge_->middle_us(b.config);
  });
  std::for_each(ready_.begin(), first, [](Candidate& candidate) { ++candidate.passed_over; });
  return first;
}

std::optional<ProblemSearch::Candidate> ProblemSearch::take_ready() {
  // Until the default is measured nothing else is, whatever is compiled first.
  const auto next = default_open_
                        ? std::find_if(ready_.begin(), ready_.end(),
                                       [&](const Candidate& candidate) { return candidate.config == default_config_; })
                        : most_promising();
  if (next == ready_.end()) {
    if (open_ >= ahead_ && !default_open_ && !std::exchange(starved_, true)) {
      ahead_ += 1 + ahead_ / 4;
    }
    return std::nullopt;
  }
  Candidate candidate = std::move(*next);
  ready_.erase(next);
  default_open_ = false;
  keep_binary(candidate.config, candidate.binary);
  return candidate;
}

void ProblemSearch::put_back(Candidate candidate) {
  default_open_ = default_open_ || candidate.config == default_config_;
  ready_.push_front(std::move(candidate));
}

std::vector<ProblemSearch::ResolvedTrial> ProblemSearch::observe(const Trial& trial, std::int64_t stored_id,
                                                                 const std::string& run_key) {
  --open_;
  ++done_;
  waiting_.erase(trial.config.text());
  starved_ = false;
  if (ready_.size() > kFirstAhead && ahead_ > kFirstAhead) {
    --ahead_;
  }
  default_open_ = default_open_ && trial.config != default_config_;
  const double median_us = trial.time ? trial.time->median_us : 0;
  if (trial.status == TrialStatus::ok) {
    // Of configurations with one and the same code one is enough among the finalists.
    if (trial.shared_trial == 0) {
      keep(trial.config, median_us, stored_id);
      if (trial.measure_ms > 0 && !trial.samples.empty()) {
        measured_[trial.config.text()].launch_s = trial.measure_ms / 1000 / static_cast<double>(trial.samples.size());
      }
    } else {
      measured_[trial.config.text()].trial = stored_id;
      rank_for_compiler(trial.config, median_us);
      default_us_ = trial.config == default_config_ ? median_us : default_us_;
    }
    why_no_default_ = trial.config == default_config_ ? "" : why_no_default_;
  } else if (trial.config == default_config_) {
    lose_default(trial.reason.empty() ? std::string(name_of(trial.status))
                                      : fmt::format("{}: {}", name_of(trial.status), trial.reason));
  }
  note_failure(trial);
  best_history_us_.push_back(best_us());
  Observation seen{trial.status, median_us};
  if (judge_ && trial.status == TrialStatus::ok && best() == trial.config) {
    judge_->set_fastest(trial.config, median_us);
  } else if (const auto slow =
                 judge_ && trial.status == TrialStatus::rejected && searched_.contains(trial.config.text())
                     ? judge_->cannot_win(trial.config)
                     : std::nullopt) {
    seen = {TrialStatus::ok, slow->expected_us};
  }
  if (searcher_) {
    searcher_->observe(bound_.space().indices_of(trial.config), seen);
  } else {
    recalled_.emplace_back(trial.config, seen);
  }
  std::vector<ResolvedTrial> settled;
  const auto original = originals_.find(run_key);
  if (original != originals_.end() && !original->second.stored) {
    original->second.stored.emplace(trial, stored_id);
    original->second.stored->first.samples.clear();
    for (const Candidate& candidate : original->second.waiting) {
      settled.push_back(share(candidate.config, candidate.binary, trial, stored_id));
    }
    original->second.waiting.clear();
  }
  return settled;
}

// A kernel, or a toolkit, at fault: the whole space would fail as the first configurations did.
void ProblemSearch::note_failure(const Trial& trial) {
  if (trial.status != TrialStatus::compile_failed || usable() > 0) {
    return;
  }
  if (trial.reason != alike_reason_) {
    alike_reason_ = trial.reason;
    alike_failures_ = 0;
  }
  if (++alike_failures_ == kHopelessAfter && done_ == kHopelessAfter) {
    hopeless_ = alike_reason_;
    spent_ = true;
  }
}

void ProblemSearch::discard(const Config& config) {
  const auto is_it = [&](const auto& ranked) { return ranked.second == config; };
  std::erase_if(ranking_, is_it);
  ++rankings_;
  for (auto& ranked : of_compiler_) {
    std::erase_if(ranked, is_it);
  }
  measured_.erase(config.text());
  if (nearest_ && nearest_->second == config) {
    nearest_.reset();
    for (const auto& [median_us, usable] : ranking_) {
      note_if_nearest(usable);
    }
  }
  if (config == default_config_) {
    lose_default("failed in the finals");
  }
}

int ProblemSearch::remaining() const noexcept {
  if (spent_) {
    return static_cast<int>(open_);
  }
  const int allowed = std::max(trials_ - done_, 0);
  if (only_first_ || options_.searcher == kNoSearcher || is_site(bound_.space().kernel)) {
    return std::min(allowed, static_cast<int>(first_.size() + open_));
  }
  if (!valid_) {
    return allowed;
  }
  const std::uint64_t known = known_.size() - open_;
  return std::min(allowed, static_cast<int>(*valid_ - std::min(*valid_, known)));
}

void ProblemSearch::keep(const Config& config, double median_us, std::int64_t trial) {
  ranking_.emplace(median_us, config);
  ++rankings_;
  rank_for_compiler(config, median_us);
  note_if_nearest(config);
  measured_[config.text()].trial = trial;
  if (config == default_config_) {
    default_us_ = median_us;
  }
}

void ProblemSearch::rank_for_compiler(const Config& config, double median_us) {
  if (compilers_ != nullptr) {
    of_compiler_[compilers_->index_of(config)].emplace(median_us, config);
  }
}

void ProblemSearch::note_if_nearest(const Config& usable) {
  std::vector<std::size_t> key = closeness(bound_.space(), usable);
  if (!nearest_ || key < nearest_->first) {
    nearest_.emplace(std::move(key), usable);
  }
}

// Binaries are kept for the fastest; those of others can be had from the cache again.
void ProblemSearch::keep_binary(const Config& config, const Binary& binary) {
  const auto most = static_cast<std::size_t>(finalists_) + 8;
  if (binaries_.size() > 2 * most) {
    std::set<std::string> needed{default_config_.text()};
    for (auto entry = ranking_.begin(); entry != ranking_.end() && needed.size() < most; ++entry) {
      needed.insert(entry->second.text());
    }
    std::erase_if(binaries_, [&](const auto& kept) { return !needed.contains(kept.first); });
  }
  binaries_[config.text()] = binary;
}

std::optional<Config> ProblemSearch::baseline() const {
  if (default_us_ > 0) {
    return default_config_;
  }
  // Before the default was measured nothing stands in for it.
  return why_no_default_.empty() || !nearest_ ? std::nullopt : std::optional(nearest_->second);
}

std::int64_t ProblemSearch::trial_of(const Config& config) const {
  const auto found = measured_.find(config.text());
  return found == measured_.end() ? 0 : found->second.trial;
}

std::optional<double> ProblemSearch::time_us(const Config& config) const {
  const auto ranked =
      std::find_if(ranking_.begin(), ranking_.end(), [&](const auto& entry) { return entry.second == config; });
  return ranked == ranking_.end() ? std::nullopt : std::optional(ranked->first);
}

double ProblemSearch::launch_s_of(const std::string& config) const {
  const auto found = measured_.find(config);
  if (found != measured_.end() && found->second.launch_s > 0) {
    return found->second.launch_s;
  }
  const auto ranked =
      std::find_if(ranking_.begin(), ranking_.end(), [&](const auto& entry) { return entry.second.text() == config; });
  return kLaunchOverheadSeconds + 1e-6 * (ranked != ranking_.end() ? ranked->first : default_us_);
}

std::vector<Config> ProblemSearch::found_finalists() const {
  std::vector<Config> chosen;
  const std::optional<Config> standard = baseline();
  const auto add_fastest = [&](int most) {
    for (const auto& [median_us, config] : ranking_) {
      if (static_cast<int>(chosen.size()) >= most) {
        break;
      }
      if (config != standard && std::find(chosen.begin(), chosen.end(), config) == chosen.end()) {
        chosen.push_back(config);
      }
    }
  };
  if (energy_) {
    add_fastest(std::max(std::min(finalists_, kFewestFastest), finalists_ - finalists_ / 2));
    add_thrifty(chosen, standard);
  }
  add_fastest(finalists_);
  add_of_each_compiler(chosen, standard);
  if (standard) {
    chosen.push_back(*standard);
  }
  return chosen;
}

// Asked for often between two changes of the ranking.
const std::vector<Config>& ProblemSearch::by_energy() const {
  if (thrifty_.first != rankings_) {
    std::multimap<double, const Config*> ordered;
    for (auto entry = ranking_.begin(); entry != ranking_.end() && entry->first <= kSlowestThrifty * best_us();
         ++entry) {
      if (const auto energy = energy_(entry->second, entry->first)) {
        ordered.emplace(*energy, &entry->second);
      }
    }
    thrifty_ = {rankings_, {}};
    for (const auto& [energy, config] : ordered) {
      thrifty_.second.push_back(*config);
    }
  }
  return thrifty_.second;
}

void ProblemSearch::add_thrifty(std::vector<Config>& chosen, const std::optional<Config>& baseline) const {
  for (const Config& config : by_energy()) {
    if (static_cast<int>(chosen.size()) >= finalists_) {
      break;
    }
    if (config != baseline && std::find(chosen.begin(), chosen.end(), config) == chosen.end()) {
      chosen.push_back(config);
    }
  }
}

// Next to the best, so that they are left out last where there is little time.
std::vector<Config> ProblemSearch::finalist_configs() const {
  std::vector<Config> chosen = found_finalists();
  const std::optional<Config> standard = baseline();
  for (const Config& winner : standing_) {
    if (winner == standard || !measured_.contains(winner.text())) {
      continue;
    }
    const auto found = std::find(chosen.begin(), chosen.end(), winner);
    if (found == chosen.end()) {
      chosen.insert(chosen.begin() + std::min<std::ptrdiff_t>(1, std::ssize(chosen)), winner);
    } else if (found - chosen.begin() > 1) {
      std::rotate(chosen.begin() + 1, found, found + 1);
    }
  }
  return chosen;
}

// What is used where the winner's compiler is missing is decided in the same finals.
void ProblemSearch::add_of_each_compiler(std::vector<Config>& chosen, const std::optional<Config>& baseline) const {
  const auto add = [&](const Config& config) {
    if (config != baseline && std::find(chosen.begin(), chosen.end(), config) == chosen.end()) {
      chosen.push_back(config);
    }
  };
  for (std::size_t compiler = 0; compiler < of_compiler_.size(); ++compiler) {
    if (of_compiler_[compiler].empty()) {
      continue;
    }
    add(of_compiler_[compiler].begin()->second);
    const Config standard = compilers_->with(compilers_->without(default_config_), compiler);
    if (measured_.contains(standard.text())) {
      add(standard);
    }
  }
}

std::vector<std::pair<Config, std::optional<Binary>>> ProblemSearch::finalists() const {
  std::vector<std::pair<Config, std::optional<Binary>>> finalists;
  for (Config& config : finalist_configs()) {
    const auto kept = binaries_.find(config.text());
    finalists.emplace_back(std::move(config), kept == binaries_.end() ? std::nullopt : std::optional(kept->second));
  }
  return finalists;
}

std::string ProblemSearch::finalists_key() const {
  std::string key;
  for (const Config& config : found_finalists()) {
    key += config.text() + "\n";
  }
  return key;
}

std::vector<std::pair<Config, double>> ProblemSearch::times_us() const {
  std::vector<std::pair<Config, double>> times;
  for (const auto& [time_us, config] : ranking_) {
    times.emplace_back(config, time_us);
  }
  return times;
}

double ProblemSearch::best_at_half_us() const noexcept {
  return best_history_us_.empty() ? 0 : best_history_us_[(best_history_us_.size() - 1) / 2];
}

}  // namespace pascaline
