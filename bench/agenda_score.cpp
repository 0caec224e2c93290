// Simulates a sweep of a workload on a card that this machine may not have, and shows how soon the model gets faster.
// The static model estimates each configuration's time; a random factor perturbs it. Compilers and device run on a
// virtual clock; the sweep's code is the real one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/sweep/sweep_work.hpp"
#include "core/util/duration.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/simulation/simulation.hpp"
#include "tuner/static_model/static_model.hpp"

namespace pascaline {
namespace {

struct Card {
  std::string name;
  std::int64_t sm_count;
  double clock_mhz;
  double memory_gbps;
  std::uint64_t memory_bytes;
  double compile_factor;  // seconds that a variant takes, relative to a current server's processor
};

const std::map<std::string, Card>& cards() {
  static const std::map<std::string, Card> known{
      {"mx330", {"NVIDIA GeForce MX330", 3, 1594, 56, std::uint64_t{2} << 30U, 2.5}},
      {"gtx1060", {"NVIDIA GeForce GTX 1060 6GB", 10, 1709, 192, std::uint64_t{6} << 30U, 1.5}},
      {"p40", {"Tesla P40", 30, 1531, 346, std::uint64_t{24} << 30U, 1}},
  };
  return known;
}

DeviceInfo device_info(const Card& card) {
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.id = "cuda:0";
  info.name = card.name;
  info.architecture = "sm_61";
  info.uuid = "GPU-simulated";
  info.driver_version = "580.82.07 (CUDA 13.0)";
  info.memory_bytes = card.memory_bytes;
  info.limits.sm_count = card.sm_count;
  return info;
}

/// A card whose times are the static model's estimates, each times a random factor fixed by the configuration.
class EstimatedWorld final : public SimulatedWorld {
 public:
  EstimatedWorld(const SweepWork& work, const Card& card, double off) : card_(card), off_(off) {
    DeviceLimits limits;
    limits.sm_count = card.sm_count;
    DeviceRates rates = typical_rates("sm_61", limits).value();
    rates.clock_mhz = card.clock_mhz;
    rates.memory_gbps = card.memory_gbps;
    for (const SweepProblem& wanted : work.problems) {
      const auto space = std::ranges::find(work.spaces, wanted.problem.kernel, &Space::kernel);
      auto& bound = bound_.emplace_back(std::make_unique<BoundSpace>(*space, wanted.problem, limits));
      models_.emplace(wanted.problem.text(), std::make_pair(bound.get(), StaticModel(*bound, rates)));
    }
  }

  [[nodiscard]] double compile_s(const CompileRequest& request) const override {
    return card_.compile_factor * (request.function.starts_with("matmul") ? 1.2 : 0.5);
  }
  [[nodiscard]] double prepare_s(const Problem& problem) const override {
    return 0.1 + 3e-9 * models_.at(problem.text()).first->bytes() + 2e-12 * models_.at(problem.text()).first->flops();
  }
  [[nodiscard]] double verify_s(const Problem& problem, const Config& config) const override {
    return 0.02 + 2e-6 * time_us(problem, config);
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
    const std::string digits = hash_hex(problem.text() + config.text());
    const auto uniform = [&](std::size_t at) {
      return (static_cast<double>(std::stoull(digits.substr(at, 8), nullptr, 16)) + 1) / 4294967297.0;
    };
    const double normal = std::sqrt(-2 * std::log(uniform(0))) * std::cos(2 * std::numbers::pi * uniform(8));
    return *estimated_us * std::exp(off_ * normal);
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

int run(int argc, char** argv) {
  CLI::App app("Simulates sweeps of a workload, and shows how soon they make the model faster");
  SweepCommandOptions wanted;
  std::string card_name = "mx330";
  double budget_s = 300;
  double off = 0.3;
  std::size_t jobs = 4;
  std::string searcher = "auto";
  bool talks = false;
  app.add_option("--workload", wanted.workload, "A file of search_spaces/workloads")->required();
  app.add_option("--card", card_name, "mx330, gtx1060 or p40")->capture_default_str();
  app.add_option("--budget", budget_s, "Seconds of the simulated sweep")->capture_default_str();
  app.add_option("--off", off, "Standard deviation of ln(simulated time / estimated time)")->capture_default_str();
  app.add_option("--jobs", jobs, "Compile workers")->capture_default_str();
  app.add_option("--searcher", searcher, "Name of a searcher")->capture_default_str();
  app.add_flag("--notes", talks, "Print the notes of the sweep");
  CLI11_PARSE(app, argc, argv);

  const Card& card = cards().at(card_name);
  const SweepWork work = work_of(wanted, "");
  const EstimatedWorld world(work, card, off);
  Simulation simulation(world, {device_info(card)});
  Curve curve(work, world);

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("pascaline-agenda-{}", ::getpid());
  std::filesystem::create_directories(folder);
  SweepOptions options;
  options.devices = {"cuda:0"};
  options.kernels = data_folder("kernel_templates");
  options.spaces = data_folder("search_spaces");
  options.cache = folder;
  options.database = folder / "simulated.db";
  options.searcher = searcher;
  options.trials = kUnlimitedTrials;
  options.trials_given = false;
  options.budget_s = budget_s;
  options.jobs = jobs;
  SweepEvents events;
  events.winner = [&](const std::string&, const SweepProblem& problem, const FinalsResult& result, int) {
    if (talks) {
      fmt::print("{:8.1f}  decided {}\n", simulation.clock().elapsed_s(), problem.problem.text());
    }
    curve.decide(simulation.clock().elapsed_s(), problem.problem, result.trials[result.winner].config);
  };
  if (talks) {
    events.note = [&](const std::string& text) { fmt::print("{:8.1f}  {}\n", simulation.clock().elapsed_s(), text); };
  }
  const std::atomic<bool> stop{false};
  const SweepSummary summary = run_sweep(work.spaces, work.problems, options, events, stop, simulation.services());
  std::filesystem::remove_all(folder);

  fmt::print("{}, {} compile workers, {}: {} trials, {} of {} problems have a winner\n    time  model speedup\n",
             card.name, jobs, duration_text(budget_s), summary.trials, curve.decided(), curve.problems());
  for (const double part : {0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0}) {
    fmt::print("{:>8.0f} s  {:.3f}\n", part * budget_s, curve.speedup_at(part * budget_s));
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
