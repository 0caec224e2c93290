#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tuner/compile/builder.hpp"
#include "tuner/compile/compile_pool.hpp"
#include "tuner/simulation/simulated_world.hpp"

namespace pascaline {

/// Compile workers of a simulated world, as many as the options say.
class SimulatedBuilder final : public Builder {
 public:
  /// The world and the clock must outlive it.
  SimulatedBuilder(const CompilePoolOptions& options, const SimulatedWorld& world, const SweepClock& clock)
      : options_(options), world_(world), clock_(clock), workers_(options.workers) {}

  void submit(std::uint64_t id, CompileRequest request) override;
  [[nodiscard]] std::optional<Compiled> take() override;
  [[nodiscard]] std::size_t pending() const noexcept override;
  [[nodiscard]] std::size_t workers() const noexcept override { return workers_.size(); }
  [[nodiscard]] std::size_t busy() const noexcept override;
  [[nodiscard]] std::vector<pollfd> wakeups() const override { return {}; }
  [[nodiscard]] SweepClock::TimePoint wakes_at() const override;

  /// Its workers end now, each with the compilation in its hands, and others take their places.
  void lose_workers(const std::string& how = "ended by signal 9");

 private:
  struct Job {
    std::uint64_t id = 0;
    CompileRequest request;
    SweepClock::TimePoint submitted;
  };
  struct Worker {
    std::optional<Job> job{};
    SweepClock::TimePoint ends_at{};  ///< its job, or the last one
    bool times_out = false;
    std::string lost{};  ///< how it ended; empty: it works
  };

  void start_jobs();
  [[nodiscard]] Compiled result_of(const Worker& worker) const;

  CompilePoolOptions options_;
  const SimulatedWorld& world_;
  const SweepClock& clock_;
  std::vector<Worker> workers_;
  std::deque<Job> queue_;
};

}  // namespace pascaline
