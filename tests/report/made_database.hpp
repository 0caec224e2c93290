#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "core/util/statistics.hpp"
#include "db/store.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {

/// Draws that are the same with every standard library: near to normal, with mean 0 and deviation 1.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : engine_(seed) {}
  double operator()() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) {
      sum += static_cast<double>(engine_() >> 11) * 0x1p-53;
    }
    return sum;
  }

 private:
  std::mt19937_64 engine_;
};

/// Times of launches: that median, scattered by that share of it.
struct Launches {
  double median_us = 100;
  double scatter = 0.01;
  int count = 40;
  std::uint64_t seed = 1;
};

/// What a made trial is, besides its times.
struct Made {
  std::int64_t m = 512;  ///< of the problem
  std::int64_t tile = 8;
  TrialStage stage = TrialStage::finals;
  bool is_default = false;
  std::int64_t started_unix_ms = 1'700'000'000'000;
};

/// A database with a session on the example device, into which trials with samples are put.
class MadeDatabase {
 public:
  explicit MadeDatabase(const std::filesystem::path& file) : store(file, OpenMode::create, Durability::normal) {
    context = example_context(store);
    session = begin_example_session(store, context);
  }

  [[nodiscard]] ContextIds context_of(std::int64_t m) {
    ContextIds ids = context;
    ids.problem = store.problem_id(example_problem(m), 1e9, 1e6);
    return ids;
  }
  std::int64_t add(const Launches& launches, const Made& made = {}) {
    Trial trial = example_trial(made.tile);
    trial.problem = example_problem(made.m);
    trial.stage = made.stage;
    trial.is_default = made.is_default;
    trial.clock_scale = 1;
    trial.started_unix_ms = made.started_unix_ms;
    trial.samples.clear();
    Noise noise(launches.seed * 1000 + static_cast<std::uint64_t>(made.m));
    for (int i = 0; i < launches.count; ++i) {
      trial.samples.emplace_back().time_us = launches.median_us * (1 + launches.scatter * noise());
    }
    trial.time = summarize(trial.samples);
    return store.add_trial(session, context_of(made.m), trial);
  }
  /// Decides for such a trial.
  std::int64_t win(const Launches& launches, const Made& made = {}) {
    const std::int64_t id = add(launches, made);
    store.set_winner(context_of(made.m), id, TimeSummary{200, 190, 210, 30}, 0.99);
    return id;
  }

  Store store;
  ContextIds context;
  std::int64_t session = 0;
};

}  // namespace pascaline::testing
