#include "cli/tune/live_view.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "app/text.hpp"
#include "core/error.hpp"
#include "tests/cli/terminal.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

using namespace std::chrono_literals;
using cli::LiveView;
using cli::LiveViewOptions;
using Lines = std::vector<std::string>;

DeviceProgress example_progress() {
  DeviceProgress device;
  device.device = "cuda:0";
  device.name = "NVIDIA H200";
  device.problem = "M=512,N=2048,K=2048";
  device.place.index = 3;
  device.place.count = 12;
  device.stage = "search";
  device.done = 42;
  device.planned = 100;
  device.best_us = 12.31;
  device.default_us = 20.1;
  device.card.temperature_c = 61;
  device.card.sm_clock_mhz = 1980;
  device.card.power_w = 209.6;
  device.governor.state = "measuring";
  return device;
}

SweepView example_view() {
  SweepView view;
  view.devices = {example_progress()};
  view.trials = 152;
  view.ok = 140;
  view.compiling = 8;
  view.compile_workers = 16;
  view.problems_done = 3;
  view.problems = 12;
  view.elapsed_s = 751;
  view.eta_s = 2410;
  return view;
}

const Lines kBlock{"cuda:0 NVIDIA H200   [3/12] M=512,N=2048,K=2048   search 42/100",
                   "  best 12.31 us = 1.63x the default (20.10 us)   61 °C  1980 MHz  210 W  measuring",
                   "152 trials, 140 usable · compiling 8/16 · 3/12 problems · 0:12:31 elapsed, about 0:40:10 left"};

TEST(ViewLinesTest, ResultsWithoutFinalsAreProvisional) {
  SweepView view = example_view();
  view.provisional = {"toy N=1", "toy N=2"};
  const std::vector<std::string> lines = cli::view_lines(view);
  EXPECT_EQ(lines.at(lines.size() - 2), "provisional, without finals so far (2): toy N=1; toy N=2");
}

TEST(ViewLinesTest, EverythingThereIs) { EXPECT_EQ(cli::view_lines(example_view()), kBlock); }

TEST(ViewLinesTest, WhatIsNotThereIsLeftOut) {
  SweepView view;
  EXPECT_EQ(cli::view_lines(view), Lines{"0 trials, 0 usable · 0:00:00 elapsed"});
  view.devices.resize(1);
  view.devices[0].device = "host";
  view.devices[0].stage = "idle";
  EXPECT_EQ(cli::view_lines(view), (Lines{"host   idle", "  no time yet", "0 trials, 0 usable · 0:00:00 elapsed"}));
  view.devices[0] = example_progress();
  view.devices[0].card.temperature_c.reset();
  view.devices[0].card.power_w.reset();
  view.devices[0].planned = 0;
  view.devices[0].default_us = 0;
  EXPECT_EQ(cli::view_lines(view)[0], "cuda:0 NVIDIA H200   [3/12] M=512,N=2048,K=2048   search 42");
  EXPECT_EQ(cli::view_lines(view)[1], "  best 12.31 us   1980 MHz  measuring");
}

TEST(ViewLinesTest, WhatIsThereAtTimes) {
  SweepView view = example_view();
  view.dropped = 31;
  view.duplicates = 9;
  view.rejected = 2;
  view.budget_left_s = 60;
  view.devices[0].best_us = 0;
  view.devices[0].label = "prefill: q_proj";
  view.devices[0].stage = "waiting for the compiler";
  view.devices[0].governor.state = "gave_up";
  view.devices[0].governor.reason = "too hot for 15 minutes";
  const Lines lines = cli::view_lines(view);
  EXPECT_TRUE(lines[0].ends_with("   waiting for the compiler 42/100   (prefill: q_proj)")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("  default 20.10 us   61 °C")) << lines[1];
  EXPECT_TRUE(lines[1].ends_with("  gave up: too hot for 15 minutes")) << lines[1];
  view.devices[0].stage = "paused";
  view.devices[0].pause_reason = "the lid is closed";
  EXPECT_TRUE(cli::view_lines(view)[0].ends_with("   paused 42/100   (prefill: q_proj)")) << cli::view_lines(view)[0];
  EXPECT_TRUE(cli::view_lines(view)[1].ends_with(": too hot for 15 minutes  paused: the lid is closed"));
  view.devices[0].governor.state = "measuring";
  view.devices[0].governor.reason.clear();
  EXPECT_EQ(cli::view_lines(view)[1].find("measuring"), std::string::npos) << "which it does not do now";
  EXPECT_TRUE(lines[2].starts_with("152 trials, 140 usable, 31 dropped early, 9 duplicates, 2 rejected · "))
      << lines[2];
  EXPECT_TRUE(lines[2].ends_with(", about 0:40:10 left, ends in 0:01:00 at the latest")) << lines[2];
  view.problems_untried = 4;
  EXPECT_NE(cli::view_lines(view)[2].find(" · 4 not started yet · "), std::string::npos);
  view.budget_left_s = 0;
  EXPECT_TRUE(cli::view_lines(view)[2].ends_with(" elapsed, time is up: finishing"))
      << "it promises no end that is past: " << cli::view_lines(view)[2];
}

TEST(ViewLinesTest, ControlCharactersNeverReachTheTerminal) {
  SweepView view = example_view();
  view.devices[0].name = "evil\033[2J\nname";
  view.devices[0].governor.reason = "a\rb";
  for (const std::string& line : cli::view_lines(view)) {
    EXPECT_EQ(line.find_first_of("\033\n\r"), std::string::npos) << line;
  }
}

TEST(CutToColumnsTest, CountsColumnsNotBytes) {
  EXPECT_EQ(columns_of("61 °C × 2"), 9U);
  EXPECT_EQ(columns_of("核心"), 4U);
  EXPECT_EQ(columns_of("e\u0301"), 1U);
  EXPECT_EQ(columns_of("\xff\xfe"), 2U);
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(cut_to_columns("61 °C", 5), "61 °C");
  EXPECT_EQ(cut_to_columns("61 °C", 4), "61 …");
  EXPECT_EQ(cut_to_columns("°°°°", 3), "°°…");
  EXPECT_EQ(cut_to_columns("核心核心", 4), "核…");
  EXPECT_EQ(cut_to_columns("核心", 4), "核心");
  EXPECT_EQ(cut_to_columns("abc", 1), "…");
  EXPECT_EQ(cut_to_columns("abc", 0), "");
  EXPECT_EQ(cut_to_columns("", 3), "");
}

// A view on a file in memory, with a clock that is moved by hand.
class LiveViewTest : public ::testing::Test {
 protected:
  MemoryFile out_;
  std::chrono::steady_clock::time_point now_{1h};
  TemporaryFolder folder_;

  void SetUp() override { ::setenv("TERM", "xterm", 1); }

  [[nodiscard]] LiveViewOptions options(bool terminal, int columns = 200) {
    LiveViewOptions wanted;
    wanted.terminal = terminal;
    wanted.columns = columns;
    wanted.out = out_.file();
    wanted.now = [this] { return now_; };
    return wanted;
  }
  [[nodiscard]] Lines screen(std::size_t columns = 0) const { return screen_after(out_.text(), columns); }
};

TEST_F(LiveViewTest, BlockStaysBelowTheLastingLines) {
  LiveView live(options(true));
  live.line("one");
  EXPECT_EQ(screen(), Lines{"one"});
  live.update(example_view());
  EXPECT_EQ(screen(), (Lines{"one", kBlock[0], kBlock[1], kBlock[2]}));
  live.line("two\nthree");
  EXPECT_EQ(screen(), (Lines{"one", "two", "three", kBlock[0], kBlock[1], kBlock[2]}));
  now_ += 1s;
  SweepView fewer = example_view();
  fewer.devices.clear();
  live.update(fewer);
  EXPECT_EQ(screen(), (Lines{"one", "two", "three", kBlock[2]}));
  live.finish();
  EXPECT_EQ(screen(), (Lines{"one", "two", "three"}));
  live.line("four");
  EXPECT_EQ(screen(), (Lines{"one", "two", "three", "four"}));
  live.update(example_view());
  EXPECT_EQ(screen().size(), 7U) << "an update brings it back";
}

TEST_F(LiveViewTest, BlockGoesWithTheView) {
  {
    LiveView live(options(true));
    live.line("one");
    live.update(example_view());
  }
  EXPECT_EQ(screen(), Lines{"one"});
}

TEST_F(LiveViewTest, RedrawsFiveTimesASecondAtMost) {
  LiveView live(options(true));
  std::size_t redraws = 0;
  std::size_t written = 0;
  for (int i = 0; i < 1000; ++i) {
    SweepView view = example_view();
    view.trials = i;
    live.update(view);
    redraws += out_.text().size() > written ? 1 : 0;
    written = out_.text().size();
    now_ += 1ms;
  }
  EXPECT_EQ(redraws, 5U);
  live.line("a line shows what is newest");
  EXPECT_TRUE(screen().back().starts_with("999 trials")) << screen().back();
}

TEST_F(LiveViewTest, NarrowTerminal) {
  LiveView live(options(true, 20));
  live.update(example_view());
  EXPECT_EQ(screen(20), (Lines{"cuda:0 NVIDIA H200 …", "  best 12.31 us = 1…", "152 trials, 140 usa…"}));
  now_ += 1s;
  live.update(example_view());
  EXPECT_EQ(screen(20).size(), 3U);
}

TEST_F(LiveViewTest, CutsBetweenCharacters) {
  for (int columns = 1; columns < 90; ++columns) {
    MemoryFile out;
    LiveViewOptions wanted = options(true, columns);
    wanted.out = out.file();
    LiveView live(wanted);
    live.update(example_view());
    const Lines lines = screen_after(out.text(), static_cast<std::size_t>(columns));
    ASSERT_EQ(lines.size(), 3U) << columns;
    for (const std::string& line : lines) {
      EXPECT_LE(columns_of(line), static_cast<std::size_t>(columns));
      EXPECT_EQ(line.find("\xef\xbf\xbd"), std::string::npos);
    }
  }
}

TEST_F(LiveViewTest, LowTerminalKeepsTheTotals) {
  SweepView view = example_view();
  view.devices.resize(8, example_progress());
  LiveViewOptions wanted = options(true);
  for (const auto& [rows, lines] : {std::pair(5, 4U), {2, 1U}, {1, 1U}, {100, 17U}}) {
    MemoryFile out;
    wanted.out = out.file();
    wanted.rows = rows;
    LiveView live(wanted);
    live.update(view);
    EXPECT_EQ(screen_after(out.text()).size(), lines);
    EXPECT_EQ(screen_after(out.text()).back(), kBlock[2]);
  }
}

TEST_F(LiveViewTest, WindowThatCannotBeAskedIsEightyWide) {
  LiveView live(options(true, 0));
  live.update(example_view());
  EXPECT_EQ(columns_of(screen(80)[2]), 80U);
}

TEST_F(LiveViewTest, ElsewhereAPlainLineEveryTenSeconds) {
  LiveView live(options(false));
  const std::string status =
      "cuda:0 [3/12] M=512,N=2048,K=2048 search 42/100, best 12.31 us = 1.63x the default (20.10 us); 152 trials, 140 "
      "usable · compiling 8/16 · 3/12 problems · 0:12:31 elapsed, about 0:40:10 left\n";
  live.line("one");
  live.update(example_view());
  EXPECT_EQ(out_.text(), "one\n") << "it has only just begun";
  now_ += 10s;
  live.update(example_view());
  EXPECT_EQ(out_.text(), "one\n" + status);
  now_ += 1min;
  SweepView later = example_view();
  later.elapsed_s += 60;
  later.devices[0].card.temperature_c = 70;
  live.update(later);
  EXPECT_EQ(out_.text(), "one\n" + status) << "nothing but the time and the sensors has changed";
  later.trials = 153;
  live.update(later);
  EXPECT_NE(out_.text().find("153 trials"), std::string::npos);
  now_ += 9s;
  later.trials = 154;
  live.update(later);
  EXPECT_EQ(out_.text().find("154 trials"), std::string::npos);
  now_ += 1s;
  live.update(later);
  EXPECT_NE(out_.text().find("154 trials"), std::string::npos);
  live.finish();
  EXPECT_EQ(out_.text().find('\033'), std::string::npos);
}

TEST_F(LiveViewTest, PlainLineOfADeviceThatHasNothing) {
  LiveView live(options(false));
  SweepView view;
  view.devices.resize(1);
  view.devices[0].device = "cuda:1";
  now_ += 10s;
  live.update(view);
  EXPECT_EQ(out_.text(), "cuda:1 starting; 0 trials, 0 usable · 0:00:00 elapsed\n");
}

TEST_F(LiveViewTest, TerminalWithoutCursorGetsPlainLines) {
  for (const char* term : {"dumb", ""}) {
    ::setenv("TERM", term, 1);
    LiveView live(options(true));
    live.update(example_view());
    live.line("one");
  }
  ::unsetenv("TERM");
  LiveView live(options(true));
  live.update(example_view());
  live.line("one");
  EXPECT_EQ(out_.text(), "one\none\none\n");
}

TEST_F(LiveViewTest, QuietWritesTheLogOnly) {
  LiveViewOptions wanted = options(true);
  wanted.quiet = true;
  wanted.log = folder_ / "night.log";
  LiveView live(wanted);
  live.line("one");
  live.update(example_view());
  live.finish();
  EXPECT_EQ(out_.text(), "");
  EXPECT_TRUE(bytes_of(folder_ / "night.log").ends_with("  one\n"));
}

TEST_F(LiveViewTest, LogIsAppendedToAtOnceWithTheTime) {
  write_bytes(folder_ / "night.log", "before\n");
  LiveViewOptions wanted = options(true);
  wanted.log = folder_ / "night.log";
  LiveView live(wanted);
  live.update(example_view());
  live.line("one\ntwo °C");
  const std::regex expected(
      "before\n\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d  one\n\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d  two °C\n");
  EXPECT_TRUE(std::regex_match(bytes_of(folder_ / "night.log"), expected)) << bytes_of(folder_ / "night.log");
}

TEST_F(LiveViewTest, LogThatCannotBeOpenedIsAnError) {
  LiveViewOptions wanted = options(false);
  for (const std::filesystem::path& file : {folder_ / "no/such/folder.log", folder_.path()}) {
    wanted.log = file;
    try {
      const LiveView live(wanted);
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
      EXPECT_NE(error.code(), 0);
    }
  }
}

TEST_F(LiveViewTest, LogThatCannotBeWrittenIsGivenUpWithOneWarning) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "there is no /dev/full";
  }
  LiveViewOptions wanted = options(false);
  wanted.log = "/dev/full";
  ::testing::internal::CaptureStderr();
  LiveView live(wanted);
  live.line("one");
  live.line("two");
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "pascaline: warning: cannot write the log file /dev/full: No space left on device; continuing without it\n");
  EXPECT_EQ(out_.text(), "one\ntwo\n");
}

TEST_F(LiveViewTest, LinesHoldNoCommandsForTheTerminal) {
  LiveView live(options(false));
  live.line("a \033[31mred\033[0m name\nand\ta tab");
  EXPECT_EQ(out_.text(), "a  [31mred [0m name\nand a tab\n");
}

}  // namespace
}  // namespace pascaline::testing
