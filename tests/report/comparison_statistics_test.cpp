#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cmath>

#include "tests/report/comparison_fixture.hpp"

namespace pascaline::testing {
namespace {

using ComparisonStatisticsTest = ComparisonFixture;

TEST_F(ComparisonStatisticsTest, BelowOnePercentIsTheSameHoweverSignificant) {
  a_.win({.median_us = 100, .scatter = 0.0005, .count = 400}, {.m = 1});
  b_.win({.median_us = 100.9, .scatter = 0.0005, .count = 400, .seed = 2}, {.m = 1});
  a_.win({.median_us = 100, .scatter = 0.0005, .count = 400}, {.m = 2});
  b_.win({.median_us = 101.2, .scatter = 0.0005, .count = 400, .seed = 2}, {.m = 2});
  const ReportComparison comparison = compared();
  EXPECT_LT(*comparison.rows[0].p_value, 1e-6);
  EXPECT_EQ(comparison.rows[0].verdict, Verdict::same);
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::faster);
}

TEST_F(ComparisonStatisticsTest, ScatterThatHidesADifferenceIsUnclear) {
  a_.win({.median_us = 100, .scatter = 0.3, .count = 20});
  b_.win({.median_us = 104, .scatter = 0.3, .count = 20, .seed = 2});
  EXPECT_EQ(only_row().verdict, Verdict::unclear);
}

// Medians and the test, from the raw rows alone.
TEST_F(ComparisonStatisticsTest, FiguresAgreeWithSqlOnTheRawRows) {
  const auto win_scaled = [](MadeDatabase& made, double clock_scale, std::uint64_t seed) {
    Trial trial = example_trial(8);
    trial.clock_scale = clock_scale;
    Noise noise(seed);
    for (Sample& sample : trial.samples) {
      sample.time_us = 100 + 2 * noise();
    }
    trial.time = summarize(trial.samples);
    trial.time->median_us *= clock_scale;
    trial.time->low_us *= clock_scale;
    trial.time->high_us *= clock_scale;
    made.store.set_winner(made.context, made.store.add_trial(made.session, made.context, trial), std::nullopt, 0.9);
  };
  win_scaled(a_, 0.98, 1);
  win_scaled(b_, 1, 2);
  const ComparisonRow row = only_row();
  SQLite::Database raw(folder_ / "a.db", SQLite::OPEN_READONLY);
  raw.exec("ATTACH '" + (folder_ / "b.db").string() + "' AS older");
  SQLite::Statement query(raw, R"(
    WITH now AS (SELECT s.time_us * t.clock_scale AS x FROM main.winners w JOIN main.trials t ON t.id = w.trial_id
                 JOIN main.samples s ON s.trial_id = t.id WHERE s.mark IS NULL),
    before AS (SELECT s.time_us * t.clock_scale AS y FROM older.winners w JOIN older.trials t ON t.id = w.trial_id
               JOIN older.samples s ON s.trial_id = t.id WHERE s.mark IS NULL)
    SELECT (SELECT avg(x) FROM (SELECT x, row_number() OVER (ORDER BY x) r, count(*) OVER () n FROM now)
            WHERE r IN ((n + 1) / 2, (n + 2) / 2)),
           (SELECT avg(y) FROM (SELECT y, row_number() OVER (ORDER BY y) r, count(*) OVER () n FROM before)
            WHERE r IN ((n + 1) / 2, (n + 2) / 2)),
           (SELECT count(*) FROM now), (SELECT count(*) FROM before), (SELECT sum(x < y) FROM now, before))");
  ASSERT_TRUE(query.executeStep());
  const double now_us = query.getColumn(0).getDouble();
  const double before_us = query.getColumn(1).getDouble();
  const double m = query.getColumn(2).getDouble();
  const double n = query.getColumn(3).getDouble();
  const double below = query.getColumn(4).getDouble();
  EXPECT_EQ(m, 28);
  EXPECT_NEAR(row.a->best.median_us, now_us, 1e-9);
  EXPECT_NEAR(row.ratio->value, before_us / now_us, 1e-12);
  const double z = (std::abs(below - m * n / 2) - 0.5) / std::sqrt(m * n * (m + n + 1) / 12);
  EXPECT_NEAR(*row.p_value, std::erfc(z / std::sqrt(2.0)), 1e-12) << "of one row, the adjusted p is the p itself";
  EXPECT_GT(*row.p_value, 0);
  EXPECT_LT(*row.p_value, 0.2);
}

// Holm holds the chance of any false verdict in one comparison at 5 %. With 20 comparisons of 50 problems more than 4
// with one have a chance of 0.3 %. (Intervals that must not overlap and the least of 1 % make it smaller still.)
TEST_F(ComparisonStatisticsTest, DatabasesOfOneDistributionHardlyEverDiffer) {
  constexpr int kComparisons = 20;
  constexpr int kProblems = 50;
  int comparisons_with_false_verdicts = 0;
  for (std::uint64_t run = 0; run < kComparisons; ++run) {
    MadeDatabase a(folder_ / ("a" + std::to_string(run)));
    MadeDatabase b(folder_ / ("b" + std::to_string(run)));
    for (std::int64_t m = 1; m <= kProblems; ++m) {
      a.win({.scatter = 0.03, .count = 30, .seed = 2 * run + 1}, {.m = m});
      b.win({.scatter = 0.03, .count = 30, .seed = 2 * run + 2}, {.m = m});
    }
    const ReportComparison comparison = compare({&a.store}, {&b.store});
    ASSERT_EQ(comparison.rows.size(), static_cast<std::size_t>(kProblems));
    comparisons_with_false_verdicts +=
        count_of_verdict(comparison, Verdict::faster) + count_of_verdict(comparison, Verdict::slower) > 0 ? 1 : 0;
    EXPECT_NEAR(*comparison.geometric_mean_ratio, 1, 0.01);
  }
  EXPECT_LE(comparisons_with_false_verdicts, 4);
}

TEST_F(ComparisonStatisticsTest, DifferencesOfThreePercentAreFoundInTheSameNoise) {
  for (std::int64_t m = 1; m <= 50; ++m) {
    a_.win({.median_us = 100, .scatter = 0.015, .count = 100, .seed = 1}, {.m = m});
    b_.win({.median_us = 103, .scatter = 0.015, .count = 100, .seed = 2}, {.m = m});
  }
  EXPECT_GE(count_of_verdict(compared(), Verdict::faster), 48U);
}

}  // namespace
}  // namespace pascaline::testing
