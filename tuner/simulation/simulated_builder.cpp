#include "tuner/simulation/simulated_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "tuner/simulation/simulated_clock.hpp"

namespace pascaline {

void SimulatedBuilder::submit(std::uint64_t id, CompileRequest request) {
  queue_.push_back({id, std::move(request), clock_.now()});
  start_jobs();
}

void SimulatedBuilder::start_jobs() {
  for (Worker& worker : workers_) {
    if (worker.job || queue_.empty()) {
      continue;
    }
    Job job = std::move(queue_.front());
    queue_.pop_front();
    const double limit_s = std::chrono::duration<double>(options_.deadline).count();
    const double compile_s = world_.compile_s(job.request);
    worker.times_out = compile_s > limit_s;
    worker.ends_at = std::max(worker.ends_at, job.submitted) + clock_seconds(std::min(compile_s, limit_s));
    worker.job = std::move(job);
  }
}

std::optional<Compiled> SimulatedBuilder::take() {
  for (Worker& worker : workers_) {
    if (worker.job && worker.ends_at <= clock_.now()) {
      Compiled compiled = result_of(worker);
      worker.job.reset();
      worker.lost.clear();
      start_jobs();
      return compiled;
    }
  }
  return std::nullopt;
}

Compiled SimulatedBuilder::result_of(const Worker& worker) const {
  const CompileRequest& request = worker.job->request;
  Compiled compiled;
  compiled.id = worker.job->id;
  compiled.result.reason = !worker.lost.empty() ? worker.lost
                           : worker.times_out   ? fmt::format("the compiler did not finish within {} s",
                                                              std::chrono::duration<double>(options_.deadline).count())
                                                : world_.compile_failure(request);
  compiled.result.ok = compiled.result.reason.empty();
  compiled.result.crashed = !worker.lost.empty() || (!worker.times_out && world_.compiler_crashes(request));
  compiled.status = compiled.result.crashed ? TrialStatus::crashed
                    : worker.times_out      ? TrialStatus::timed_out
                    : !compiled.result.ok   ? TrialStatus::compile_failed
                                            : TrialStatus::ok;
  Binary& binary = compiled.result.binary;
  binary.kind = BinaryKind::host_object;  // no machine code to read
  binary.target = request.architecture;
  binary.function = request.function;
  binary.compile_ms = 1000 * world_.compile_s(request);
  binary.code =
      fmt::format("{} {} {}", fmt::join(request.defines, " "), fmt::join(request.options, " "), request.compiler);
  return compiled;
}

void SimulatedBuilder::lose_workers(const std::string& how) {
  for (Worker& worker : workers_) {
    if (worker.job) {
      worker.lost = "the compiler crashed: " + how;
      worker.ends_at = std::min(worker.ends_at, clock_.now());
    }
  }
}

std::size_t SimulatedBuilder::busy() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](const Worker& worker) { return worker.job.has_value(); }));
}

std::size_t SimulatedBuilder::pending() const noexcept { return queue_.size() + busy(); }

SweepClock::TimePoint SimulatedBuilder::wakes_at() const {
  SweepClock::TimePoint first = SweepClock::TimePoint::max();
  for (const Worker& worker : workers_) {
    first = worker.job ? std::min(first, worker.ends_at) : first;
  }
  return first;
}

}  // namespace pascaline
