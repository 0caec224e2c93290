#include "tests/db/merge_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(MergeTest, EverythingOfASessionComesAlong) {
  make(other_, 4);
  decide_in(other_, 2, 0.9);
  const std::string before = bytes_of(other_);
  const MergeCounts counts = merge();
  EXPECT_EQ(counts.sessions, 2);
  EXPECT_EQ(counts.trials, 5);
  EXPECT_EQ(counts.samples, 5 * 30);
  EXPECT_EQ(counts.readings, 1);
  EXPECT_EQ(counts.winners_added, 1);
  EXPECT_EQ(counts.trials_known + counts.winners_kept + counts.sessions_known + counts.sessions_running, 0);
  EXPECT_EQ(content_of(mine_), content_of(other_));
  EXPECT_EQ(bytes_of(other_), before);
  expect_sound(mine_);
  const Store store(mine_, OpenMode::read_only);
  EXPECT_EQ(store.sessions().at(0).imported_from, "other.db");
  EXPECT_EQ(store.telemetry(store.sessions().at(1).id).at(0).power_w, 180.5);
}

TEST_F(MergeTest, RowsGetIdsOfTheirOwn) {
  make(mine_, 3, 100);
  make(other_, 4);
  merge();
  const Store store(mine_, OpenMode::read_only);
  const auto trials = store.trials({.with_samples = true});
  ASSERT_EQ(trials.size(), 7U);
  EXPECT_EQ(trials[2].trial.shared_trial, trials[0].id);
  EXPECT_EQ(trials[6].trial.shared_trial, trials[3].id) << "not a trial of mine";
  EXPECT_EQ(trials[3].trial.config, example_config(1));
  Trial expected = example_trial(2);
  expect_equal(trials[4].trial, expected);
  expect_equal(trials[4].trial.time, expected.time);
  EXPECT_EQ(trials[4].trial.samples.size(), 30U);
  EXPECT_EQ(trials[4].trial.samples[9].power_w, 249.5);
  EXPECT_EQ(trials[4].trial.samples[9].mark, SampleMark::power_throttle);
  EXPECT_EQ(count(mine_, "devices"), 1);
  EXPECT_EQ(count(mine_, "problems"), 1);
  EXPECT_EQ(store.sessions().at(0).imported_from, "other.db");
  EXPECT_EQ(store.sessions().at(1).imported_from, "");
}

TEST_F(MergeTest, AgainItChangesNothing) {
  make(mine_, 2, 100);
  make(other_, 4);
  decide_in(other_, 2, 0.9);
  merge();
  const std::string content = content_of(mine_);
  const MergeCounts again = merge();
  EXPECT_FALSE(again.changed());
  EXPECT_EQ(again.sessions_known, 2);
  EXPECT_EQ(again.trials_known, 5);
  EXPECT_EQ(again.winners_known, 1);
  EXPECT_EQ(content_of(mine_), content);
  EXPECT_EQ(count(mine_, "imports"), 1);
}

TEST_F(MergeTest, BothWaysGiveTheSame) {
  make(mine_, 2, 100);
  decide_in(mine_, 100, 0.8);
  make(other_, 3);
  decide_in(other_, 2, 0.9);
  merge();
  const MergeCounts back = merge(mine_, other_);
  EXPECT_EQ(back.sessions, 2);
  EXPECT_EQ(back.sessions_known, 2);
  EXPECT_EQ(back.winners_known, 1);
  EXPECT_EQ(content_of(mine_), content_of(other_));
  EXPECT_FALSE(merge().changed());
  EXPECT_FALSE(merge(mine_, other_).changed());
  const Store store(mine_, OpenMode::read_only);
  EXPECT_EQ(store.sessions().back().imported_from, "") << "what is mine stays mine";
}

TEST_F(MergeTest, ByWayOfAThirdItKeepsItsOriginAndCountsOnce) {
  make(other_, 3);
  const fs::path third = folder_ / "third.db";
  make(third, 2, 50);
  merge(other_, third);
  const MergeCounts counts = merge(third, mine_);
  EXPECT_EQ(counts.sessions, 2);
  EXPECT_FALSE(merge().changed());
  const Store store(mine_, OpenMode::read_only);
  EXPECT_EQ(store.sessions().at(0).imported_from, "other.db");
  EXPECT_EQ(store.sessions().at(1).imported_from, "third.db");
}

TEST_F(MergeTest, OfAFileThatHasGrownOnlyTheNewComes) {
  Store other(other_, OpenMode::create, Durability::normal);
  const ContextIds context = example_context(other);
  const std::int64_t session = begin_example_session(other, context);
  other.add_trial(session, context, example_trial(1));
  EXPECT_EQ(merge().sessions_running, 1);
  {
    const Store mine(mine_, OpenMode::read_only);
    EXPECT_EQ(mine.sessions().at(0).state, "interrupted");
    EXPECT_FALSE(mine.sessions().at(0).alive);
    EXPECT_GE(mine.sessions().at(0).finished_unix_ms, mine.sessions().at(0).started_unix_ms);
  }
  other.begin_attempt(session, context, example_config(7));
  Trial twin = example_trial(2);
  twin.shared_trial = 1;
  other.add_trial(session, context, twin);
  other.note_progress(session, 5000, "{\"devices\":[]}", std::vector<TelemetryRow>{{.unix_ms = 5}, {.unix_ms = 6}});
  const MergeCounts grown = merge();
  EXPECT_EQ(grown.sessions, 0);
  EXPECT_EQ(grown.sessions_grown, 1);
  EXPECT_EQ(grown.trials, 1);
  EXPECT_EQ(grown.trials_known, 1);
  EXPECT_EQ(grown.readings, 2);
  EXPECT_EQ(count(mine_, "attempts"), 0) << "what a living process has on its device is not mine";
  other.end_attempt(session, context, example_config(7));
  other.end_session(session, "finished");
  EXPECT_EQ(merge().sessions_grown, 1);
  EXPECT_EQ(content_of(mine_), content_of(other_));
  EXPECT_FALSE(merge().changed());
  expect_sound(mine_);
}

TEST_F(MergeTest, AnOlderStateOfASessionChangesNothing) {
  Store other(other_, OpenMode::create, Durability::normal);
  const ContextIds context = example_context(other);
  const std::int64_t session = begin_example_session(other, context);
  other.add_trial(session, context, example_trial(1));
  other.end_session(session, "interrupted");
  const fs::path early = folder_ / "early.db";
  merge(other_, early);
  other.resume_session(session);
  other.note_progress(session, 9000, "", {});
  other.add_trial(session, context, example_trial(2));
  other.end_session(session, "finished");
  merge();
  const std::string content = content_of(mine_);
  EXPECT_FALSE(merge(early, mine_).changed());
  EXPECT_EQ(content_of(mine_), content);
}

TEST_F(MergeTest, DeadSessionIsNotTakenForARunningOne) {
  const int child = fork_child([&] {
    Store store(other_, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(store);
    store.add_trial(begin_example_session(store, context), context, example_trial(1));
  });
  ASSERT_EQ(wait_child(child), 0);
  EXPECT_EQ(merge().sessions_running, 0);
  EXPECT_EQ(Store(mine_, OpenMode::read_only).sessions().at(0).state, "interrupted");
}

TEST_F(MergeTest, EqualTrialsOfOneSessionAreAsManyAsTheyWere) {
  {
    Store other(other_, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(other);
    const std::int64_t session = begin_example_session(other, context);
    for (int i = 0; i < 3; ++i) {
      other.add_trial(session, context, failed_trial(1, TrialStatus::rejected, "too large"));
    }
    other.end_session(session, "finished");
  }
  EXPECT_EQ(merge().trials, 3);
  EXPECT_EQ(merge().trials_known, 3);
  EXPECT_EQ(count(mine_, "trials"), 3);
}

TEST_F(MergeTest, CopiesThatWentOnApartAreUnited) {
  {
    Store store(mine_, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(store);
    const std::int64_t session = begin_example_session(store, context);
    store.add_trial(session, context, example_trial(1));
    store.end_session(session, "interrupted");
  }
  fs::copy_file(mine_, other_);
  for (const auto& [file, tile] : {std::pair(mine_, 2), std::pair(other_, 3)}) {
    Store store(file, OpenMode::read_write);
    store.resume_session(1);
    store.add_trial(1, example_context(store), example_trial(tile));
    store.end_session(1, "finished");
  }
  EXPECT_EQ(merge().trials, 1);
  EXPECT_EQ(count(mine_, "trials"), 3);
  EXPECT_EQ(merge(mine_, other_).trials, 1);
  EXPECT_FALSE(merge().changed());
}

TEST_F(MergeTest, DevicesAreNeverMixed) {
  make(mine_, 1);
  {
    Store other(other_, OpenMode::create, Durability::normal);
    ContextIds context = example_context(other);
    for (int differing = 0; differing < 4; ++differing) {
      DeviceRow device = example_device();
      device.kind = differing == 0 ? "host" : device.kind;
      device.name += differing == 1 ? " 11 GB" : "";
      device.compute_capability = differing == 2 ? "7.0" : device.compute_capability;
      device.sm_count += differing == 3 ? 1 : 0;
      context.device = other.device_id(device);
      const std::int64_t session = begin_example_session(other, context);
      const std::int64_t trial = other.add_trial(session, context, example_trial(50 + differing));
      other.set_winner(context, trial, std::nullopt, 1);
      other.end_session(session, "finished");
    }
  }
  EXPECT_EQ(merge().winners_added, 4);
  Store mine(mine_, OpenMode::read_write);
  EXPECT_EQ(mine.devices().size(), 5U);
  const auto known = mine.known_trials(example_context(mine));
  ASSERT_EQ(known.size(), 1U) << "only what was measured on that device";
  EXPECT_EQ(known[0].config, example_config(1));
  const DeviceRow device = example_device();
  EXPECT_TRUE(mine.winners("", &device).empty());
}

TEST_F(MergeTest, SameDeviceWithOtherLimitsIsOne) {
  make(mine_, 1);
  make(other_, 1, 9);
  SQLite::Database(other_.string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE devices SET memory_bytes = 5, limits = '{}'; UPDATE sessions SET started_unix_ms = 1");
  merge();
  const Store mine(mine_, OpenMode::read_only);
  ASSERT_EQ(mine.devices().size(), 1U);
  EXPECT_EQ(mine.devices()[0], example_device()) << "mine was seen later";
  EXPECT_TRUE(merge(mine_, other_).changed());
  EXPECT_EQ(Store(other_, OpenMode::read_only).devices().at(0), example_device()) << "as there";
}

TEST_F(MergeTest, TrialsOfSeveralDatabasesAreKnownByTheBestSupported) {
  for (const auto& [file, half_width] : {std::pair(mine_, 4.0), std::pair(other_, 2.0)}) {
    Store store(file, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(store);
    Trial trial = example_trial(1);
    trial.time = TimeSummary{100 + half_width, 100, 100 + 2 * half_width, 30};
    store.add_trial(begin_example_session(store, context), context, trial);
  }
  merge();
  Store mine(mine_, OpenMode::read_write);
  const auto known = mine.known_trials(example_context(mine));
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].median_us, 102);
}

TEST_F(MergeTest, TakenOverSessionsAreNotResumedHere) {
  {
    Store other(other_, OpenMode::create, Durability::normal);
    const ContextIds context = example_context(other);
    other.end_session(begin_example_session(other, context), "interrupted");
  }
  merge();
  Store mine(mine_, OpenMode::read_write);
  const std::string message = store_error([&] { mine.resume_session(mine.sessions().at(0).id); });
  EXPECT_NE(message.find("imported from another file"), std::string::npos) << message;
}

TEST_F(MergeTest, ScratchCopyTellsWhatWouldComeAndTouchesNothing) {
  make(mine_, 2, 100);
  make(other_, 4);
  const std::string before = bytes_of(mine_);
  {
    Store scratch = Store::scratch_copy(mine_);
    EXPECT_EQ(scratch.file(), mine_);
    EXPECT_EQ(merge_database(other_, scratch).trials, 4);
    EXPECT_EQ(scratch.trials({}).size(), 6U);
    EXPECT_FALSE(merge_database(other_, scratch).changed());
  }
  EXPECT_EQ(bytes_of(mine_), before);
  Store none = Store::scratch_copy(folder_ / "none.db");
  EXPECT_EQ(merge_database(other_, none).trials, 4);
  EXPECT_FALSE(fs::exists(folder_ / "none.db"));
}

}  // namespace
}  // namespace pascaline::testing
