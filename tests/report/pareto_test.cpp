#include "report/pareto.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "report/document_json.hpp"
#include "report/gather.hpp"
#include "report/report.hpp"
#include "report/show.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

class ParetoTest : public ReportFixture {
 protected:
  std::int64_t add(std::int64_t tile, double median_us, std::optional<double> energy_mj) {
    Trial trial = timed(tile, median_us);
    trial.stage = TrialStage::finals;
    trial.energy_mj = energy_mj;
    return store_.add_trial(session_, context_, trial);
  }
  [[nodiscard]] ParetoProblem only() const {
    const auto problems = pareto_problems(store_, "");
    EXPECT_EQ(problems.size(), 1U);
    return problems.empty() ? ParetoProblem{} : problems.begin()->second;
  }
  [[nodiscard]] std::vector<bool> front() const {
    std::vector<bool> front;
    for (const ParetoPoint& point : only().points) {
      front.push_back(point.on_front);
    }
    return front;
  }
};

TEST_F(ParetoTest, WhatNoOtherOneBeatsInBothIsOnTheFront) {
  add(2, 100, 50);
  add(3, 110, 40);
  add(4, 120, 45);
  add(5, 130, 40);
  add(6, 140, 30);
  add(7, 90, std::nullopt);
  EXPECT_EQ(front(), (std::vector<bool>{true, true, false, false, true}));
  EXPECT_EQ(only().points[0].median_us, 100);
  EXPECT_EQ(only().problem.text(), example_problem().text());
}

TEST_F(ParetoTest, OfAConfigurationTheLatestTrialCounts) {
  add(2, 100, 50);
  add(3, 110, 40);
  const std::int64_t again = add(3, 95, 60);
  const ParetoProblem problem = only();
  ASSERT_EQ(problem.points.size(), 2U);
  EXPECT_EQ(problem.points[0].trial_id, again);
  EXPECT_EQ(problem.points[0].energy_mj, 60);
}

TEST_F(ParetoTest, OfAWinnerTheTrialThatWonCounts) {
  const std::int64_t won = add(2, 32.52, 50);
  const std::int64_t thrifty = add(3, 110, 40);
  add(2, 41.29, 60);
  const std::int64_t latest = add(3, 105, 45);
  store_.set_winner(context_, won, std::nullopt, 1);
  EXPECT_EQ(only().time_winner, won);
  EXPECT_EQ(only().points[0].median_us, 32.52);
  EXPECT_EQ(only().points[1].trial_id, latest);
  store_.set_winner(context_, thrifty, std::nullopt, 1, Objective::energy);
  EXPECT_EQ(only().energy_winner, thrifty);
  EXPECT_EQ(only().points[1].energy_mj, 40);
  EXPECT_EQ(front(), (std::vector<bool>{true, true}));
}

TEST_F(ParetoTest, OfManyPointsTheFrontAndTheNamedOnesStay) {
  const std::int64_t fast = add(1000, 10, 50);  // alone on the front
  for (int i = 0; i < 100; ++i) {
    add(2 + i, 100 + i, 60 + i);
  }
  const std::int64_t named = add(2000, 150.5, 300);
  store_.set_winner(context_, named, std::nullopt, 1, Objective::energy);
  ParetoProblem problem = only();
  thin_out_points(problem, 20);
  EXPECT_LE(problem.points.size(), 22U);
  EXPECT_GE(problem.points.size(), 15U);
  EXPECT_EQ(problem.points.front().trial_id, fast);
  EXPECT_TRUE(std::any_of(problem.points.begin(), problem.points.end(),
                          [&](const ParetoPoint& point) { return point.trial_id == named; }));
  problem = only();
  thin_out_points(problem, 1000);
  EXPECT_EQ(problem.points.size(), 102U);
}

TEST_F(ParetoTest, TheSentenceTellsWhatTheWinnerByEnergySavesAndCosts) {
  const std::int64_t fast = add(2, 100, 50);
  const std::int64_t thrifty = add(3, 104.5, 40);
  EXPECT_EQ(pareto_sentence(only()),
            "The configuration with the least energy uses 20.0 % less energy at 4.5 % more time than the fastest. No "
            "winner by energy was decided.");
  store_.set_winner(context_, fast, std::nullopt, 1);
  store_.set_winner(context_, thrifty, std::nullopt, 1, Objective::energy);
  EXPECT_EQ(pareto_sentence(only()),
            "The winner by energy uses 20.0 % less energy at 4.5 % more time than the winner by time.");
  EXPECT_EQ(pareto_role(only(), only().points[0]), "winner by time");
  EXPECT_EQ(pareto_role(only(), only().points[1]), "winner by energy");
  store_.set_winner(context_, fast, std::nullopt, 1, Objective::energy);
  EXPECT_EQ(pareto_sentence(only()), "The winner by energy is the winner by time.");
}

TEST_F(ParetoTest, AnOutdatedWinnerByEnergyIsNoSaving) {
  const std::int64_t old = add(3, 100, 40);
  store_.set_winner(context_, old, TimeSummary{120, 119, 121, 9}, 0.99, Objective::energy, 45);
  store_.set_winner(context_, add(2, 67, 41), std::nullopt, 1);
  const auto note = [&] {
    const auto rows = show_json(store_, {.objective = Objective::energy});
    EXPECT_EQ(rows.size(), 1U);
    return rows[0]["note"].is_string() ? rows[0]["note"].get<std::string>() : "";
  };
  EXPECT_LACKS(note(), "outdated") << "1.49 times as slow, and less energy";
  EXPECT_EQ(pareto_sentence(only()),
            "The winner by energy uses 2.4 % less energy at 49.3 % more time than the winner "
            "by time.");
  store_.set_winner(context_, add(4, 66, 41), std::nullopt, 1);
  EXPECT_HOLDS(note(), "outdated: it takes 1.52 times as long as the winner by time; it is not used");
  EXPECT_EQ(pareto_sentence(only()),
            "The winner by energy is outdated: it takes 1.52 times as long as the winner by time; "
            "the winner by time is used.");
  store_.set_winner(context_, add(5, 90, 30), std::nullopt, 1);
  EXPECT_HOLDS(note(), "outdated: the winner by time is better by energy, too (30 mJ against 40 mJ)");
  EXPECT_LACKS(pareto_sentence(only()), "less");
  store_.set_winner(context_, add(5, 89, std::nullopt), std::nullopt, 1);
  EXPECT_HOLDS(note(), "outdated: the winner by time is better by energy, too (30 mJ against 40 mJ)")
      << "as earlier finals measured of its configuration";
  EXPECT_HOLDS(show_text(store_, {.objective = std::nullopt}), "outdated");
  EXPECT_LACKS(show_text(store_, {}), "outdated") << "winners by time are never";
}

TEST_F(ParetoTest, OnePointIsNothingToShow) {
  add(2, 100, 50);
  add(3, 110, std::nullopt);
  EXPECT_TRUE(pareto_problems(store_, "").empty());
  const std::string text = show_text(store_, {.what = ShowWhat::pareto});
  EXPECT_HOLDS(text, "sweep --objective energy");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(show_json(store_, {.what = ShowWhat::pareto}), nlohmann::json::array());
  EXPECT_LACKS(markdown_report(store_), "Time and energy");
  EXPECT_LACKS(document_json(gather_report(store_, {})).dump(), "pareto");
}

TEST_F(ParetoTest, ShowAndReportsHaveThePoints) {
  const std::int64_t fast = add(2, 100, 50);
  const std::int64_t thrifty = add(3, 110, 40);
  add(4, 120, 45);
  store_.set_winner(context_, fast, std::nullopt, 1);
  store_.set_winner(context_, thrifty, TimeSummary{120, 119, 121, 9}, 0.99, Objective::energy, 45);
  const std::string text = show_text(store_, {.what = ShowWhat::pareto});
  EXPECT_HOLDS(text, "winner by energy");
  EXPECT_HOLDS(text, "20.0 % less energy at 10.0 % more time");
  const auto rows = show_json(store_, {.what = ShowWhat::pareto});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["energy_winner"], thrifty);
  EXPECT_EQ(rows[0]["time_winner"], fast);
  EXPECT_TRUE(rows[0]["edp_winner"].is_null());
  ASSERT_EQ(rows[0]["points"].size(), 3U);
  EXPECT_EQ(rows[0]["points"][2]["front"], false);
  EXPECT_EQ(show_json(store_, {.what = ShowWhat::pareto, .filter = {.problem = "matmul M=7"}}).size(), 0U);

  const std::string markdown = markdown_report(store_);
  EXPECT_HOLDS(markdown, "### Time and energy");
  EXPECT_HOLDS(markdown, "20.0 % less energy");
  const auto document = nlohmann::json::parse(document_json(gather_report(store_, {})).dump());
  const auto& problem = document["contexts"][0]["kernels"][0]["problems"][0];
  EXPECT_EQ(problem["pareto"]["energy_winner"], thrifty);
  EXPECT_EQ(problem["pareto"]["points"].size(), 3U);
  EXPECT_EQ(problem["best_trial"], fast) << "the best is by time";
}

TEST_F(ParetoTest, ShowListsWinnersByTheObjectiveThatIsAskedFor) {
  const std::int64_t fast = add(2, 100, 50);
  const std::int64_t thrifty = add(3, 110, 40);
  store_.set_winner(context_, fast, TimeSummary{120, 119, 121, 9}, 0.98);
  store_.set_winner(context_, thrifty, TimeSummary{120, 119, 121, 9}, 0.99, Objective::energy, 45);
  EXPECT_EQ(show_json(store_, {}).size(), 1U);
  EXPECT_TRUE(show_json(store_, {})[0]["objective"].is_null());
  EXPECT_LACKS(show_text(store_, {}), "default_score");
  const auto by_energy = show_json(store_, {.objective = Objective::energy});
  ASSERT_EQ(by_energy.size(), 1U);
  EXPECT_EQ(by_energy[0]["objective"], "energy");
  EXPECT_EQ(by_energy[0]["score"], 40);
  EXPECT_EQ(by_energy[0]["default_score"], 45);
  EXPECT_EQ(show_json(store_, {.objective = std::nullopt}).size(), 2U);
}

}  // namespace
}  // namespace pascaline::testing
