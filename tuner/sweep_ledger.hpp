#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "db/store.hpp"
#include "tuner/sweep.hpp"

namespace pascaline {

/// What all devices of a sweep write to: the database, the counts, and whoever is told.
class SweepLedger {
 public:
  /// All must outlive it. `stop` ends waiting for a database that another process keeps locked.
  SweepLedger(Store& store, SweepSummary& summary, const SweepEvents& events, const std::atomic<bool>& stop)
      : store_(store), summary_(summary), events_(events), stop_(stop) {}

  [[nodiscard]] Store& store() noexcept { return store_; }
  [[nodiscard]] SweepSummary& summary() noexcept { return summary_; }
  [[nodiscard]] const SweepEvents& events() const noexcept { return events_; }
  void note(const std::string& text) const {
    if (events_.note) {
      events_.note(text);
    }
  }
  /// Does `work` on the database, again and again while another process keeps it locked: a night's sweep does not end
  /// because somebody looks at its results. Throws StoreError for every other fault, and when `stop` is set.
  template <typename Work>
  auto persist(Work&& work) {
    for (bool told = false;;) {
      try {
        return work(store_);
      } catch (const StoreBusyError& error) {
        if (stop_) {
          throw;
        }
        if (!told) {
          note(std::string("waiting for the database: ") + error.what());
        }
        told = true;
      }
    }
  }

 private:
  Store& store_;
  SweepSummary& summary_;
  const SweepEvents& events_;
  const std::atomic<bool>& stop_;
};

}  // namespace pascaline
