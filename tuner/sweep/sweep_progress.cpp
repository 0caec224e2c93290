#include "tuner/sweep/sweep_progress.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "tuner/sweep/budget.hpp"

namespace pascaline {
namespace {

constexpr std::chrono::milliseconds kViewEvery{200};
constexpr std::chrono::milliseconds kNoteEvery{1000};

}  // namespace

// Estimates the time left at the pace so far. The pace of searches leaves out pauses and finals. The pace of finals is
// that of earlier ones or, without any, the length of their windows.
std::optional<double> SweepProgress::eta_s() const {
  const auto budget_s = sweep_.time.deadline.left_s();
  const std::int64_t made = trials_made();
  if (sweep_.options.trials >= kUnlimitedTrials || made < 3) {
    return budget_s;
  }
  double aside_s = 0;
  double finals_s = 0;
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    const double of_finals_s = scheduled.scheduler->lab().times().finals_ms / 1000;
    finals_s += of_finals_s;
    aside_s += of_finals_s + (scheduled.polite != nullptr ? scheduled.polite->paused_s() : 0);
  }
  const double devices = std::max(1.0, static_cast<double>(sweep_.devices.size()));
  const double elapsed_s = sweep_.time.here_s() - aside_s / devices;
  double left = 0;
  double undecided = 0;
  double decided = 0;
  for (const auto& plan : sweep_.plans) {
    for (const auto& task : plan->tasks()) {
      left += task->over() ? 0 : task->search.remaining();
      const bool in_finals = task->state.stage() == TaskStage::finals;
      undecided += !task->over() && (in_finals || task->finals.decided_on.empty()) ? 1 : 0;
      decided += task->finals.begun && !in_finals ? 1 : 0;
    }
  }
  const double each_s = finals_s > 0 ? finals_s / std::max(1.0, decided) : objective_windows_s(sweep_.options.finals);
  const double eta_s = left * std::max(0.0, elapsed_s) / static_cast<double>(made) + undecided * each_s / devices;
  if (!(eta_s > 0)) {  // only finals are left, of unknown duration
    return budget_s;
  }
  return budget_s ? std::min(*budget_s, eta_s) : eta_s;
}

SweepView SweepProgress::view(bool last) const {
  SweepView view;
  for (const ScheduledDevice& scheduled : sweep_.devices) {
    DeviceProgress& device = view.devices.emplace_back(scheduled.scheduler->view());
    for (const ModelResult& model : sweep_.summary.models) {  // empty until the end
      device.estimated = model.total.device == device.name ? model.estimated : device.estimated;
    }
  }
  static_cast<TrialCounts&>(view) = static_cast<const TrialCounts&>(sweep_.summary);
  for (const auto& plan : sweep_.plans) {
    view.compiling += plan->builds().builder().busy();
    view.compile_workers += plan->builds().builder().workers();
    view.problems += plan->problems();
    for (const auto& task : plan->tasks()) {
      if (task->result.provisional) {
        view.provisional.push_back(task->search.wanted().problem.text());
      }
      if (!task->look.no_time.empty()) {
        view.no_time.push_back(fmt::format("{}: {}", task->search.wanted().problem.text(), task->look.no_time));
      }
    }
  }
  std::vector<std::string> untried = sweep_.not_reached();
  view.problems_untried = untried.size();
  if (last) {
    view.not_reached = std::move(untried);
  }
  view.problems_done = static_cast<std::size_t>(sweep_.summary.problems.done);
  view.elapsed_s = static_cast<double>(sweep_.time.spent_ms()) / 1000;
  view.eta_s = eta_s();
  view.budget_left_s = sweep_.time.deadline.left_s();
  return view;
}

// Reports to the caller, and to other terminals.
void SweepProgress::report(bool last) {
  const auto now = sweep_.time.clock.now();
  if (now - viewed_ < kViewEvery && !last) {
    return;
  }
  viewed_ = now;
  const SweepView view = this->view(last);
  if (sweep_.recorder.events().view) {
    sweep_.recorder.events().view(view);
  }
  if (now - noted_ < kNoteEvery && !last) {
    return;
  }
  noted_ = now;
  check_database();
  SweepView whole = view;
  whole.devices.clear();
  for (std::size_t i = 0; i < sweep_.devices.size(); ++i) {
    const std::vector<TelemetryRow> readings = sweep_.devices[i].scheduler->take_telemetry();
    sweep_.recorder.persist([&](Store& store) {
      store.note_progress(sweep_.devices[i].scheduler->session(), sweep_.time.spent_ms(),
                          session_progress_text(view.devices[i], whole), readings);
    });
  }
}

// Throws if the database was deleted or replaced: writing would still succeed, but no process could read it.
void SweepProgress::check_database() {
  struct stat status {};
  const bool there = ::stat(sweep_.options.database.c_str(), &status) == 0;
  if (there && database_inode_ == 0) {
    database_inode_ = status.st_ino;
  }
  if (!there || status.st_ino != database_inode_) {
    throw StoreError(
        fmt::format("{}: it was deleted or replaced during the sweep; what was measured since then is lost",
                    sweep_.options.database.string()));
  }
}

}  // namespace pascaline
