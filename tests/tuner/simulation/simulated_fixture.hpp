#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/tuner/simulation/toy_world.hpp"
#include "tests/tuner/sweep/sweep_fixture.hpp"
#include "tuner/simulation/simulation.hpp"

namespace pascaline::testing {

/// Sweeps of the toy kernel in its simulated world.
class SimulatedSweepTest : public SweepTest, protected ToyWorld {
 protected:
  Simulation simulation_{*this, {list_devices().back()}};

  SimulatedSweepTest() : SweepTest(memory_folder()) {
    services_ = simulation_.services();
    events_.note = [this](const std::string& note) { notes_.push_back(note); };
  }
  void use_space(const std::vector<Fault>& faults, const std::vector<int>& blocks);
  [[nodiscard]] std::map<TrialStatus, int> statuses() const;
  /// Trials of searches that have a time.
  [[nodiscard]] int usable() const;
  [[nodiscard]] bool noted(const std::string& text) const;
  /// Gives the stage of a winner's trial, by the problem's N; nothing without a winner.
  [[nodiscard]] std::optional<TrialStage> stage_of_winner(const std::string& n) const;
  void expect_complete(std::size_t configurations) const;
  /// Kills the process of the sweep in which it is called, by an exception: what is stored is all that is left of it.
  [[noreturn]] void kill() const;
  struct KilledSweep {};
  /// Runs a sweep that may be killed; whether it ended before.
  bool ends_unkilled(const std::function<void()>& sweep) const;

  std::vector<std::string> notes_;  ///< what was told, unless the test listens itself
};

}  // namespace pascaline::testing
