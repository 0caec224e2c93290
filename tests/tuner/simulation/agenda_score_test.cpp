#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"
#include "tuner/simulation/recorded_sweep.hpp"

// How good the order of a sweep is, on recorded ones: docs/design.md says how they are made.
namespace pascaline::testing {
namespace {

// Candidates with these times, the default first, each built and tried in as many seconds.
RecordedSearch search_of(const std::string& name, const std::vector<double>& times_us, double calls = 1) {
  RecordedSearch search{name + " N=1", name, calls, 1e6, 1e6, 0.5, 0.1, {}};
  for (const double time_us : times_us) {
    search.candidates.push_back({1, 0.5, 0.5, time_us});
  }
  return search;
}

SweepRecording example() {
  return {"made up",
          {"host", "an emulated device", "", 4, 1U << 30U, {}},
          2,
          {search_of("first", {1000, 900, 0, 300, 290}, 3), search_of("second", {500, 480, 470, 465}, 10),
           search_of("third", {4000, 4100, 1000, 3000})}};
}

double score_of(const SweepRecording& recording, double limit_s) {
  return saved_area(recording, play(recording, limit_s).decisions, limit_s) /
         saved_area(recording, clairvoyant_order(recording, limit_s), limit_s);
}

TEST(AgendaScoreTest, AreaIsTheTimeSavedTimesTheSecondsThatAreLeft) {
  const SweepRecording recording = example();
  const std::vector<TimedDecision> decisions{{2, 0, 900}, {4, 2, 1000}, {5, 0, 300}, {11, 1, 465}};
  EXPECT_DOUBLE_EQ(saved_area(recording, decisions, 10, 0), 3 * (100 * 3 + 700 * 5));
  EXPECT_DOUBLE_EQ(saved_area(recording, decisions, 10, 1), 0) << "after the end";
  EXPECT_DOUBLE_EQ(saved_area(recording, decisions, 10, 2), 3000 * 6);
  EXPECT_DOUBLE_EQ(saved_area(recording, decisions, 10), 3 * (100 * 3 + 700 * 5) + 3000 * 6);
}

TEST(AgendaScoreTest, ARecordingIsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const SweepRecording recording = example();
  write_file_atomically(folder / "sweep.json", json_of(recording));
  const SweepRecording read = read_recording(folder / "sweep.json");
  EXPECT_EQ(json_of(read), json_of(recording));
  ASSERT_EQ(read.searches.size(), 3U);
  EXPECT_EQ(read.device, recording.device);
  EXPECT_EQ(read.workers, 2U);
  EXPECT_DOUBLE_EQ(read.searches[2].candidates[2].time_us, 1000);
  EXPECT_FALSE(read.searches[0].candidates[2].usable());
}

TEST(AgendaScoreTest, WhatIsNoRecordingIsRefusedWithTheFile) {
  const TemporaryFolder folder;
  const std::string good = json_of(example());
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_file_atomically(folder / "sweep.json", text);
    try {
      std::ignore = read_recording(folder / "sweep.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("\"schema\": 1", "\"schema\": 2").find("schema 2"), std::string::npos);
  EXPECT_NE(refused("[1000.0,", "[").find("first N=1: 'build_s'"), std::string::npos);
  EXPECT_NE(refused("[1000.0,", "[-1,").find("'time_us'"), std::string::npos);
  EXPECT_NE(refused("[1000.0,", "[0,").find("the first of them usable"), std::string::npos);
  EXPECT_NE(refused("\"workers\": 2", "\"workers\": 0").find("workers"), std::string::npos);
  EXPECT_NE(refused("{", "").find((folder / "sweep.json").string()), std::string::npos);
}

TEST(AgendaScoreTest, TheSweepProposesTheRecordedCandidatesInTheirOrder) {
  const SweepRecording recording = example();
  const PlayedSweep played = play(recording, 1000);
  EXPECT_EQ(played.summary.trials, 13);
  EXPECT_EQ(played.summary.ok, 12);
  std::vector<double> best_us(3, 0);
  for (const TimedDecision& decision : played.decisions) {
    best_us[decision.search] = decision.time_us;
  }
  EXPECT_EQ(best_us, (std::vector<double>{290, 465, 1000}));
  EXPECT_GE(played.decisions.front().at_s, 1 + 1 + 0.5 + 2) << "opened, built, prepared, and two trials";
}

// The most that any order of actions saves, of all that there are from here on.
double most_saved(const SweepRecording& recording, std::vector<OrderedAction>& actions, std::vector<std::size_t>& next,
                  double limit_s) {
  double most = saved_area(recording, carry_out(recording, actions), limit_s);
  for (std::size_t search = 0; search < next.size(); ++search) {
    const std::size_t before = next[search];
    for (next[search] = before + 1; next[search] <= recording.searches[search].candidates.size(); ++next[search]) {
      actions.push_back({search, next[search]});
      most = std::max(most, most_saved(recording, actions, next, limit_s));
      actions.pop_back();
    }
    next[search] = before;
  }
  return most;
}

TEST(AgendaScoreTest, NoOrderSavesMoreThanTheClairvoyant) {
  SweepRecording recording = example();
  recording.searches = {search_of("first", {100, 98, 30, 29}, 3), search_of("second", {40, 39, 25, 20, 19}, 10)};
  recording.workers = 10;  // everything is built when the device is open
  for (RecordedSearch& search : recording.searches) {
    search.preparation_s = 0;
    search.finalist_s = 0;
  }
  const double limit_s = 100;
  std::vector<OrderedAction> actions;
  std::vector<std::size_t> next(2, 0);
  const double best = saved_area(recording, clairvoyant_order(recording, limit_s), limit_s);
  EXPECT_NEAR(best, most_saved(recording, actions, next, limit_s), 0.01 * best);
  EXPECT_LT(saved_area(recording, cheapest_first_order(recording, limit_s), limit_s), best);
}

TEST(AgendaScoreTest, ClairvoyanceEndsInTime) {
  const SweepRecording recording = example();
  for (const double limit_s : {1.0, 3.0, 5.0, 10.0}) {
    for (const TimedDecision& decision : clairvoyant_order(recording, limit_s)) {
      EXPECT_LE(decision.at_s, limit_s);
    }
  }
  EXPECT_TRUE(clairvoyant_order(recording, 1).empty());
  EXPECT_FALSE(clairvoyant_order(recording, 10).empty());
}

TEST(AgendaScoreTest, PerturbedTimesAreAsFarFromTheEstimatesAsIsAskedFor) {
  SweepRecording recording = example();
  recording.searches.clear();
  for (int i = 1; i <= 40; ++i) {
    recording.searches.push_back(search_of("kernel" + std::to_string(i), {100.0 * i, 90.0 * i}));
    recording.searches.back().flops = 1e6 * i;
  }
  EXPECT_DOUBLE_EQ(estimates_correlation(recording), 1);
  perturb(recording, 0.7);
  EXPECT_LE(estimates_correlation(recording), 0.7);
  EXPECT_GT(estimates_correlation(recording), 0.5);
  EXPECT_DOUBLE_EQ(recording.searches[5].candidates[1].time_us / recording.searches[5].candidates[0].time_us, 0.9);
}

TEST_F(SimulatedSweepTest, ASweepIsRecordedFromItsDatabase) {
  space_ = make_space({kRight, kDoesNotCompile});
  ASSERT_EQ(sweep({"100000", "200000"}).trials, 12);
  const SweepRecording recording = recording_of(Store(database_, OpenMode::read_only), folder_.path());
  EXPECT_EQ(recording.origin, "measured on " + recording.device.name);
  EXPECT_EQ(recording.workers, 2U);
  ASSERT_EQ(recording.searches.size(), 2U);
  const RecordedSearch& search = recording.searches[1];
  EXPECT_EQ(search.problem, "toy N=200000");
  EXPECT_EQ(search.flops, 400000);
  EXPECT_EQ(search.bytes, 2400000);
  ASSERT_EQ(search.candidates.size(), 6U);
  EXPECT_NEAR(search.candidates.front().time_us, 10 + 200000.0 / 64, 20);
  EXPECT_NEAR(search.candidates.front().verify_s, 0.5, 1e-9);
  EXPECT_NEAR(search.candidates.front().build_s, 0.3, 1e-9);
  EXPECT_EQ(std::ranges::count_if(search.candidates, &RecordedCandidate::usable), 3);
  EXPECT_EQ(play(recording, 1000).summary.trials, 12);
}

struct ScoredRecording {
  std::string name;
  std::string file;           ///< without its ending
  std::vector<double> least;  ///< score at 60 s, 10 min and 8 h
};
class RecordedSweepScoreTest : public ::testing::TestWithParam<ScoredRecording> {};

// A little below the present scores.
TEST_P(RecordedSweepScoreTest, TheAgendaIsNearTheBestOrder) {
  const SweepRecording recording =
      read_recording(std::string(PASCALINE_TEST_RECORDINGS) + "/" + GetParam().file + ".json.gz");
  const std::vector<double> limits_s{60, 600, 28800};
  for (std::size_t i = 0; i < limits_s.size(); ++i) {
    const double score = score_of(recording, limits_s[i]);
    EXPECT_GE(score, GetParam().least[i]) << limits_s[i] << " s";
    EXPECT_LE(score, 1) << limits_s[i] << " s";
  }
}

const std::vector<ScoredRecording> kRecordings{
    {"Server", "2b-float32-h200", {0.89, 0.97, 0.99}},  {"ServerLargerModel", "8b-float32-h200", {0.85, 0.97, 0.99}},
    {"Laptop", "2b-float16-mx330", {0.46, 0.82, 0.98}}, {"P40", "8b-float16-p40", {0.71, 0.94, 0.99}},
    {"Emulator", "tiny-emulator", {0.13, 0.76, 0.99}},
};
INSTANTIATE_TEST_SUITE_P(Recordings, RecordedSweepScoreTest, ::testing::ValuesIn(kRecordings),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace pascaline::testing
