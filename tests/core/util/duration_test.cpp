#include "core/util/duration.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace pascaline {
namespace {

using SystemClock = std::chrono::system_clock;

TEST(DurationTest, UnitsAndTheirSums) {
  EXPECT_EQ(parse_duration_s("8h"), 8 * 3600);
  EXPECT_EQ(parse_duration_s("90m"), 5400);
  EXPECT_EQ(parse_duration_s("45s"), 45);
  EXPECT_EQ(parse_duration_s("1h30m"), 5400);
  EXPECT_EQ(parse_duration_s("1.5h"), 5400);
  EXPECT_EQ(parse_duration_s("1h2m3s"), 3723);
  EXPECT_EQ(parse_duration_s("1h3s"), 3603);
  EXPECT_EQ(parse_duration_s("0.25s"), 0.25);
  EXPECT_EQ(parse_duration_s("0s"), 0);
  EXPECT_EQ(parse_duration_s("100h"), 360000);
}

TEST(DurationTest, WhatIsNoneNamesTextAndUnits) {
  for (const char* text :
       {"",    "8",     "1.5", "h",    "8 h",  " 8h",  "8h ",  "8d",   "8hours",    "1h30", "30m1h", "1h1h",
        "-1h", "1h-1m", "+1h", "nanh", "infh", "1e3h", "0x1h", "1,5h", "99999999h", "h8",   "1..5h"}) {
    try {
      const double seconds = parse_duration_s(text);
      ADD_FAILURE() << "'" << text << "' was taken as " << seconds << " s";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(fmt::format("'{}'", text)), std::string::npos) << message;
      EXPECT_NE(message.find("h, m or s"), std::string::npos) << message;
    }
  }
}

TEST(DurationTest, ClockText) {
  EXPECT_EQ(clock_text(0), "0:00:00");
  EXPECT_EQ(clock_text(3723), "1:02:03");
  EXPECT_EQ(clock_text(59.99), "0:00:59");
  EXPECT_EQ(clock_text(360000), "100:00:00");
  EXPECT_EQ(clock_text(-5), "0:00:00");
}

TEST(DurationTest, DurationText) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(45.4), "45 s");
  EXPECT_EQ(duration_text(59.6), "1 min");
  EXPECT_EQ(duration_text(330), "5 min 30 s");
  EXPECT_EQ(duration_text(3599.7), "1 h");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
  EXPECT_EQ(duration_text(7199), "2 h");
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(200000), "55 h 33 min");
}

// Sets the time zone of the process for a test.
class TimeOfDayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* zone = std::getenv("TZ")) {
      before_ = zone;
    }
    in_zone(kBerlin);
  }
  void TearDown() override {
    if (before_) {
      ::setenv("TZ", before_->c_str(), 1);
    } else {
      ::unsetenv("TZ");
    }
    ::tzset();
  }

  // Rules spelled out, so that no database of time zones is needed.
  static constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";
  static constexpr const char* kNewYork = "EST5EDT,M3.2.0,M11.1.0";

  static void in_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  static SystemClock::time_point utc(int year, int month, int day, int hour, int minute, int second = 0) {
    std::tm fields{};
    fields.tm_year = year - 1900;
    fields.tm_mon = month - 1;
    fields.tm_mday = day;
    fields.tm_hour = hour;
    fields.tm_min = minute;
    fields.tm_sec = second;
    return SystemClock::from_time_t(::timegm(&fields));
  }
  static std::string error_of(const std::string& text, SystemClock::time_point now) {
    try {
      const auto moment = parse_time_of_day(text, now);
      return fmt::format("no error but {}", SystemClock::to_time_t(moment));
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(TimeOfDayTest, LaterTodayOrTomorrow) {
  const auto evening = utc(2026, 11, 21, 21, 0);  // 22:00 in Berlin
  EXPECT_EQ(parse_time_of_day("07:00", evening), utc(2026, 11, 22, 6, 0));
  EXPECT_EQ(parse_time_of_day("7:00", evening), utc(2026, 11, 22, 6, 0));
  EXPECT_EQ(parse_time_of_day("07:00:30", evening), utc(2026, 11, 22, 6, 0, 30));
  EXPECT_EQ(parse_time_of_day("23:30", evening), utc(2026, 11, 21, 22, 30));
  EXPECT_EQ(parse_time_of_day("00:00", evening), utc(2026, 11, 21, 23, 0));
}

TEST_F(TimeOfDayTest, RightNowIsTomorrow) {
  const auto now = utc(2026, 11, 21, 6, 0);
  EXPECT_EQ(parse_time_of_day("07:00", now), utc(2026, 11, 22, 6, 0));
  EXPECT_EQ(parse_time_of_day("07:00", now + std::chrono::milliseconds(500)), utc(2026, 11, 22, 6, 0));
  EXPECT_EQ(parse_time_of_day("07:00", now - std::chrono::milliseconds(500)), now);
}

TEST_F(TimeOfDayTest, EndOfMonthAndYear) {
  EXPECT_EQ(parse_time_of_day("07:00", utc(2026, 12, 31, 20, 0)), utc(2027, 1, 1, 6, 0));
  EXPECT_EQ(parse_time_of_day("07:00", utc(2028, 2, 28, 20, 0)), utc(2028, 2, 29, 6, 0));
}

TEST_F(TimeOfDayTest, NightsInWhichSummerTimeBeginsAndEnds) {
  EXPECT_EQ(parse_time_of_day("07:00", utc(2026, 3, 28, 21, 0)), utc(2026, 3, 29, 5, 0));
  EXPECT_EQ(parse_time_of_day("07:00", utc(2026, 10, 24, 20, 0)), utc(2026, 10, 25, 6, 0));
}

TEST_F(TimeOfDayTest, TimeThatComesTwiceIsTheNextOne) {
  EXPECT_EQ(parse_time_of_day("02:30", utc(2026, 10, 24, 20, 0)), utc(2026, 10, 25, 0, 30));
  EXPECT_EQ(parse_time_of_day("02:30", utc(2026, 10, 25, 0, 45)), utc(2026, 10, 25, 1, 30));
  EXPECT_EQ(parse_time_of_day("02:30", utc(2026, 10, 25, 1, 45)), utc(2026, 10, 26, 1, 30));
  in_zone(kNewYork);
  EXPECT_EQ(parse_time_of_day("01:30", utc(2026, 11, 1, 5, 45)), utc(2026, 11, 1, 6, 30));
}

TEST_F(TimeOfDayTest, SkippedTimeIsAnHourLaterOnTheClock) {
  EXPECT_EQ(parse_time_of_day("02:30", utc(2026, 3, 28, 21, 0)), utc(2026, 3, 29, 1, 30));
  in_zone(kNewYork);
  EXPECT_EQ(parse_time_of_day("02:30", utc(2026, 3, 8, 3, 0)), utc(2026, 3, 8, 7, 30));
}

TEST_F(TimeOfDayTest, WithoutSummerTime) {
  in_zone("UTC0");
  EXPECT_EQ(parse_time_of_day("07:00", utc(2026, 7, 1, 6, 59)), utc(2026, 7, 1, 7, 0));
  in_zone("<+0545>-5:45");
  EXPECT_EQ(parse_time_of_day("07:00", utc(2026, 7, 1, 6, 59)), utc(2026, 7, 2, 1, 15));
}

TEST_F(TimeOfDayTest, WithADate) {
  const auto now = utc(2026, 11, 21, 21, 0);
  EXPECT_EQ(parse_time_of_day("2026-11-22 07:00", now), utc(2026, 11, 22, 6, 0));
  EXPECT_EQ(parse_time_of_day("2027-07-01 07:00:30", now), utc(2027, 7, 1, 5, 0, 30));
  EXPECT_EQ(parse_time_of_day("2026-11-22T07:00", now), utc(2026, 11, 22, 6, 0));
  EXPECT_EQ(parse_time_of_day("2027-03-28 02:30", now), utc(2027, 3, 28, 1, 30));
}

TEST_F(TimeOfDayTest, DateThatIsPastOrNone) {
  const auto now = utc(2026, 11, 21, 21, 0);
  EXPECT_NE(error_of("2026-11-21 07:00", now).find("'2026-11-21 07:00' is in the past"), std::string::npos)
      << error_of("2026-11-21 07:00", now);
  EXPECT_NE(error_of("2026-11-21 22:00", now).find("past"), std::string::npos) << "now itself";
  EXPECT_NE(error_of("2027-02-30 07:00", now).find("calendar"), std::string::npos);
  EXPECT_EQ(parse_time_of_day("2036-11-21 07:00", now), utc(2036, 11, 21, 6, 0));
  for (const char* const far : {"2036-12-01 07:00", "2262-05-01 07:00", "2500-01-01 07:00", "9999-12-31 07:00"}) {
    EXPECT_NE(error_of(far, now).find("is more than ten years ahead"), std::string::npos) << error_of(far, now);
  }
}

TEST_F(TimeOfDayTest, WhatIsNoTimeIsNamedWithExamples) {
  const auto now = utc(2026, 11, 21, 21, 0);
  for (const char* text : {"", "7", "7h", "24:00", "07:60", "07:00:60", "07:00 ", " 07:00", "07:00pm", "-1:00",
                           "tomorrow", "2026-11-22", "2026-13-01 07:00", "22.11.2026 07:00", "07:00:00:00"}) {
    const std::string message = error_of(text, now);
    EXPECT_NE(message.find(fmt::format("'{}'", text)), std::string::npos) << message;
    EXPECT_NE(message.find("07:00:30"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace pascaline
