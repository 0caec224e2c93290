#include "report/show.hpp"

#include <SQLiteCpp/Database.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "db/merge.hpp"
#include "tests/report/report_fixture.hpp"

namespace pascaline::testing {
namespace {

using ShowTest = ReportFixture;

TEST_F(ShowTest, EmptyTablesSaySo) {
  EXPECT_EQ(show_text(store_, {.what = ShowWhat::winners}), "no winners\n");
  EXPECT_EQ(show_text(store_, {.what = ShowWhat::trials}), "no trials\n");
  EXPECT_EQ(show_json(store_, {.what = ShowWhat::trials}), nlohmann::json::array());
}

TEST_F(ShowTest, AWinnerWithoutFinalsIsProvisional) {
  store_.set_winner(context_, store_.add_trial(session_, context_, finalist(2, 60)), {}, 0.99);
  EXPECT_LACKS(show_text(store_, {.what = ShowWhat::winners}), "provisional");
  store_.set_winner(context_, store_.add_trial(session_, context_, timed(3, 50)), {}, 0.9);
  const std::string note = show_json(store_, {.what = ShowWhat::winners})[0]["note"];
  EXPECT_TRUE(note.starts_with("provisional; ")) << note;
  const std::string text = show_text(store_, {.what = ShowWhat::winners});
  EXPECT_EQ(count_of(text, "provisional: the best by the search's trials"), 1U) << text;
}

TEST_F(ShowTest, SessionsTellWhichRun) {
  store_.end_session(begin_example_session(store_, context_), "finished");
  const auto rows = show_json(store_, {.what = ShowWhat::sessions});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["trials"], 0);
  Trial dropped = timed(2, 100);
  dropped.load_ms = 1;
  dropped.status = TrialStatus::dropped;
  store_.add_trial(session_, context_, dropped);
  Trial measured = timed(3, 50);
  measured.load_ms = 1;
  store_.add_trial(session_, context_, measured);
  Trial duplicate = timed(4, 50);
  duplicate.shared_trial = store_.add_trial(session_, context_, finalist(3, 49));
  store_.add_trial(session_, context_, duplicate);
  store_.add_trial(session_, context_, failed_trial(5, TrialStatus::crashed, "it crashed"));
  const auto counted = show_json(store_, {.what = ShowWhat::sessions})[1];
  EXPECT_EQ(counted["trials"], 4);
  EXPECT_EQ(counted["ok"], 3);
  EXPECT_EQ(counted["dropped"], 1);
  EXPECT_EQ(counted["duplicates"], 1);
  EXPECT_EQ(counted["finals"], 1);
  EXPECT_EQ(rows[0]["state"], "finished");
  EXPECT_EQ(rows[1]["state"], "running");
  EXPECT_EQ(rows[1]["seed"], 0xffff'ffff'ffff'fff0);
  EXPECT_HOLDS(show_text(store_, {.what = ShowWhat::sessions}), "nvrtc 12.9 sm_61");
}

TEST_F(ShowTest, SessionsTakenOverTellFromWhere) {
  EXPECT_LACKS(show_text(store_, {.what = ShowWhat::sessions}), "imported_from");
  EXPECT_TRUE(show_json(store_, {.what = ShowWhat::sessions})[0]["imported_from"].is_null());
  Store all(folder_ / "all.db", OpenMode::create);
  merge_database(folder_ / "tuned.db", all);
  EXPECT_EQ(show_json(all, {.what = ShowWhat::sessions})[0]["imported_from"], "tuned.db");
  EXPECT_HOLDS(show_text(all, {.what = ShowWhat::sessions}), "imported_from");
}

// The emulated device has no registers, and nobody knows its occupancy.
TEST_F(ShowTest, NoRegistersAreNotKnown) {
  Trial emulated = timed(1, 100);
  emulated.resources = {};
  emulated.occupancy = 0;
  store_.add_trial(session_, context_, emulated);
  const auto row = show_json(store_, {.what = ShowWhat::trials})[0];
  EXPECT_TRUE(row["registers"].is_null());
  EXPECT_TRUE(row["occupancy"].is_null());
}

TEST_F(ShowTest, ANameOfMegabytesTakesOneLineOfBoundedLength) {
  DeviceRow device = example_device();
  device.name = std::string(3'000'000, 'x');
  ContextIds context = context_;
  context.device = store_.device_id(device);
  for (int tile = 1; tile <= 20; ++tile) {
    store_.add_trial(session_, context, timed(tile, tile));
  }
  EXPECT_LT(show_text(store_, {.what = ShowWhat::trials}).size(), 20'000U);
  EXPECT_LT(show_json(store_, {.what = ShowWhat::trials}).dump().size(), 40'000U);
}

TEST_F(ShowTest, ATextThatTheProgramNeverWritesIsRefusedInOneLine) {
  DeviceRow device = example_device();
  device.name = std::string(14'000'000, 'x');
  ContextIds context = context_;
  context.device = store_.device_id(device);
  store_.add_trial(session_, context, timed(1, 1));
  SQLite::Database changed((folder_ / "tuned.db").string(), SQLite::OPEN_READWRITE);
  changed.exec("UPDATE devices SET name = name || name WHERE length(name) > 1000000");
  try {
    std::ignore = show_text(store_, {.what = ShowWhat::trials});
    FAIL() << "it was read";
  } catch (const StoreError& error) {
    EXPECT_HOLDS(std::string(error.what()), "more than 16 MiB");
    EXPECT_LT(std::string_view(error.what()).size(), 500U);
  }
}

TEST_F(ShowTest, TrialsComeFastestFirstAndFailuresLast) {
  store_.add_trial(session_, context_, failed_trial(1, TrialStatus::crashed, "two\nlines"));
  store_.add_trial(session_, context_, timed(2, 100));
  store_.add_trial(session_, context_, timed(3, 50));
  const auto rows = show_json(store_, {.what = ShowWhat::trials});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["median_us"], 50.0);
  EXPECT_EQ(rows[1]["median_us"], 100.0);
  EXPECT_TRUE(rows[2]["median_us"].is_null());
  EXPECT_EQ(rows[2]["reason"], "two lines");
  EXPECT_EQ(show_json(store_, {.what = ShowWhat::trials, .limit = 2}).size(), 2U);
  const auto best = show_json(store_, {.what = ShowWhat::trials,
                                       .filter = {.problem = example_problem().text(), .status = TrialStatus::ok},
                                       .limit = 1});
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(best[0]["config"], "LAYOUT=row SCALE=0.5 TILE=3 UNROLL=1");
}

TEST_F(ShowTest, WinnersShowTheSpeedup) {
  store_.set_winner(context_, store_.add_trial(session_, context_, finalist(8, 100)), TimeSummary{250, 240, 260, 9}, 1);
  const auto rows = show_json(store_, {});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["speedup"], 2.5);
  EXPECT_HOLDS(show_text(store_, {}), "  speedup  ");
  EXPECT_EQ(rows[0]["default_us"], 250.0);
  EXPECT_EQ(show_json(store_, {.filter = {.problem = "matmul M=1"}}).size(), 0U);
}

TEST_F(ShowTest, EnergyMarksAndSharedResultsAreShownWhereThereAreAny) {
  Trial plain = timed(2, 100);
  plain.reason.clear();
  plain.samples.clear();
  plain.energy_mj.reset();
  const std::int64_t first = store_.add_trial(session_, context_, plain);
  EXPECT_LACKS(show_text(store_, {.what = ShowWhat::trials}), "energy_mj");
  EXPECT_LACKS(show_text(store_, {.what = ShowWhat::trials}), "note");
  EXPECT_TRUE(show_json(store_, {.what = ShowWhat::trials})[0]["note"].is_null());

  Trial shared = plain;
  shared.config = example_config(3);
  shared.shared_trial = first;
  store_.add_trial(session_, context_, shared);
  const std::string text = show_text(store_, {.what = ShowWhat::trials});
  EXPECT_HOLDS(text, "shares the result of trial " + std::to_string(first));
  EXPECT_LACKS(text, "energy_mj");

  store_.set_winner(context_, store_.add_trial(session_, context_, finalist(8, 50)), std::nullopt, 1);
  const auto rows = show_json(store_, {});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["energy_mj"], 18.25);
  EXPECT_EQ(rows[0]["note"], "2 samples not counted: 1 clock_drift, 1 power_throttle");
  EXPECT_HOLDS(show_text(store_, {}), "energy_mj");
}

TEST_F(ShowTest, ColumnsLineUp) {
  store_.add_trial(session_, context_, timed(2, 100));
  Trial wide = timed(3, 12'345);
  wide.config = Config({{"NAME", std::string("größer")}});
  store_.add_trial(session_, context_, wide);
  const std::string text = show_text(store_, {.what = ShowWhat::trials});
  ASSERT_EQ(count_of(text, "\n"), 3U);
  const auto second = text.find('\n') + 1;
  const auto third = text.find('\n', second) + 1;
  EXPECT_EQ(text.find("config"), text.find("LAYOUT") - second);
  EXPECT_EQ(text.find("config"), text.find("NAME=") - third);
  EXPECT_EQ(text.find("reason"), text.find("a note") - second);
}

}  // namespace
}  // namespace pascaline::testing
