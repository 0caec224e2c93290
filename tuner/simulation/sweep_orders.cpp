#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "tuner/simulation/recorded_sweep.hpp"
#include "tuner/simulation/simulated_world.hpp"

namespace pascaline {
namespace {

constexpr double kOpenSeconds = 1;  // as SimulatedWorld::open_s

// How far a search has come.
struct Progress {
  std::size_t next = 0;   // of its candidates
  double decided_us = 0;  // the default's or the last winner's time
  double best_us = 0;     // of what was tried
};

// One device and its compile workers.
struct Machine {
  std::vector<double> free_s;  // of each worker: a heap, the earliest first
  double now_s = kOpenSeconds;
  std::optional<std::size_t> search{};  // that the device is prepared for

  // Seconds when a worker will have built it.
  double build(double seconds) {
    std::ranges::pop_heap(free_s, std::greater());
    const double ready_s = free_s.back() += seconds;
    std::ranges::push_heap(free_s, std::greater());
    return ready_s;
  }
};

// A sweep that follows an order.
class OrderedSweep {
 public:
  explicit OrderedSweep(const SweepRecording& recording)
      : recording_(recording), progress_(recording.searches.size()), machine_{std::vector(recording.workers, 0.0)} {
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      progress_[i].decided_us = progress_[i].best_us = recording.searches[i].candidates.front().time_us;
    }
  }

  // Calls `visit(until, end_s, saved_us)` for every number of further candidates of a search.
  template <typename Visit>
  void for_each_action(std::size_t search, const Visit& visit) const {
    const RecordedSearch& of = recording_.searches[search];
    Progress progress = progress_[search];
    Machine machine = machine_;
    begin_turn(search, progress, machine);
    while (progress.next < of.candidates.size()) {
      try_next(of, progress, machine);
      visit(progress.next, machine.now_s + finals_s(of, progress), of.calls * (progress.decided_us - progress.best_us));
    }
  }

  void act(const OrderedAction& action) {
    const std::size_t search = action.search;
    const RecordedSearch& of = recording_.searches[search];
    Progress& progress = progress_[search];
    begin_turn(search, progress, machine_);
    while (progress.next < action.until) {
      try_next(of, progress, machine_);
    }
    machine_.now_s += finals_s(of, progress);
    progress.decided_us = progress.best_us;
    decisions_.push_back({machine_.now_s, search, progress.decided_us});
  }

  [[nodiscard]] double now_s() const noexcept { return machine_.now_s; }
  [[nodiscard]] std::vector<TimedDecision> decisions() && { return std::move(decisions_); }

 private:
  void begin_turn(std::size_t search, const Progress& progress, Machine& machine) const {
    const RecordedSearch& of = recording_.searches[search];
    if (progress.next == 0) {  // the reference, which takes as long as the default
      machine.now_s = std::max(machine.now_s, machine.build(of.candidates.front().build_s));
    }
    if (machine.search != search) {
      machine.now_s += of.preparation_s;
      machine.search = search;
    }
  }

  static void try_next(const RecordedSearch& of, Progress& progress, Machine& machine) {
    const RecordedCandidate& candidate = of.candidates[progress.next];
    const double built_s = machine.build(candidate.build_s);
    if (candidate.trial_s() > 0) {
      machine.now_s = std::max(machine.now_s, built_s) + candidate.trial_s();
    }
    progress.best_us = candidate.usable() ? std::min(progress.best_us, candidate.time_us) : progress.best_us;
    ++progress.next;
  }

  // The fewest rounds that decide, of the best and the default: a sweep cuts its finals down to these.
  static double finals_s(const RecordedSearch& of, const Progress& progress) {
    const double once_us = of.candidates.front().time_us + progress.best_us;
    return 2 * of.finalist_s + 1e-6 * kMinFinalsRounds * FinalsOptions{}.launches * once_us;
  }

  const SweepRecording& recording_;
  std::vector<Progress> progress_;
  Machine machine_;
  std::vector<TimedDecision> decisions_;
};

}  // namespace

std::vector<TimedDecision> carry_out(const SweepRecording& recording, const std::vector<OrderedAction>& actions) {
  OrderedSweep sweep(recording);
  for (const OrderedAction& action : actions) {
    sweep.act(action);
  }
  return std::move(sweep).decisions();
}

std::vector<TimedDecision> clairvoyant_order(const SweepRecording& recording, double limit_s) {
  OrderedSweep sweep(recording);
  for (;;) {
    OrderedAction best;
    double best_rate = 0;
    for (std::size_t i = 0; i < recording.searches.size(); ++i) {
      sweep.for_each_action(i, [&](std::size_t until, double end_s, double saved_us) {
        const double rate = saved_us / std::max(end_s - sweep.now_s(), 1e-9);
        if (end_s <= limit_s && rate > best_rate) {
          best = {i, until};
          best_rate = rate;
        }
      });
    }
    if (best.until == 0) {
      return std::move(sweep).decisions();
    }
    sweep.act(best);
  }
}

std::vector<TimedDecision> cheapest_first_order(const SweepRecording& recording, double limit_s) {
  std::vector<std::size_t> order(recording.searches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return recording.searches[i].candidates.front().time_us; });
  OrderedSweep sweep(recording);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double share_s = (limit_s - sweep.now_s()) / static_cast<double>(order.size() - i);
    std::size_t until = 0;
    sweep.for_each_action(order[i], [&](std::size_t candidates, double end_s, double /*saved_us*/) {
      until = until == 0 || end_s <= sweep.now_s() + share_s ? candidates : until;  // the default in any case
    });
    sweep.act({order[i], until});
  }
  return std::move(sweep).decisions();
}

}  // namespace pascaline
