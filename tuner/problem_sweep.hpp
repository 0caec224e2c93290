#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "db/store.hpp"
#include "runtime/gpu/compile.hpp"
#include "runtime/gpu/device.hpp"
#include "tuner/compile_pool.hpp"
#include "tuner/searcher.hpp"
#include "tuner/sweep.hpp"
#include "tuner/trial_runner.hpp"

namespace pascaline {

/// What all problems of a sweep share.
struct Workshop {
  const Space& space;
  const SweepOptions& options;
  const SweepEvents& events;
  const std::atomic<bool>& stop;
  Store& store;
  Device& device;
  TargetPlan plan;
  KernelSource source;
  CompilePool& pool;
  std::int64_t session = 0;
  ContextIds context{};
  std::uint64_t next_id = 1;
};

/// Tunes one problem.
class ProblemSweep {
 public:
  using Clock = std::chrono::steady_clock;

  /// Both references must outlive it.
  ProblemSweep(Workshop& shop, const SweepProblem& wanted, Clock::time_point deadline);

  /// Searches and decides, adding to the summary; `index` and `count` are for the events.
  void run(SweepSummary& summary, std::size_t index, std::size_t count);

 private:
  [[nodiscard]] bool make_runner();
  void recall(SweepSummary& summary);
  [[nodiscard]] bool belongs(const Config& config) const;
  void keep(const Config& config, double median_us);
  [[nodiscard]] CompileRequest request(const Config& config) const;
  [[nodiscard]] std::optional<Binary> reference();
  [[nodiscard]] Compiled compile_now(const CompileRequest& request);
  void require_reference() const;
  void submit(const Config& config);
  [[nodiscard]] bool finished_before(SweepSummary& summary);
  void measure_default(SweepSummary& summary);
  void retry_default(SweepSummary& summary);
  [[nodiscard]] bool out_of_budget() const { return done_ >= shop_.options.trials || Clock::now() >= deadline_; }
  void fill_pool();
  bool step(SweepSummary& summary);
  void attempt(const Config& config, const Compiled& compiled, SweepSummary& summary);
  void store_sensors();
  void decide();
  void store_decision(const FinalsResult& result);

  Workshop& shop_;
  const SweepProblem& wanted_;
  Clock::time_point deadline_;
  BoundSpace bound_;
  Config standard_;
  ContextIds context_;
  std::unique_ptr<Searcher> searcher_;
  std::string no_reference_;  ///< why the naive kernel cannot be used, empty if it can or is not needed
  Climate climate_;
  std::optional<TrialRunner> runner_;
  std::set<std::string> known_;
  std::map<std::uint64_t, Config> in_flight_;
  std::multimap<double, Config> ranking_;
  double best_us_ = 0;
  double default_us_ = 0;
  bool default_crashed_ = false;  ///< in an earlier sweep
  int done_ = 0;
  bool spent_ = false;
};

}  // namespace pascaline
