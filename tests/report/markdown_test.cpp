#include "report/report.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

using MarkdownTest = ReportFixture;

TEST_F(MarkdownTest, EmptyDatabaseSaysWhatToDo) {
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "# Pascaline tuning report");
  EXPECT_HOLDS(report, "`pascaline sweep`");
}

TEST_F(MarkdownTest, WinnerShowsTimesGainRatesAndConfidence) {
  store_.problem_id(example_problem(), 2e9, 4e8);
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 80));
  const std::int64_t winner = store_.add_trial(session_, context_, finalist(8, 100));
  store_.set_winner(context_, winner, TimeSummary{200, 180, 220, 30}, 0.987);
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "## NVIDIA GeForce GTX 1080 Ti (compute capability 6.1, 28 SMs), nvrtc 12.9 for sm_61");
  EXPECT_HOLDS(report, "3 trials from 2023-11-14 22:13 UTC to 2023-11-14 22:13 UTC: 3 ok.");
  EXPECT_HOLDS(report, "### matmul (source source-a)");
  EXPECT_HOLDS(report,
               "| matmul M=512 N=2048 K=1024 STORAGE=float16 | 200 | 100 | 2.00× (1.64–2.44) | 20000 | 4000 | 98.7 % | "
               "LAYOUT=row SCALE=0.5 TILE=8 UNROLL=1 |");
  EXPECT_LACKS(report, "Failures");
}

TEST_F(MarkdownTest, UndecidedProblemShowsTheFastestTrialAndTheDefault) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 95));
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "| 190 | 95 | 2.00×");
  EXPECT_HOLDS(report, "| undecided |");
  EXPECT_HOLDS(report, "TILE=4");
}

TEST_F(MarkdownTest, FailuresAloneAreGroupedAndCapped) {
  for (int i = 0; i < 5; ++i) {
    store_.add_trial(session_, context_, failed_trial(i, TrialStatus::compile_failed, "too many | registers"));
  }
  for (int i = 0; i < 12; ++i) {
    store_.add_trial(session_, context_, failed_trial(i, TrialStatus::rejected, "rule " + std::to_string(i)));
  }
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "17 trials");
  EXPECT_HOLDS(report, "12 rejected, 5 compile_failed.");
  EXPECT_HOLDS(report, "No configuration ran correctly");
  EXPECT_HOLDS(report, "| 5 | compile_failed | too many \\| registers |\n| 1 | rejected | rule 0 |");
  EXPECT_HOLDS(report, "3 rarer reasons are left out.");
  EXPECT_EQ(count_of(report, "| 1 | rejected |"), 9U);
  EXPECT_HOLDS(report, "| – | – | – | – | – | undecided | – |");
}

TEST_F(MarkdownTest, DevicesToolkitsAndSourcesAreNeverMixed) {
  store_.add_trial(session_, context_, timed(1, 100));
  ContextIds other_device = context_;
  other_device.device = store_.device_id({"host", "Some CPU", "", 8, 0, "{}"});
  store_.add_trial(session_, other_device, timed(1, 50'000));
  ContextIds other_toolkit = context_;
  other_toolkit.toolkit = store_.toolkit_id({"nvrtc", "11.8", "sm_61", "12.9"});
  store_.add_trial(session_, other_toolkit, timed(1, 110));
  ContextIds other_source = context_;
  other_source.kernel = store_.kernel_id({"matmul", "source-b"});
  store_.add_trial(session_, other_source, timed(1, 90));
  const std::string report = markdown_report(store_);
  EXPECT_EQ(count_of(report, "\n## "), 3U);
  EXPECT_EQ(count_of(report, "\n### "), 4U);
  EXPECT_EQ(count_of(report, "\n| matmul M=512"), 4U);
  EXPECT_EQ(count_of(report, "1.00×"), 4U);

  const std::string host = markdown_report(store_, {.device = "Some CPU"});
  EXPECT_EQ(count_of(host, "\n## "), 1U);
  EXPECT_LACKS(host, "GTX");
  EXPECT_HOLDS(markdown_report(store_, {.kernel = "softmax"}), "no trials of that kernel");
}

TEST_F(MarkdownTest, ResultsOfAnotherTunerSaySoAndMayNotTellWhen) {
  ContextIds foreign = context_;
  foreign.device = store_.device_id({"foreign", "RTX A4000", "", 0, 0, "{}"});
  foreign.toolkit = store_.toolkit_id({"kernel_tuner", "", "", ""});
  const std::int64_t session = begin_example_session(store_, foreign);
  for (const std::int64_t started : {std::int64_t{1'700'000'000'000}, std::int64_t{0}}) {
    Trial trial = timed(started == 0 ? 1 : 2, 100);
    trial.started_unix_ms = started;
    store_.add_trial(session, foreign, trial);
  }
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "## RTX A4000, results of another tuner (kernel_tuner)");
  EXPECT_HOLDS(report, "2 trials from 2023-11-14 22:13 UTC to 2023-11-14 22:13 UTC");
}

TEST_F(MarkdownTest, NamesAndReasonsCannotBreakTheTable) {
  const std::string nasty = "a|b `c` <script>&\r\n# *d* @you \\| [x](y) \x1b[1m \xff";
  store_.add_trial(session_, context_, failed_trial(1, TrialStatus::crashed, nasty));
  const std::string report = markdown_report(store_, {.title = "T <b>"});
  EXPECT_HOLDS(report, "# T &lt;b&gt;");
  EXPECT_HOLDS(report,
               "| 1 | crashed | a\\|b \\`c\\` &lt;script&gt;&amp;  &#35; \\*d\\* &#64;you \\\\\\| \\[x\\](y)  \\[1m "
               "\xef\xbf\xbd |\n");
}

}  // namespace
}  // namespace pascaline::testing
