#include <gtest/gtest.h>

#include "tests/db/exchange/samples.hpp"

namespace pascaline {
namespace {

using testing::csv_sample;
using testing::refusal;
using testing::with;

TEST(RecordedCsv, RowsAreRead) {
  const RecordedSpace space = parse_recorded_space(csv_sample(), "stencil__CARD.csv.gz");
  EXPECT_EQ(space.name, "stencil__CARD");
  EXPECT_EQ(space.format, "csv");
  ASSERT_EQ(space.parameters.size(), 3U);
  EXPECT_EQ(space.parameters[0].values, (std::vector<Value>{std::int64_t{2}, std::int64_t{4}, std::int64_t{16}}));
  EXPECT_EQ(space.parameters[1].values, (std::vector<Value>{std::string("a"), std::string("b")}));
  EXPECT_EQ(space.parameters[2].values, (std::vector<Value>{0.25, 0.5, std::int64_t{1}}));
  ASSERT_EQ(space.trials.size(), 4U);
  EXPECT_EQ(space.trials[0].indices, (std::vector<std::uint16_t>{1, 0, 1}));
  EXPECT_EQ(space.trials[0].time_us, 2500);
  EXPECT_EQ(space.trials[0].measure_ms, 100.5);
  EXPECT_EQ(space.trials[0].cost_ms(), 100.5);
  EXPECT_EQ(space.trials[1].status, TrialStatus::compile_failed);
  EXPECT_EQ(space.trials[2].measure_ms, 0);
  EXPECT_EQ(space.trials[3].status, TrialStatus::launch_failed);
  EXPECT_EQ(space.trials[3].reason, "runtime");
}

TEST(RecordedCsv, OtherKindsOfFailureAreFailures) {
  for (const auto& [word, status] :
       std::vector<std::pair<std::string, TrialStatus>>{{"constraints", TrialStatus::rejected},
                                                        {"timeout", TrialStatus::timed_out},
                                                        {"correctness", TrialStatus::wrong_result},
                                                        {"crashed", TrialStatus::crashed},
                                                        {"compile_failed", TrialStatus::compile_failed},
                                                        {"InvalidConfig", TrialStatus::rejected},
                                                        {"dropped", TrialStatus::launch_failed},  // without a time
                                                        {"something else", TrialStatus::launch_failed}}) {
    const RecordedTrial trial = parse_recorded_space(with(csv_sample(), "runtime", word), "a.csv").trials[3];
    EXPECT_EQ(trial.status, status) << word;
    EXPECT_EQ(trial.reason, word);
  }
}

TEST(RecordedCsv, LineEndsAndQuotesAreUnderstood) {
  const RecordedSpace space = parse_recorded_space(
      "\xef\xbb\xbf\"p, q\",flag,time_ms,status,eval_cost_ms\r\n\"a "
      "\"\"b\"\"\r\n,c\",True,1,ok,2\r\n\r\nd,False,2,ok,2",
      "a.csv");
  EXPECT_EQ(space.parameters[0].name, "p, q");
  EXPECT_EQ(space.parameters[0].values, (std::vector<Value>{std::string("a \"b\"\r\n,c"), std::string("d")}));
  EXPECT_EQ(space.parameters[1].values, (std::vector<Value>{true, false}));
}

TEST(RecordedCsv, ARowWhoseTimeIsNotPositiveIsLeftOut) {
  for (const char* time : {"0", "0.0", "-2.5", "nan", "inf"}) {
    const RecordedSpace space = parse_recorded_space(with(csv_sample(), "2.5,ok", time + std::string(",ok")), "a.csv");
    EXPECT_EQ(space.trials.size(), 3U) << time;
    EXPECT_EQ(space.left_out, 1U) << time;
  }
  EXPECT_EQ(refusal("x,time_ms,status,eval_cost_ms\n1,0,ok,1\n2,0,ok,1\n"),
            "sample: row 3: 2 configurations, of which none has a positive time");
}

TEST(RecordedCsv, BadTablesAreRefusedWithTheirRow) {
  const std::string whole = csv_sample();
  const std::vector<std::tuple<std::string, std::string, std::string>> cases{
      {"4,a,0.5,2.5,ok,100.5", "4,a,0.5,2.5,ok", "sample: row 2: has 5 cells, but the heading has 6"},
      {"4,a,0.5,2.5,ok,100.5", "4,a,0.5,2.5,ok,100.5,1", "sample: row 2: has 7 cells, but the heading has 6"},
      {"2.5,ok", "2.5x,ok", "sample: row 2: time_ms is '2.5x', which is not a number"},
      {"2.5,ok", ",ok", "sample: row 2: time_ms is '', which is not a number"},
      {",compile,", "3,compile,", "sample: row 3: the status is 'compile', so time_ms must be empty, and it is '3'"},
      {",compile,", ",,", "sample: row 3: the status is empty"},
      {"compile,50", "compile,much", "sample: row 3: eval_cost_ms is 'much', which is not a duration"},
      {"compile,50", "compile,-1", "sample: row 3: eval_cost_ms is '-1', which is not a duration"},
      {"2,b,0.25", "2,,0.25", "sample: row 3: the parameter 'mode' has no value"},
      {"2,b,0.25", "2,\"b,0.25", "sample: row 3: a quote is not closed"},
      {"2,a,0.25,1.25", "4,a,0.5,1.25",
       "sample: row 4: duplicate of row 2, with a different result (2500 us there, 1250 us here)"},
      {"2,b,0.25", "2,b\xe9,0.25", "sample: row 3: cell 2 is not valid UTF-8; save the table in that encoding"},
      {"x,mode", "x,mod\xe9", "sample: row 1: cell 2 is not valid UTF-8; save the table in that encoding"},
      {"2.5,ok", "1.5e12,ok", "sample: row 2: a time is 1500000000000 ms, more than the plausible 1000000000000 ms"},
      {"compile,50", "compile,2e15",
       "sample: row 3: the configuration cost 2000000000000000 ms, more than the plausible "
       "1000000000000000 ms"},
      {"x,mode", "x,x", "sample: row 1: the parameter 'x' is a duplicate"},
      {"x,mode", "x,", "sample: row 1: a parameter has no name"},
  };
  for (const auto& [from, to, message] : cases) {
    EXPECT_EQ(refusal(with(whole, from, to)), message) << to;
  }
  const std::string no_table =
      "sample: row 1: this is neither JSON nor a table of a recorded space, whose heading is the parameters' names, "
      "time_ms, status, eval_cost_ms";
  EXPECT_EQ(refusal("hello"), no_table);
  EXPECT_EQ(refusal("time_ms,status,eval_cost_ms\n1,ok,2\n"), no_table);
  EXPECT_EQ(refusal(with(whole, "time_ms", "time_us")), no_table);
  EXPECT_EQ(refusal(whole.substr(0, whole.find('\n') + 1)), "sample: row 1: there are no rows below the heading");
}

TEST(RecordedCsv, JsonThatIsNoObjectIsNoTable) {
  for (const char* text : {"null", " true\n", "12.5", "\"text\""}) {
    EXPECT_NE(refusal(text).find("sample: this JSON is neither a cache of Kernel Tuner"), std::string::npos) << text;
  }
}

TEST(RecordedCsv, AParameterHasAtMostAsManyValuesAsAnIndexCanTell) {
  std::string text = "x,time_ms,status,eval_cost_ms\n";
  for (int i = 0; i < 65536; ++i) {
    text += std::to_string(i) + ",1,ok,1\n";
  }
  EXPECT_EQ(refusal(text), "sample: row 65537: the parameter 'x' has more than 65535 values");
}

}  // namespace
}  // namespace pascaline
