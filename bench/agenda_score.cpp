// Shows how soon a sweep makes a model faster, on a virtual clock and with the sweep's own code: on a card that this
// machine may not have, where the static model estimates each configuration's time and a random factor perturbs it, or
// of a recorded sweep, compared with the best order that there is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/sweep/sweep_work.hpp"
#include "core/util/counted.hpp"
#include "core/util/draft_folder.hpp"
#include "core/util/duration.hpp"
#include "core/util/paths.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/simulation/recorded_sweep.hpp"
#include "tuner/simulation/simulation.hpp"
#include "tuner/static_model/static_model.hpp"

namespace pascaline {
namespace {

struct Card {
  DeviceRow device;
  double clock_mhz;
  double memory_gbps;
  double processor_factor;  // processor time, relative to a current server's
};

DeviceRow cuda_row(const std::string& name, const std::string& capability, std::int64_t sm_count, std::uint64_t gib) {
  return {"cuda", name, capability, sm_count, gib << 30U, {}};
}

const std::map<std::string, Card>& cards() {
  static const std::map<std::string, Card> known{
      {"mx330", {cuda_row("NVIDIA GeForce MX330", "6.1", 3, 2), 1594, 56, 2.5}},
      {"gtx1060", {cuda_row("NVIDIA GeForce GTX 1060 6GB", "6.1", 10, 6), 1709, 192, 1.5}},
      {"p40", {cuda_row("Tesla P40", "6.1", 30, 24), 1531, 346, 1}},
      {"server", {cuda_row("NVIDIA H200", "9.0", 132, 140), 1980, 4800, 1}},
  };
  return known;
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  std::ranges::transform(cards(), std::back_inserter(names), [](const auto& entry) { return entry.first; });
  return names;
}

/// A card whose times are the static model's estimates, each times a random factor fixed by the configuration.
class EstimatedWorld final : public SimulatedWorld {
 public:
  EstimatedWorld(const SweepWork& work, const Card& card, double off) : card_(card), off_(off) {
    const DeviceInfo info = device_info(card.device);
    const DeviceLimits& limits = info.limits;
    DeviceRates rates = typical_rates(info.architecture, limits).value();
    rates.clock_mhz = card.clock_mhz;
    rates.memory_gbps = card.memory_gbps;
    for (const SweepProblem& wanted : work.problems) {
      const auto space = std::ranges::find(work.spaces, wanted.problem.kernel, &Space::kernel);
      auto& bound = bound_.emplace_back(std::make_unique<BoundSpace>(*space, wanted.problem, limits));
      models_.emplace(wanted.problem.text(), std::make_pair(bound.get(), StaticModel(*bound, rates)));
    }
  }

  [[nodiscard]] double compile_s(const CompileRequest& request) const override {
    return card_.processor_factor * (request.function.starts_with("matmul") ? 1.2 : 0.5);
  }
  // Fitted to what an H200 took for the shapes of a 2B and of an 8B model: mostly processor work and launches.
  [[nodiscard]] double prepare_s(const Problem& problem) const override {
    return card_.processor_factor * (0.03 + 6e-10 * models_.at(problem.text()).first->bytes()) +
           2e-6 * untuned_us(problem);
  }
  [[nodiscard]] double verify_s(const Problem& problem, const Config& config) const override {
    return card_.processor_factor * 0.005 + 2e-6 * time_us(problem, config);
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override {
    return {.time_us = time_us(problem, config)};
  }
  [[nodiscard]] double time_us(const Problem& problem, const Config& config) const {
    const auto& [bound, model] = models_.at(problem.text());
    const auto estimated_us = model.time_us(bound->space().indices_of(config));
    if (!estimated_us || !std::isfinite(*estimated_us)) {
      return 1e6;
    }
    return *estimated_us * std::exp(off_ * normal_of(problem.text() + config.text()));
  }
  [[nodiscard]] double untuned_us(const Problem& problem) const {
    return time_us(problem, untuned_config(*models_.at(problem.text()).first));
  }

 private:
  const Card& card_;
  double off_;
  std::vector<std::unique_ptr<BoundSpace>> bound_;
  std::map<std::string, std::pair<const BoundSpace*, StaticModel>> models_;
};

/// The model's speedup over time, updated at each winner.
class Curve {
 public:
  Curve(const SweepWork& work, const EstimatedWorld& world) : world_(world) {
    for (const SweepProblem& wanted : work.problems) {
      if (!wanted.between) {
        shares_us_[wanted.problem.text()] = {wanted.count, world.untuned_us(wanted.problem)};
      }
    }
    untuned_us_ = now_us();
  }
  void decide(double at_s, const Problem& problem, const Config& winner) {
    const auto found = shares_us_.find(problem.text());
    if (found == shares_us_.end()) {
      return;
    }
    found->second.second = world_.time_us(problem, winner);
    decided_.insert(problem.text());
    points_.emplace_back(at_s, untuned_us_ / now_us());
  }
  [[nodiscard]] double speedup_at(double seconds) const {
    double speedup = 1;
    for (const auto& [at_s, value] : points_) {
      speedup = at_s <= seconds ? value : speedup;
    }
    return speedup;
  }
  [[nodiscard]] std::size_t decided() const { return decided_.size(); }
  [[nodiscard]] std::size_t problems() const { return shares_us_.size(); }

 private:
  [[nodiscard]] double now_us() const {
    double sum_us = 0;
    for (const auto& [problem, share] : shares_us_) {
      sum_us += share.first * share.second;
    }
    return sum_us;
  }

  const EstimatedWorld& world_;
  std::map<std::string, std::pair<double, double>> shares_us_;  // calls and time
  std::set<std::string> decided_;
  std::vector<std::pair<double, double>> points_;
  double untuned_us_ = 0;
};

struct Wanted {
  SweepCommandOptions work;
  std::string card = "mx330";
  std::vector<double> limits_s;
  double off = 0.3;
  std::size_t jobs = 4;
  std::string searcher = "auto";
  bool talks = false;
  std::string database;
  std::string record;
  std::string recording;
  std::optional<double> correlation{};
};

void write_recording(const SweepRecording& recording, const std::string& file) {
  write_file_atomically(file, json_of(recording));
  std::size_t candidates = 0;
  for (const RecordedSearch& search : recording.searches) {
    candidates += search.candidates.size();
  }
  fmt::print("{}: {} candidates of {} problems, {}\n", file, candidates, recording.searches.size(), recording.origin);
}

void simulate(const Wanted& wanted) {
  const Card& card = cards().at(wanted.card);
  const double budget_s = wanted.limits_s.empty() ? 300 : wanted.limits_s.front();
  const SweepWork work = work_of(wanted.work, "");
  const EstimatedWorld world(work, card, wanted.off);
  Simulation simulation(world, {device_info(card.device)});
  Curve curve(work, world);
  const DraftFolder folder(temporary_files() / "pascaline-agenda");
  SweepOptions options;
  options.devices = {"cuda:0"};
  options.files.kernels = data_folder("kernel_templates");
  options.files.spaces = data_folder("search_spaces");
  options.files.cache = folder.path();
  options.database = folder.path() / "simulated.db";
  options.search.searcher = wanted.searcher;
  options.trials = wanted.work.sweep.trials;
  options.record.trials_given = options.trials < kUnlimitedTrials;
  options.budget_s = budget_s;
  options.compile.jobs = wanted.jobs;
  SweepEvents events;
  events.winner = [&](const std::string&, const SweepProblem& problem, const FinalsResult& result, int) {
    if (wanted.talks) {
      fmt::print("{:8.1f}  decided {}\n", simulation.clock().elapsed_s(), problem.problem.text());
    }
    curve.decide(simulation.clock().elapsed_s(), problem.problem, result.trials[result.winner].config);
  };
  if (wanted.talks) {
    events.note = [&](const std::string& text) { fmt::print("{:8.1f}  {}\n", simulation.clock().elapsed_s(), text); };
  }
  const std::atomic<bool> stop{false};
  const SweepSummary summary = run_sweep(work.spaces, work.problems, options, events, stop, simulation.services());
  fmt::print(
      "{}, {} compile workers, {}: {} trials, {} of {} problems have a winner; device {:.0f} % and compilers {:.0f} % "
      "busy\n    time  model speedup\n",
      card.device.name, wanted.jobs, duration_text(budget_s), summary.trials, curve.decided(), curve.problems(),
      100 * summary.times.busy_s / summary.times.wall_s,
      100 * summary.times.compile_s / (summary.times.wall_s * static_cast<double>(wanted.jobs)));
  for (const double part : {0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0}) {
    fmt::print("{:>8.0f} s  {:.3f}\n", part * budget_s, curve.speedup_at(part * budget_s));
  }
  if (!wanted.record.empty()) {
    SweepRecording recording = recording_of(Store(options.database, OpenMode::read_only), options.files.spaces);
    recording.origin = fmt::format("simulated: the static model's estimates for {}, perturbed", card.device.name);
    for (RecordedSearch& search : recording.searches) {  // a simulated trial begins at the time of this machine
      search.preparation_s = world.prepare_s(
          std::ranges::find(work.problems, search.problem, [](const auto& of) { return of.problem.text(); })->problem);
    }
    write_recording(recording, wanted.record);
  }
}

// Where the area is that the sweep lacks: by problem, and by the part before its first decision and after it.
void print_losses(const SweepRecording& recording, const std::vector<TimedDecision>& sweep,
                  const std::vector<TimedDecision>& best, double limit_s, double whole) {
  const auto first_of = [](const std::vector<TimedDecision>& decisions, std::size_t search, double none_s) {
    const auto first = std::ranges::find(decisions, search, &TimedDecision::search);
    return first == decisions.end() ? none_s : first->at_s;
  };
  struct Loss {
    std::size_t search;
    double all, before;
  };
  std::vector<Loss> losses;
  double before = 0;
  double after = 0;
  for (std::size_t i = 0; i < recording.searches.size(); ++i) {
    const double first_s = std::min(limit_s, first_of(sweep, i, limit_s));
    const double all = saved_area(recording, best, limit_s, i) - saved_area(recording, sweep, limit_s, i);
    losses.push_back({i, all / whole, saved_area(recording, best, first_s, i) / whole});
    before += losses.back().before;
    after += losses.back().all - losses.back().before;
  }
  fmt::print(
      "  lost before the first decisions {:.3f}, after them {:.3f}\n   lost  before  first decision, best  problem\n",
      before, after);
  std::ranges::sort(losses, std::greater(), &Loss::all);
  for (std::size_t i = 0; i < std::min<std::size_t>(8, losses.size()); ++i) {
    const auto& [search, all, before_first] = losses[i];
    fmt::print("  {:.3f}   {:.3f}  {:>12.1f} s {:>7.1f} s  {}\n", all, before_first, first_of(sweep, search, limit_s),
               first_of(best, search, limit_s), recording.searches[search].problem);
  }
}

void score(const Wanted& wanted) {
  SweepRecording recording = read_recording(wanted.recording);
  if (wanted.correlation) {
    perturb(recording, *wanted.correlation);
  }
  fmt::print("{}, {}, {} compile workers: estimates and times of the defaults have rank correlation {:.2f}\n",
             recording.origin, counted(recording.searches.size(), "problem"), recording.workers,
             estimates_correlation(recording));
  for (const double limit_s : wanted.limits_s.empty() ? std::vector<double>{60, 600, 28800} : wanted.limits_s) {
    const std::vector<TimedDecision> best = clairvoyant_order(recording, limit_s);
    const PlayedSweep sweep = play(recording, limit_s);
    const double whole = saved_area(recording, best, limit_s);
    fmt::print(
        "{:>7}: score {:.3f}, cheapest problems first {:.3f}; {} trials, {:.1f} s prepared, {:.1f} s in finals, {:.1f} "
        "s idle\n",
        duration_text(limit_s), saved_area(recording, sweep.decisions, limit_s) / whole,
        saved_area(recording, cheapest_first_order(recording, limit_s), limit_s) / whole, sweep.summary.trials,
        sweep.summary.times.preparing_s, sweep.summary.times.finals_s,
        sweep.summary.times.wall_s - sweep.summary.times.busy_s);
    if (wanted.talks) {
      print_losses(recording, sweep.decisions, best, limit_s, whole);
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app(
      "Shows how soon a sweep makes a model faster, on a virtual clock:\n"
      "  --workload FILE   on a card that this machine may not have, by the static model\n"
      "  --recording FILE  of a recorded sweep: the area under the curve of time saved, divided by that of an order\n"
      "                    which knows every outcome");
  Wanted wanted;
  wanted.work.sweep.trials = kUnlimitedTrials;
  auto* workload = app.add_option("--workload", wanted.work.workload, "File of search_spaces/workloads");
  app.add_option("--card", wanted.card, fmt::format("Card to simulate: {}", fmt::join(card_names(), ", ")))
      ->check(CLI::IsMember(card_names()).description(""))
      ->needs(workload)
      ->capture_default_str();
  app.add_option("--off", wanted.off, "Standard deviation of ln(simulated time / estimated time)")
      ->needs(workload)
      ->capture_default_str();
  app.add_option("--jobs", wanted.jobs, "Compile workers")->needs(workload)->capture_default_str();
  app.add_option("--searcher", wanted.searcher, "Name of a searcher")->needs(workload)->capture_default_str();
  app.add_option("--trials", wanted.work.sweep.trials, "Trials of each problem (default: no limit)")->needs(workload);
  auto* database = app.add_option("--database", wanted.database, "Database whose last sweep is recorded");
  app.add_option("--record", wanted.record, "File to write the sweep to, to be played with --recording");
  auto* recording = app.add_option("--recording", wanted.recording, "File of --record, plain or packed with gzip");
  app.add_option("--rank-correlation", wanted.correlation,
                 "Perturb the recorded times until estimates and defaults correlate no more than this")
      ->needs(recording);
  app.add_option("--budget", wanted.limits_s,
                 "Seconds of the sweep (default: 300, or of a recording 60 600 28800, one after the other)");
  app.add_flag("--notes", wanted.talks, "Print the notes of the sweep, or of a recording which problems cost most");
  workload->excludes(database)->excludes(recording);
  database->excludes(recording);
  CLI11_PARSE(app, argc, argv);

  if (!wanted.recording.empty()) {
    score(wanted);
  } else if (!wanted.work.workload.empty()) {
    simulate(wanted);
  } else if (!wanted.database.empty() && !wanted.record.empty()) {
    write_recording(recording_of(Store(wanted.database, OpenMode::read_only), data_folder("search_spaces")),
                    wanted.record);
  } else {
    fmt::print(stderr, "agenda_score: give --workload, --recording, or --database with --record (see --help)\n");
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace pascaline

int main(int argc, char** argv) {
  try {
    return pascaline::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "agenda_score: {}\n", error.what());
    return 1;
  }
}
