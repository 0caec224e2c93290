#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/tuner/sweep/sweep_fixture.hpp"
#include "tuner/simulation/simulation.hpp"

namespace pascaline::testing {

/// Sweeps of the toy kernel without compilers, processes and waiting: more threads a block make it quicker, and what
/// FAULT says comes of it.
class SimulatedSweepTest : public SweepTest, protected SimulatedWorld {
 protected:
  Simulation simulation_{*this, {list_devices().back()}};
  std::set<std::string> broken_references_;  ///< their functions; these do not compile
  bool endless_references_ = false;          ///< whether preparing any problem has no end
  std::string endless_problem_;              ///< the one whose preparation has no end; empty: none
  double compile_s_ = 0.3;                   ///< each variant
  double verify_s_ = 0.5;                    ///< a trial, before it is timed

  SimulatedSweepTest() : SweepTest(memory_folder()) {
    services_ = simulation_.services();
    events_.note = [this](const std::string& note) { notes_.push_back(note); };
  }
  void use_space(const std::vector<Fault>& faults, const std::vector<int>& blocks);
  [[nodiscard]] std::map<TrialStatus, int> statuses() const;
  [[nodiscard]] bool noted(const std::string& text) const;
  void expect_complete(std::size_t configurations) const;
  /// Kills the process of the sweep in which it is called, by an exception: what is stored is all that is left of it.
  [[noreturn]] void kill() const;
  struct KilledSweep {};
  /// Runs a sweep that may be killed; whether it ended before.
  bool ends_unkilled(const std::function<void()>& sweep) const;

  std::vector<std::string> notes_;  ///< what was told, unless the test listens itself

  [[nodiscard]] double compile_s(const CompileRequest& request) const override;
  [[nodiscard]] std::string compile_failure(const CompileRequest& request) const override;
  [[nodiscard]] bool compiler_crashes(const CompileRequest& request) const override;
  [[nodiscard]] double prepare_s(const Problem& problem) const override {
    return endless_references_ || problem.text() == endless_problem_ ? kForever : SimulatedWorld::prepare_s(problem);
  }
  [[nodiscard]] double verify_s(const Problem& /*problem*/, const Config& /*config*/) const override {
    return verify_s_;
  }
  [[nodiscard]] SimulatedResult measure(const Problem& problem, const Config& config) const override;
};

}  // namespace pascaline::testing
