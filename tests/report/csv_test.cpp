#include <fmt/format.h>

#include <optional>
#include <sstream>
#include <type_traits>
#include <vector>

#include "report/fields.hpp"
#include "report/report.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

using CsvTest = ReportFixture;
using Rows = std::vector<std::vector<std::string>>;

// As RFC 4180 has it, strictly: lines end with CRLF and a quote stands only in a quoted field.
Rows parse(const std::string& text) {
  Rows rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& field = rows.back().back();
    if (quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[i++];
    } else if (text[i] == '"') {
      EXPECT_TRUE(quoted || field.empty());
      quoted = !quoted;
    } else if (!quoted && text[i] == ',') {
      rows.back().emplace_back();
    } else if (!quoted && text[i] == '\r') {
      EXPECT_EQ(text[++i], '\n');
      rows.push_back({""});
    } else {
      field += text[i];
    }
  }
  rows.pop_back();
  return rows;
}

std::string cell(const Rows& rows, std::size_t row, const std::string& column) {
  for (std::size_t i = 0; i < rows[0].size(); ++i) {
    if (rows[0][i] == column) {
      return rows[row].at(i);
    }
  }
  ADD_FAILURE() << "no column " << column;
  return {};
}

TEST_F(CsvTest, EmptyDatabaseHasTheHeaderOnly) {
  const Rows rows = parse(csv_report(store_));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].front(), "trial_id");
  EXPECT_EQ(rows[0].back(), "counted_as");
}

TEST_F(CsvTest, EveryLineHasEveryColumn) {
  store_.problem_id(example_problem(), 2e9, 4e8);
  store_.add_trial(session_, context_, timed(1, 100));
  Trial failed = failed_trial(2, TrialStatus::wrong_result, "off by \"one\", or\r\ntwo");
  failed.max_error = 0.5;
  failed.shared_trial = 1;
  store_.add_trial(session_, context_, failed);
  const Rows rows = parse(csv_report(store_));
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.size(), rows[0].size());
  }
  EXPECT_EQ(cell(rows, 1, "device"), "NVIDIA GeForce GTX 1080 Ti");
  EXPECT_EQ(cell(rows, 1, "problem"), "matmul M=512 N=2048 K=1024 STORAGE=float16");
  EXPECT_EQ(cell(rows, 1, "config"), "LAYOUT=row SCALE=0.5 TILE=1 UNROLL=1");
  EXPECT_EQ(cell(rows, 1, "median_us"), "100");
  EXPECT_EQ(cell(rows, 1, "gflops"), "20000");
  EXPECT_EQ(cell(rows, 1, "gbs"), "4000");
  EXPECT_EQ(cell(rows, 1, "is_default"), "1");
  EXPECT_EQ(cell(rows, 1, "registers"), "64");
  EXPECT_EQ(cell(rows, 1, "ffma"), "512");
  EXPECT_EQ(cell(rows, 1, "started_unix_ms"), "1700000000123");
  EXPECT_EQ(cell(rows, 2, "status"), "wrong_result");
  EXPECT_EQ(cell(rows, 2, "reason"), "off by \"one\", or\r\ntwo");
  EXPECT_EQ(cell(rows, 2, "median_us"), "");
  EXPECT_EQ(cell(rows, 2, "gflops"), "");
  EXPECT_EQ(cell(rows, 2, "max_error"), "0.5");
  EXPECT_EQ(cell(rows, 1, "canary_us"), "20.5");
  EXPECT_EQ(cell(rows, 1, "clock_scale"), "0.96875");
  EXPECT_EQ(cell(rows, 1, "energy_mj"), "18.25");
  EXPECT_EQ(cell(rows, 1, "shared_trial_id"), "");
  EXPECT_EQ(cell(rows, 2, "canary_us"), "");
  EXPECT_EQ(cell(rows, 2, "clock_scale"), "1");
  EXPECT_EQ(cell(rows, 2, "energy_mj"), "");
  EXPECT_EQ(cell(rows, 2, "shared_trial_id"), "1");
}

TEST_F(CsvTest, EveryFieldOfATrialHasItsColumn) {
  const Trial trial = distinct_trial();
  store_.add_trial(session_, context_, trial);
  const Rows rows = parse(csv_report(store_));
  for_each_field(trial, [&](const std::string& name, const auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Field, std::optional<double>>) {
      EXPECT_EQ(cell(rows, 1, name), fmt::format("{}", value.value())) << name;
    } else if constexpr (std::is_same_v<Field, bool>) {
      EXPECT_EQ(cell(rows, 1, name), value ? "1" : "0") << name;
    } else if constexpr (std::is_arithmetic_v<Field> || std::is_same_v<Field, std::string>) {
      EXPECT_EQ(cell(rows, 1, name), fmt::format("{}", value)) << name;
    }
  });
}

TEST_F(CsvTest, NarrowsByDeviceAndKernel) {
  store_.add_trial(session_, context_, timed(1, 100));
  EXPECT_EQ(parse(csv_report(store_, {.kernel = "matmul"})).size(), 2U);
  EXPECT_EQ(parse(csv_report(store_, {.kernel = "softmax"})).size(), 1U);
  EXPECT_EQ(parse(csv_report(store_, {.device = "Some CPU"})).size(), 1U);
}

TEST_F(CsvTest, EveryColumnHasATypeAndAMeaning) {
  std::vector<std::string> described;
  for (const FieldText& column : csv_columns()) {
    EXPECT_FALSE(column.type.text.empty()) << column.name;
    EXPECT_TRUE(column.meaning.ends_with('.')) << column.name;
    described.push_back(column.name);
  }
  EXPECT_EQ(described, parse(csv_report(store_)).at(0));
}

TEST_F(CsvTest, CountsAddUpToThoseOfTheReport) {
  store_.add_trial(session_, context_, timed(1, 100));
  store_.add_trial(session_, context_, finalist(1, 99));
  store_.add_trial(session_, context_, failed_trial(5, TrialStatus::crashed, "it crashed"));
  const Rows rows = parse(csv_report(store_));
  EXPECT_EQ(cell(rows, 1, "counted_as"), "trials ok");
  EXPECT_EQ(cell(rows, 2, "counted_as"), "finals");
  EXPECT_TRUE(cell(rows, 3, "counted_as").starts_with("trials"));
}

}  // namespace
}  // namespace pascaline::testing
