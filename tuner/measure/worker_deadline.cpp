#include "tuner/measure/worker_deadline.hpp"

#include <algorithm>
#include <utility>

namespace pascaline {
namespace {

constexpr double kStartLimitSeconds = 180;    // the driver's start-up, with a cold disk
constexpr double kLoadLimitSeconds = 180;     // the driver translating PTX
constexpr double kInputsLimitSeconds = 1800;  // a float64 reference on a card with few float64 units
constexpr double kCheckLimitSeconds = 300;
constexpr double kGraceSeconds = 10;
constexpr double kMinLaunchLimitSeconds = 2;
constexpr double kLaunchFactor = 1000;  // a launch that takes that many times the best is of no interest
constexpr double kAbsenceSeconds = 2;

std::chrono::steady_clock::duration steady_seconds(double value) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(value));
}

}  // namespace

void WorkerDeadline::allow(double limit_s) {
  allowed_s_ = limit_s;
  at_ = Clock::now() + steady_seconds(limit_s);
  paused_until_ = at_ + steady_seconds(1.5 * pause_s_);
}

double WorkerDeadline::launch_limit_s(double best_us) const {
  if (!(best_us > 0)) {
    return kernel_timeout_s_;
  }
  return std::min(kernel_timeout_s_, std::max(kMinLaunchLimitSeconds, kLaunchFactor * best_us * 1e-6));
}

void WorkerDeadline::allow_start() { allow(patience_ * kStartLimitSeconds); }

void WorkerDeadline::allow_load() { allow(patience_ * kLoadLimitSeconds); }

void WorkerDeadline::allow_inputs() { allow(patience_ * kInputsLimitSeconds); }

bool WorkerDeadline::allow_phase(const std::string& phase, double best_us) {
  const double launch_s = launch_limit_s(best_us);
  if (phase == "preheat") {
    allow(preheat_s_ + 60);
  } else if (phase == "load") {
    allow_load();
  } else if (phase == "inputs") {
    allow_inputs();
  } else if (phase == "launch") {
    allow(launch_s);
  } else if (phase == "check") {
    allow(patience_ * kCheckLimitSeconds);
  } else if (phase == "measure") {
    allow(patience_ * kGraceSeconds + 2 * sampling_s_ + 5 * launch_s);
  } else {
    return false;
  }
  return true;
}

void WorkerDeadline::allow_finalist(double best_us) { allow(patience_ * kGraceSeconds + 5 * launch_limit_s(best_us)); }

// The thread that reads the sensors continues to answer even if the other one hangs.
void WorkerDeadline::wait_for_card() {
  if (running()) {
    at_ = std::min(paused_until_, std::max(at_, Clock::now() + steady_seconds(allowed_s_)));
  }
}

// While this process was stopped or waited for a disk, so may the worker have been.
void WorkerDeadline::forgive_absence() {
  const auto now = Clock::now();
  const auto absence = now - std::exchange(looked_at_, now);
  if (absence > steady_seconds(kAbsenceSeconds) && running()) {
    at_ += absence;
    paused_until_ += absence;
  }
}

}  // namespace pascaline
