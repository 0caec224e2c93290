#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/dispatch/identity.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"

namespace pascaline::testing {
namespace {

/// Sweeps on a database that holds what other devices measured of the toy kernel.
class SweepElsewhereTest : public SimulatedSweepTest {
 protected:
  static constexpr Fault kSlow = static_cast<Fault>(kAlike + 6);
  static constexpr std::int64_t kTrials = 18;
  void SetUp() override {
    SimulatedSweepTest::SetUp();
    std::vector<Fault> faults{kRight};
    for (int i = 0; i < 8; ++i) {
      faults.push_back(static_cast<Fault>(kAlike + i));
    }
    space_ = make_space(faults);
    options_.trials = 4;
    options_.compile.jobs = 1;  // what is proposed first is compiled first, and so measured first
    options_.finals.rounds = 2;
  }
  static DeviceRow here() { return device_row(open_device("emulator")->info()); }
  // An emulated device that has so many more processors than this one.
  static DeviceRow elsewhere(std::int64_t more) {
    DeviceRow row = here();
    row.sm_count += more;
    row.name = "emulated " + std::to_string(more);
    return row;
  }
  // Trials of eighteen configurations on that device, the winner among them.
  void measure_on(const DeviceRow& device, const Config& winner, const std::string& n = "1000") {
    measure_on(device, winner, space_.problem({{"N", n}}));
  }
  void measure_on(const DeviceRow& device, const Config& winner, const Problem& problem) {
    Store store(database_, OpenMode::create);
    ContextIds context;
    context.device = store.device_id(device);
    context.toolkit = store.toolkit_id({"g++", "0", "host", ""});
    context.kernel = store.kernel_id({"toy", "an earlier source"});
    context.space = store.space_id("toy", space_.hash, space_.json);
    context.problem = store.problem_id(problem, 1, 1);
    const std::int64_t session = begin_example_session(store, context);
    std::vector<Config> configs{winner};
    for (const std::int64_t block : {32, 64, 128}) {
      for (int i = 0; i < 6; ++i) {
        const Config config = toy_config(block, static_cast<Fault>(kAlike + i));
        if (config != winner && configs.size() < static_cast<std::size_t>(kTrials)) {
          configs.push_back(config);
        }
      }
    }
    std::int64_t best = 0;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      Trial trial;
      trial.problem = problem;
      trial.config = configs[i];
      const double median_us = 10 + static_cast<double>(i);
      trial.time = TimeSummary{median_us, median_us, median_us, 10};
      const std::int64_t id = store.add_trial(session, context, trial);
      best = i == 0 ? id : best;
    }
    store.set_winner(context, best, std::nullopt, 1);
    store.end_session(session, "finished");
  }
  // What the last session's search tried, in that order.
  [[nodiscard]] std::vector<Config> searched() const {
    const Store store(database_, OpenMode::read_only);
    std::vector<StoredTrial> trials = store.trials({});
    std::erase_if(trials, [&](const StoredTrial& stored) {
      return stored.trial.stage != TrialStage::search || !same_identity(stored.device, here()) ||
             stored.kernel.source_hash == "an earlier source";
    });
    std::sort(trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    std::vector<Config> configs;
    for (const StoredTrial& stored : trials) {
      configs.push_back(stored.trial.config);
    }
    return configs;
  }
  // What the sweep's session says of it.
  [[nodiscard]] std::vector<TakenOver> told(std::int64_t session, const std::string& n = "1000") const {
    for (const SessionRow& row : Store(database_, OpenMode::read_only).sessions()) {
      if (row.id == session) {
        return taken_over_of(row.options_json, space_.problem({{"N", n}}).text());
      }
    }
    return {};
  }
};

TEST_F(SweepElsewhereTest, WinnersOfTheNearestDevicesAreTriedFirstAndItIsTold) {
  const Config near = toy_config(32, kSlow);
  const Config next = toy_config(128, kSlow);
  measure_on(elsewhere(1), near);
  measure_on(elsewhere(2), next);
  measure_on(elsewhere(64), toy_config(64, kSlow));
  const SweepSummary summary = sweep();
  const std::vector<Config> tried = searched();
  ASSERT_GE(tried.size(), 4U);
  EXPECT_EQ(tried[0], toy_config(64)) << "the default";
  EXPECT_TRUE(std::is_permutation(tried.begin() + 1, tried.begin() + 3, std::vector<Config>{near, next}.begin()));
  const std::string problem = space_.problem({{"N", "1000"}}).text();
  EXPECT_EQ(told(summary.session), (std::vector<TakenOver>{{problem, "emulated 1", problem, kTrials, true},
                                                           {problem, "emulated 2", problem, kTrials, true}}));
  EXPECT_TRUE(noted("begins with what emulated 1 measured: 18 trials, 1 winner to be tried first"));
  EXPECT_FALSE(noted("emulated 64"));
}

TEST_F(SweepElsewhereTest, TrialsOfGpusDoNotEnterAnEmulatedDevicesSearch) {
  options_.compile.jobs = 1;
  options_.trials = 12;
  std::ignore = sweep();
  const std::vector<Config> alone = searched();
  std::filesystem::remove(database_);
  measure_on(example_device(), toy_config(32, kSlow));
  const SweepSummary summary = sweep();
  EXPECT_TRUE(told(summary.session).empty());
  EXPECT_FALSE(noted(example_device().name));
  ASSERT_FALSE(alone.empty());
  EXPECT_EQ(searched().at(0), alone.at(0));
  EXPECT_NE(searched().at(1), toy_config(32, kSlow)) << "the GPU's winner is not tried first";
}

TEST_F(SweepElsewhereTest, OwnTrialsOfTheShapeMakeThoseOfOthersSuperfluous) {
  measure_on(here(), toy_config(128, kSlow));
  measure_on(elsewhere(1), toy_config(32, kSlow));
  const SweepSummary summary = sweep();
  const std::string problem = space_.problem({{"N", "1000"}}).text();
  EXPECT_EQ(told(summary.session), (std::vector<TakenOver>{{problem, "emulated 1", problem, 0, true}}))
      << "the winner alone";
}

// A later sweep knows enough itself and takes nothing over, but its winner is still what that search found.
TEST_F(SweepElsewhereTest, WhatTheSearchBeganWithIsToldOfALaterSweepsWinner) {
  measure_on(elsewhere(1), toy_config(32, kSlow));
  options_.trials = 18;
  const SweepSummary first = sweep();
  const std::vector<TakenOver> taken_over = told(first.session);
  ASSERT_EQ(taken_over.size(), 1U);
  const SweepSummary second = sweep();
  EXPECT_TRUE(told(second.session).empty());
  const Store store(database_, OpenMode::read_only);
  const DeviceRow device = here();
  const std::vector<Winner> winners = store.winners("toy", &device);
  ASSERT_EQ(winners.size(), 1U);
  // Of a configuration that the second sweep was the first to try, this tells nothing.
  const std::vector<Config> tried = searched();
  const bool of_first = std::find(tried.begin(), tried.begin() + 18, winners[0].trial.config) != tried.begin() + 18;
  EXPECT_EQ(store.taken_over(winners[0].trial_id), of_first ? taken_over : std::vector<TakenOver>{});
  int compared = 0;
  for (const StoredTrial& trial : stored(TrialStage::finals)) {
    if (trial.session_id == second.session && trial.trial.config == tried.front()) {
      ++compared;
      EXPECT_EQ(store.taken_over(trial.id), taken_over) << "the default, which both compared";
    }
  }
  EXPECT_EQ(compared, 1);
}

TEST_F(SweepElsewhereTest, OtherShapesAreAPriorAndTheirWinnersAreNotTriedFirst) {
  measure_on(elsewhere(1), toy_config(32, kSlow), "2000");
  const SweepSummary summary = sweep();
  EXPECT_EQ(told(summary.session), (std::vector<TakenOver>{{space_.problem({{"N", "1000"}}).text(), "emulated 1",
                                                            space_.problem({{"N", "2000"}}).text(), kTrials, false}}));
}

TEST_F(SweepElsewhereTest, WithoutPriorKnowledgeNothingIsTakenOver) {
  measure_on(elsewhere(1), toy_config(32, kSlow));
  options_.search.searcher = "model";
  const SweepSummary summary = sweep();
  EXPECT_TRUE(told(summary.session).empty());
  EXPECT_FALSE(noted("emulated 1"));
}

// What a kernel with the same parameters is known to be best with is what a search expects to be best.
TEST_F(SweepElsewhereTest, KernelsOfARunWithTheSameParametersTellEachOther) {
  options_.trials = 18;
  std::ignore = sweep();
  const Config best = searched().back();
  ASSERT_NE(best, toy_config(64));
  {
    SQLite::Database database(database_.string(), SQLite::OPEN_READWRITE);
    SQLite::Statement faster(database,
                             "UPDATE trials SET median_us = 1e-3, low_us = 1e-3, high_us = 1e-3 WHERE config_text = ?");
    faster.bind(1, best.text());
    ASSERT_GE(faster.exec(), 1);
  }
  std::filesystem::copy_file(folder_ / "toy.cu", folder_ / "twin.cu");
  nlohmann::json json = nlohmann::json::parse(space_.json);
  json["kernel"] = "twin";
  const Space twin = Space::parse(json.dump(), "twin.json");
  options_.trials = 2;
  options_.compile.jobs = 1;
  const Problem problem = twin.problem({{"N", "1000"}});
  std::ignore = run_sweep({twin, space_}, {{problem, 1, ""}, {space_.problem({{"N", "1000"}}), 1, ""}}, options_,
                          events_, stop_, services_);
  EXPECT_TRUE(
      noted("the searches of 2 of 2 problems tell each other what they find of other element types or kernels"));
  std::vector<std::string> tried;
  for (const StoredTrial& trial : stored(TrialStage::search)) {
    if (trial.trial.problem == problem) {
      tried.push_back(trial.trial.config.text());
    }
  }
  EXPECT_EQ(tried, (std::vector<std::string>{toy_config(64).text(), best.text()}));
}

/// The same of a kernel with an element type, which makes no difference to it.
class SweepTypesTest : public SweepElsewhereTest {
 protected:
  void SetUp() override {
    SweepElsewhereTest::SetUp();
    nlohmann::json space = nlohmann::json::parse(space_.json);
    space["types"] = nlohmann::json::parse(R"([{"name": "STORAGE", "values": ["float32", "float16"]}])");
    write_toys(folder_.path(), {space});
    space_ = Space::load(folder_ / "toy.json");
  }
  [[nodiscard]] Problem problem(const char* type, const char* n = "1000") const {
    return space_.problem({{"N", n}, {"STORAGE", type}});
  }
  [[nodiscard]] SweepSummary sweep_of(const std::vector<Problem>& wanted) {
    std::vector<SweepProblem> problems;
    for (const Problem& one : wanted) {
      problems.push_back({one, 1, ""});
    }
    return run_sweep({space_}, problems, options_, events_, stop_, services_);
  }
  [[nodiscard]] std::vector<TakenOver> told_of(std::int64_t session, const Problem& of) const {
    for (const SessionRow& row : Store(database_, OpenMode::read_only).sessions()) {
      if (row.id == session) {
        return taken_over_of(row.options_json, of.text());
      }
    }
    return {};
  }
  // What this run's searches tried of that problem, in that order.
  [[nodiscard]] std::vector<Config> searched_of(const Problem& of) const {
    std::vector<StoredTrial> trials = stored(TrialStage::search);
    std::erase_if(trials, [&](const StoredTrial& trial) {
      return trial.trial.problem != of || trial.kernel.source_hash == "an earlier source";
    });
    std::sort(trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    std::vector<Config> configs;
    for (const StoredTrial& trial : trials) {
      configs.push_back(trial.trial.config);
    }
    return configs;
  }
};

TEST_F(SweepTypesTest, WhatWasMeasuredOfOtherTypesIsTakenOverAndTold) {
  options_.compile.jobs = 1;
  measure_on(here(), toy_config(128, kSlow), problem("float16"));
  measure_on(elsewhere(1), toy_config(32, kSlow), problem("float16"));
  const SweepSummary summary = sweep_of({problem("float32")});
  const std::vector<Config> tried = searched_of(problem("float32"));
  ASSERT_GE(tried.size(), 2U);
  EXPECT_EQ(tried[0], toy_config(64)) << "the default";
  EXPECT_EQ(tried[1], toy_config(128, kSlow)) << "the winner with the other type on this device";
  EXPECT_EQ(told_of(summary.session, problem("float32")),
            (std::vector<TakenOver>{
                {problem("float32").text(), here().name, problem("float16").text(), kTrials, true, true}}));
  EXPECT_TRUE(noted("the search of 1 of 1 problem begins with what " + here().name +
                    " measured of other element types: 18 trials, 1 winner to be tried first"));
}

TEST_F(SweepTypesTest, OtherShapesOfOtherTypesAreAPriorAndTheirWinnersAreNotTriedFirst) {
  measure_on(here(), toy_config(128, kSlow), problem("float16", "2000"));
  const SweepSummary summary = sweep_of({problem("float32")});
  EXPECT_EQ(told_of(summary.session, problem("float32")),
            (std::vector<TakenOver>{
                {problem("float32").text(), here().name, problem("float16", "2000").text(), kTrials, false, true}}));
}

TEST_F(SweepTypesTest, OwnTrialsMakeThoseOfOtherTypesSuperfluous) {
  measure_on(here(), toy_config(32, kSlow), problem("float32"));
  measure_on(here(), toy_config(128, kSlow), problem("float16"));
  const SweepSummary summary = sweep_of({problem("float32")});
  EXPECT_EQ(
      told_of(summary.session, problem("float32")),
      (std::vector<TakenOver>{{problem("float32").text(), here().name, problem("float16").text(), 0, true, true}}))
      << "the winner alone";
}

// What one of two problems is known to be best with, without being its winner yet, is tried first for the other.
TEST_F(SweepTypesTest, ProblemsOfARunTellEachOtherTheirBest) {
  options_.trials = 18;
  std::ignore = sweep_of({problem("float16")});
  const std::vector<Config> first = searched_of(problem("float16"));
  ASSERT_EQ(first.size(), 18U);
  const Config best = first.back();
  ASSERT_NE(best, toy_config(64));
  {
    SQLite::Database database(database_.string(), SQLite::OPEN_READWRITE);
    database.exec("DELETE FROM winners");
    database.exec("DELETE FROM decisions");
    SQLite::Statement faster(database,
                             "UPDATE trials SET median_us = 1e-3, low_us = 1e-3, high_us = 1e-3 WHERE config_text = ?");
    faster.bind(1, best.text());
    ASSERT_GE(faster.exec(), 1);
  }
  options_.trials = 3;
  options_.compile.jobs = 1;
  const SweepSummary summary = sweep_of({problem("float32"), problem("float16")});
  EXPECT_TRUE(
      noted("the searches of 2 of 2 problems tell each other what they find of other element types or kernels"));
  EXPECT_TRUE(told_of(summary.session, problem("float32")).empty()) << "nothing else is known";
  const std::vector<Config> tried = searched_of(problem("float32"));
  ASSERT_GE(tried.size(), 2U);
  EXPECT_EQ(tried[0], toy_config(64)) << "the default";
  EXPECT_EQ(tried[1].text(), best.text());
}

TEST_F(SweepTypesTest, WithoutPriorKnowledgeNothingIsTakenOver) {
  measure_on(here(), toy_config(128, kSlow), problem("float16"));
  options_.search.searcher = "model";
  const SweepSummary summary = sweep_of({problem("float32"), problem("float16", "2000")});
  EXPECT_TRUE(told_of(summary.session, problem("float32")).empty());
  EXPECT_FALSE(noted("element types"));
}

}  // namespace
}  // namespace pascaline::testing
