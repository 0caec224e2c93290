#include "report/comparison.hpp"
#include "report/document_json.hpp"
#include "report/gather.hpp"
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

TEST_F(MarkdownTest, WinnerShowsTimesSpeedupRatesAndConfidence) {
  store_.problem_id(example_problem(), 2e9, 4e8);
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 80));
  const std::int64_t winner = store_.add_trial(session_, context_, finalist(8, 100));
  store_.set_winner(context_, winner, TimeSummary{200, 180, 220, 30}, 0.987);
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "## NVIDIA GeForce GTX 1080 Ti (compute capability 6.1, 28 SMs), nvrtc 12.9 for sm_61");
  EXPECT_HOLDS(report, "2023-11-14 22:13 UTC to 2023-11-14 22:13 UTC: 2 trials, 2 usable, 1 measurement in finals.");
  EXPECT_HOLDS(report, "### matmul (source source-a)");
  EXPECT_HOLDS(report,
               "| matmul M=512 N=2048 K=1024 STORAGE=float16 | 200 | 100 | 2.00× (1.64–2.44) | 20000 | 4000 | 98.7 % | "
               "LAYOUT=row SCALE=0.5 TILE=8 UNROLL=1 |");
  EXPECT_LACKS(report, "Failures");
}

// What a source of estimates says: the default of the space has TILE=1.
ReportLimit example_limit(const LimitRequest& request) {
  ReportLimit limit;
  limit.config = request.config.value_or(example_config(1));
  limit.compiler = "nvrtc 12.9 for " + request.toolkit.target;
  limit.has_loop = true;
  limit.instructions = 574;
  limit.ffma = 512;
  limit.conflicts = 0.031;
  limit.registers = 128;
  limit.threads = 256;
  limit.blocks = 2;
  limit.blocks_limit = "registers";
  limit.waves = 1.5;
  limit.least_us = 100;
  limit.most_us = 120;
  limit.least_limit = "issue";
  limit.most_limit = "bank conflicts";
  return limit;
}

TEST_F(MarkdownTest, WhatLimitsWinnerAndDefaultIsSaidInWords) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 95));
  ReportOptions options;
  options.limit_of = example_limit;
  const std::string report = markdown_report(store_, options);
  EXPECT_HOLDS(report, "### What limits these kernels");
  EXPECT_HOLDS(report, "not checked on a card of this architecture");
  EXPECT_HOLDS(report,
               "| winner | Hottest loop, an iteration: 512 FFMA of 574 instructions (89 %), 0.03 register bank "
               "conflicts for each. Limited by issue at the fast end of the estimate, by bank conflicts at the "
               "slow end. 2 blocks of 256 threads on an SM at a time (limited by registers), 128 registers a "
               "thread, 1.50 waves. Estimated 100 to 120 µs (code by nvrtc 12.9 for sm_61). |");
  EXPECT_EQ(count_of(report, "| default | Hottest loop"), 1U);
  EXPECT_LACKS(markdown_report(store_), "What limits") << "nothing was asked";
}

TEST_F(MarkdownTest, AMeasuredConflictIsSaidAndOneTimeIsNoRange) {
  store_.add_trial(session_, context_, timed(1, 190));
  Probe probe;
  probe.started_unix_ms = 1000;
  probe.values = {{ProbeQuantity::conflict_slots, 0.97, 0.96, 0.98, 0, 9, true}};
  store_.add_probe(probe, context_.device, context_.toolkit);
  ReportOptions options;
  options.limit_of = [](const LimitRequest& request) {
    ReportLimit limit = example_limit(request);
    limit.measured_conflict = request.measured.of(ProbeQuantity::conflict_slots);
    limit.most_us = limit.least_us + 1e-3;
    limit.most_limit = limit.least_limit;
    limit.waves = 0.009;
    return limit;
  };
  const std::string report = markdown_report(store_, options);
  EXPECT_HOLDS(report, "a thread, less than 1 % of a wave. Estimated 100 µs (code by");
  EXPECT_HOLDS(report, "A register bank conflict is taken to cost 0.97 issue slots, as measured on this device.");
  const auto json = document_json(gather_report(store_, options));
  EXPECT_EQ(json["contexts"][0]["kernels"][0]["problems"][0]["limits"][0]["measured_conflict"], 0.97);
}

TEST_F(MarkdownTest, WhereTheDefaultWonThereIsOneEstimate) {
  store_.add_trial(session_, context_, timed(1, 190));
  ReportOptions options;
  options.limit_of = example_limit;
  const std::string report = markdown_report(store_, options);
  EXPECT_EQ(count_of(report, "Hottest loop"), 1U);
  EXPECT_HOLDS(report, "| winner, which is the default |");
}

TEST_F(MarkdownTest, WhatIsMissingForEstimatesIsSaidOnce) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 95));
  ReportOptions options;
  options.limit_of = [](const LimitRequest& request) {
    ReportLimit limit;
    limit.config = request.config.value_or(example_config(1));
    limit.missing = "No estimate: nothing compiles here.";
    return limit;
  };
  const std::string report = markdown_report(store_, options);
  EXPECT_HOLDS(report, "2 configurations: No estimate: nothing compiles here.");
  EXPECT_LACKS(report, "| winner |");
}

TEST_F(MarkdownTest, UndecidedProblemShowsTheFastestTrialAndTheDefault) {
  store_.add_trial(session_, context_, timed(1, 190));
  store_.add_trial(session_, context_, timed(4, 95));
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "| 190 | 95 | 2.00×");
  EXPECT_HOLDS(report, "| undecided |");
  EXPECT_HOLDS(report, "TILE=4");
}

TEST_F(MarkdownTest, DroppedTrialsAreNotFailures) {
  Trial dropped = timed(4, 95);
  dropped.status = TrialStatus::dropped;
  dropped.reason = "slower than the best so far";
  store_.add_trial(session_, context_, timed(1, 190));
  const std::int64_t trial = store_.add_trial(session_, context_, dropped);
  EXPECT_HOLDS(markdown_report(store_), "| 190 | 95 | 2.00×");
  EXPECT_HOLDS(markdown_report(store_), ": 2 trials, 2 usable, 1 dropped early.");
  EXPECT_LACKS(markdown_report(store_), "slower than the best so far");
  store_.set_winner(context_, trial, TimeSummary{150, 149, 151, 30}, 0.9);
  EXPECT_HOLDS(markdown_report(store_), "| 150 | 95 |");
}

TEST_F(MarkdownTest, FailuresAloneAreGroupedAndCapped) {
  for (int i = 0; i < 5; ++i) {
    store_.add_trial(session_, context_, failed_trial(i, TrialStatus::compile_failed, "too many | registers"));
  }
  for (int i = 0; i < 12; ++i) {
    store_.add_trial(session_, context_, failed_trial(i, TrialStatus::rejected, "rule " + std::to_string(i)));
  }
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, ": 17 trials, 0 usable");
  EXPECT_HOLDS(report, "12 rejected, 5 compile_failed.");
  EXPECT_HOLDS(report, "No configuration ran correctly");
  EXPECT_HOLDS(report, "| 5 | compile_failed | too many \\| registers |\n| 1 | rejected | rule 0 |");
  EXPECT_HOLDS(report, "3 rarer reasons are not shown.");
  EXPECT_EQ(count_of(report, "| 1 | rejected |"), 9U);
  EXPECT_HOLDS(report, "| – | – | – | – | – | undecided | – |");
}

TEST_F(MarkdownTest, CompilersOfOneDeviceAndDriverAreCompared) {
  ContextIds older = context_;
  older.toolkit = store_.toolkit_id({"nvrtc", "11.8", example_toolkit().target, example_toolkit().driver_version});
  store_.add_trial(session_, context_, timed(1, 120));
  store_.add_trial(session_, context_, timed(4, 100));
  store_.add_trial(session_, older, timed(4, 80));
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "## Compilers on NVIDIA GeForce GTX 1080 Ti");
  EXPECT_HOLDS(report, "- nvrtc 12.9: the fastest of 0 of 1 problem; choosing for each problem is 1.25× as fast as");
  EXPECT_HOLDS(report, "- nvrtc 11.8: the fastest of 1 of 1 problem; choosing for each problem is 1.00× as fast as");
  EXPECT_HOLDS(report, "| matmul M=512 N=2048 K=1024 STORAGE=float16 | 100 | 80 | nvrtc 11.8 | 1.25× |");
}

TEST_F(MarkdownTest, CompilersOfDifferentDriversOrSourcesAreNotCompared) {
  ContextIds other_driver = context_;
  other_driver.toolkit = store_.toolkit_id({"nvrtc", "11.8", example_toolkit().target, "another"});
  ContextIds other_source = context_;
  other_source.toolkit =
      store_.toolkit_id({"nvrtc", "11.8", example_toolkit().target, example_toolkit().driver_version});
  other_source.kernel = store_.kernel_id({"matmul", "source-b"});
  store_.add_trial(session_, context_, timed(4, 100));
  store_.add_trial(session_, other_driver, timed(4, 80));
  store_.add_trial(session_, other_source, timed(4, 80));
  EXPECT_LACKS(markdown_report(store_), "Compilers on");
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

TEST_F(MarkdownTest, BeginsWithWhatWasTunedOnWhatAndWhatItGave) {
  const auto decide = [&](std::int64_t tile, double default_us) {
    const std::int64_t winner = store_.add_trial(session_, context_, finalist(tile, 100));
    store_.set_winner(context_, winner, TimeSummary{default_us, default_us, default_us, 30}, 0.99);
  };
  decide(4, 1000);  // by a source that was changed since
  context_.kernel = store_.kernel_id({"matmul", "source-b"});
  decide(8, 200);
  const Problem other = example_problem(1);
  context_.problem = store_.problem_id(other, 1, 1);
  Trial undecided = timed(1, 100);
  undecided.problem = other;
  store_.add_trial(session_, context_, undecided);
  store_.note_progress(session_, 7'800'000, "", {});
  const std::string running = markdown_report(store_);
  EXPECT_HOLDS(running, "| 2 h 10 min, still running | random | 1 | 1 of 2 | **2.00×** |\n");
  store_.end_session(session_, "finished");
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(
      report,
      "# Pascaline tuning report\n\n| Device | Built by | Last trial | Time spent | Searcher | Trials | "
      "Problems decided | Mean speedup over defaults |\n|---|---|---|--:|---|--:|--:|--:|\n| NVIDIA GeForce GTX 1080 "
      "Ti (compute capability 6.1, 28 SMs) | nvrtc 12.9 for sm_61, driver 12.9 | 2023-11-14 | 2 h 10 min | "
      "random | 1 | 1 of 2 | **2.00×** |\n\n## NVIDIA");
  EXPECT_HOLDS(report, "### matmul (source source-a, outdated)\n\n<details><summary>1 row</summary>\n\n| Problem |");
  EXPECT_HOLDS(report, "### matmul (source source-b)\n\n| Problem |");
}

TEST_F(MarkdownTest, LongTablesAndFailuresAreFolded) {
  for (std::int64_t m = 1; m <= 23; ++m) {
    Trial trial = timed(1, 100);
    trial.problem = example_problem(m);
    context_.problem = store_.problem_id(trial.problem, 1, 1);
    store_.add_trial(session_, context_, trial);
  }
  context_ = example_context(store_);
  store_.add_trial(session_, context_, failed_trial(2, TrialStatus::timed_out, "took too long"));
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "\n\n<details><summary>4 more</summary>\n\n| Problem | Default");
  EXPECT_HOLDS(report, "\n\n<details><summary>Failures: 1 trial</summary>\n\n| Trials | Status | Reason |\n");
  EXPECT_EQ(count_of(report, "<details>"), 2U);
  EXPECT_EQ(count_of(report, "\n\n</details>\n\n"), 2U);
}

TEST_F(MarkdownTest, OneSessionHasItsTrialsAndFinalsOnly) {
  const std::int64_t first = session_;
  store_.add_trial(session_, context_, timed(4, 50));
  store_.add_trial(session_, context_, finalist(1, 190));
  store_.set_winner(context_, store_.add_trial(session_, context_, finalist(8, 95)), TimeSummary{190, 180, 200, 30},
                    0.9);
  session_ = begin_example_session(store_, context_);
  store_.set_winner(context_, store_.add_trial(session_, context_, finalist(16, 90)), TimeSummary{180, 170, 190, 30},
                    0.9);
  const std::string later = markdown_report(store_, {.sessions = {session_}});
  EXPECT_HOLDS(later, ": 0 trials, 0 usable, 1 measurement in finals.");
  EXPECT_HOLDS(later, "| 180 | 90 | 2.00×");
  const std::string earlier = markdown_report(store_, {.sessions = {first}});
  EXPECT_HOLDS(earlier, ": 1 trial, 1 usable, 2 measurements in finals.");
  EXPECT_HOLDS(earlier, "| 190 | 95 | 2.00×");
  EXPECT_HOLDS(earlier, "| decided again later | LAYOUT=row SCALE=0.5 TILE=8 UNROLL=1 |");
  EXPECT_HOLDS(markdown_report(store_, {.sessions = {first, session_}}), "1 trial, 1 usable, 3 measure");
  EXPECT_HOLDS(markdown_report(store_, {.sessions = {99}}), "no trials of that kernel, device or session");
  EXPECT_EQ(count_of(csv_report(store_, {.sessions = {first}}), "\r\n"), 4U);
}

TEST_F(MarkdownTest, ComparisonComesFirst) {
  store_.add_trial(session_, context_, timed(1, 100));
  const ReportComparison comparison = compare({&store_}, {&store_});
  const std::string report = markdown_report(store_, {}, &comparison);
  EXPECT_HOLDS(report, "# Pascaline tuning report\n\n## Comparison\n\nNow is tuned.db, before is tuned.db.");
  EXPECT_LT(report.find("## Comparison"), report.find("| Device | Built by |"));
  const Store empty(folder_ / "empty.db", OpenMode::create);
  const ReportComparison vanished = compare({&empty}, {&store_});
  const std::string of_nothing = markdown_report(empty, {}, &vanished);
  EXPECT_HOLDS(of_nothing, "### Vanished: 1");
  EXPECT_HOLDS(of_nothing, "`pascaline sweep`");
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
  EXPECT_HOLDS(report, "2023-11-14 22:13 UTC to 2023-11-14 22:13 UTC: 2 trials");
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

TEST_F(MarkdownTest, TheTimeOfTrialsIsBrokenDownBySession) {
  EXPECT_LACKS(markdown_report(store_), "Time of trials");
  store_.add_trial(session_, context_, timed(1, 190));
  EXPECT_LACKS(markdown_report(store_), "Time of trials") << "of another tuner's result the parts are not known";
  Trial trial = timed(2, 100);
  trial.load_ms = 10;
  trial.inputs_ms = 5;
  trial.verify_ms = 20;  // of which 5 for the check
  trial.measure_ms = 80;
  trial.warm_up_ms = 4;
  trial.evict_ms = 16;
  trial.sample_ms = 30;
  trial.wait_ms = 20;
  store_.add_trial(session_, context_, trial);
  trial.config = example_config(3);
  trial.status = TrialStatus::dropped;
  trial.reason = "slower than the best so far";
  store_.add_trial(session_, context_, trial);
  const std::string report = markdown_report(store_);
  EXPECT_HOLDS(report, "3 trials, 3 usable, 1 dropped early.");
  EXPECT_HOLDS(report,
               "| Session | Began | Ran | Dropped early | Device time | Per trial | load | inputs | check | warm up | "
               "evict | sample | wait | other |\n|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  EXPECT_HOLDS(report, "| 2 | 1 | 0 s | 100 ms | 10 % | 5 % | 5 % | 4 % | 16 % | 30 % | 20 % | 10 % |");
  EXPECT_HOLDS(markdown_report(store_, {.kernel = "matmul"}), "of all kernels of these sessions");
  const std::int64_t another = begin_example_session(store_, context_);
  store_.add_trial(another, context_, timed(4, 90));
  EXPECT_LACKS(markdown_report(store_, {.sessions = {another}}), "Time of trials");
}

}  // namespace
}  // namespace pascaline::testing
