#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "db/store.hpp"
#include "tuner/sweep/sweep.hpp"

namespace pascaline {

struct SweepTask;

/// What all devices of a sweep write to: the database, the counts, and whoever is told.
class SweepRecorder {
 public:
  /// All must outlive it. `stop` ends waiting for a database that another process keeps locked.
  /// `wait_s`: how long the database may be locked before that is told.
  SweepRecorder(Store& store, SweepSummary& summary, const SweepEvents& events, const std::atomic<bool>& stop,
                double wait_s)
      : store_(store), summary_(summary), events_(events), stop_(stop), wait_s_(wait_s) {}

  [[nodiscard]] Store& store() noexcept { return store_; }
  [[nodiscard]] SweepSummary& summary() noexcept { return summary_; }
  [[nodiscard]] const SweepEvents& events() const noexcept { return events_; }
  void note(const std::string& text) const {
    if (events_.note) {
      events_.note(text);
    }
  }
  /// Notes that a configuration of the task goes to its device, or goes back without a trial (Store::begin_attempt).
  void begin_attempt(const SweepTask& task, const Config& config, TrialStage stage);
  void end_attempt(const SweepTask& task, const Config& config);
  /// Stores a trial in the task's session; returns its row.
  std::int64_t add_trial(const SweepTask& task, const Trial& trial);
  /// Counts the task as decided, once.
  void count_decided(SweepTask& task);
  /// Stores a trial of the task in the task's session, counts it, tells the task's search and whoever listens; then the
  /// trials of configurations that run as the same code. `agrees_with`: see Agreement. `planned`: trials of a problem,
  /// for whoever listens.
  void store_trial(SweepTask& task, const Trial& trial, const std::string& agrees_with, int planned);

  /// Does `work` on the database, again and again while another process keeps it locked: a night's sweep does not end
  /// because somebody looks at its results. Throws StoreError for every other fault, and a while after `stop` is set.
  template <typename Work>
  auto persist(Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    for (bool told = false;;) {
      try {
        return work(store_);
      } catch (const StoreBusyError& error) {
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        if (stop_ && waited.count() > kWaitWhenStopping) {
          throw;
        }
        if (!told && waited.count() >= wait_s_) {
          note(std::string("waiting for the database: ") + error.what());
          told = true;
        }
      }
    }
  }

 private:
  static constexpr double kWaitWhenStopping = 10;

  Store& store_;
  SweepSummary& summary_;
  const SweepEvents& events_;
  const std::atomic<bool>& stop_;
  double wait_s_;
};

}  // namespace pascaline
