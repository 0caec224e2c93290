#include "cli/tune/summary_table.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "app/text.hpp"

namespace pascaline::testing {
namespace {

using cli::summary_table;
using cli::SummaryRow;

std::vector<SummaryRow> example_rows() {
  return {{"M=1 N=64", "NVIDIA H200", 56, 120.5, 100, 1.205, 0.9994, false, 100, "BLOCK=64"},
          {"M=512 N=2048", "NVIDIA H200", 2, 2000, 2000, 1, 0.5, true, 8, "BLOCK=128"}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(SummaryTableTest, AlignsColumnsAndStatesTheMean) {
  EXPECT_EQ(summary_table(example_rows()),
            "problem       device       calls  default us  best us  speedup  confidence  trials  configuration\n"
            "M=1 N=64      NVIDIA H200     56      120.50   100.00    1.21x       0.999     100  BLOCK=64\n"
            "M=512 N=2048  NVIDIA H200      2     2000.00  2000.00    1.00x         tie       8  BLOCK=128\n"
            "mean speedup over defaults: 1.10x (geometric, of 2 decided problems)\n");
}

TEST(SummaryTableTest, CompilersHaveAColumnWhereThereWasAChoice) {
  std::vector<SummaryRow> rows = example_rows();
  rows[0].compiler = "nvrtc 11.8";
  const std::vector<std::string> lines = lines_of(summary_table(rows));
  EXPECT_TRUE(lines.at(0).ends_with("trials  compiler    configuration")) << lines[0];
  EXPECT_TRUE(lines.at(1).ends_with("   100  nvrtc 11.8  BLOCK=64")) << lines[1];
  EXPECT_TRUE(lines.at(2).ends_with("     8              BLOCK=128")) << lines[2];
}

TEST(SummaryTableTest, NothingToShow) { EXPECT_EQ(summary_table({}), ""); }

TEST(SummaryTableTest, ProblemsWithoutATimeAreLeftOutOfTheMean) {
  std::vector<SummaryRow> rows = example_rows();
  rows[0].default_us = 0;
  rows[0].speedup = 0;
  rows[0].confidence = 0;
  const std::string text = summary_table(rows);
  EXPECT_NE(text.find("     56           -   100.00        -           -     100  BLOCK=64\n"), std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("defaults: 1.00x (geometric, of 1 decided problem; 1 without both times)\n")) << text;
  for (SummaryRow& row : rows) {
    row.best_us = 0;
    row.speedup = 0;
    row.config = "";
  }
  const std::string none = summary_table(rows);
  EXPECT_EQ(none.find("mean speedup"), std::string::npos) << none;
  EXPECT_TRUE(none.ends_with("  -\n")) << none;
}

TEST(SummaryTableTest, DevicesThatShareTheProblemsHaveOneMean) {
  std::vector<SummaryRow> rows = example_rows();
  rows[1].device = "cuda:1";
  EXPECT_EQ(lines_of(summary_table(rows)).back(),
            "mean speedup over defaults: 1.10x (geometric, of 2 decided problems)");
}

TEST(SummaryTableTest, DevicesThatTunedTheSameProblemsHaveAMeanEach) {
  std::vector<SummaryRow> rows = example_rows();
  rows[1] = rows[0];
  rows[1].device = "NVIDIA TITAN Xp";
  rows[1].best_us = 50;
  rows[1].speedup = 2.41;
  const auto lines = lines_of(summary_table(rows));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[3], "mean speedup over defaults on NVIDIA H200: 1.21x (geometric, of 1 decided problem)");
  EXPECT_EQ(lines[4], "mean speedup over defaults on NVIDIA TITAN Xp: 2.41x (geometric, of 1 decided problem)");
}

TEST(SummaryTableTest, SaysWhatABaselineIsThatIsNotTheDefault) {
  std::vector<SummaryRow> rows{example_rows()[0]};
  rows[0].baseline = "BLOCK=32";
  rows[0].baseline_why = "timed_out: timed out";
  rows[0].provisional = true;
  const auto lines = lines_of(summary_table(rows));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_NE(lines[1].find("120.50*"), std::string::npos) << lines[1];
  EXPECT_NE(lines[1].find("0.999 provisional"), std::string::npos) << lines[1];
  EXPECT_EQ(lines[2],
            "* M=1 N=64: time of the usable configuration nearest to the default (timed_out: timed out): BLOCK=32");
  EXPECT_EQ(lines[3],
            "provisional: the best by the search's trials, without finals, which a longer sweep holds, or --resume");
  EXPECT_TRUE(lines[4].starts_with("mean speedup over defaults: ")) << "it counts: " << lines[4];
}

TEST(SummaryTableTest, NamesADefaultOfWhichNothingIsKnownAsReportsDo) {
  std::vector<SummaryRow> rows{example_rows()[0]};
  rows[0].baseline = "BLOCK=32";
  EXPECT_NE(summary_table(rows).find("nearest to the default (not valid or not tried): "), std::string::npos)
      << summary_table(rows);
}

TEST(SummaryTableTest, WideCharactersAndControlCharactersKeepTheColumns) {
  std::vector<SummaryRow> rows = example_rows();
  rows[0].problem = "核 M×N";
  rows[1].device = "a\nb\033[2J";
  const auto lines = lines_of(summary_table(rows));
  ASSERT_EQ(lines.size(), 4U);
  const std::size_t column = columns_of(lines[0].substr(0, lines[0].find("configuration")));
  EXPECT_EQ(columns_of(lines[1].substr(0, lines[1].find("BLOCK"))), column);
  EXPECT_EQ(columns_of(lines[2].substr(0, lines[2].find("BLOCK"))), column);
  EXPECT_EQ(lines[2].find('\033'), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
