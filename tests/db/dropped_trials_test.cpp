#include <gtest/gtest.h>

#include "core/trial_counts.hpp"
#include "db/best_trials.hpp"
#include "db/merge.hpp"
#include "db/overview.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

/// The same trials twice: in one store all took their samples, in the other racing dropped all but the fastest.
class DroppedTrialsTest : public ::testing::Test {
 protected:
  struct Stored {
    explicit Stored(const std::filesystem::path& file) : store(file, OpenMode::create) {}
    Store store;
    ContextIds context = example_context(store);
    std::int64_t session = begin_example_session(store, context);
    std::int64_t slowest = 0;
  };

  TemporaryFolder folder_;
  Stored complete_{folder_ / "complete.db"};
  Stored dropped_{folder_ / "dropped.db"};

  static Trial timed(std::int64_t tile, double median_us, TrialStatus status) {
    Trial trial = example_trial(tile);
    trial.status = status;
    trial.reason = status == TrialStatus::dropped ? "slower than the best so far" : "";
    trial.is_default = tile == 4;
    trial.time = TimeSummary{median_us, median_us - 1, median_us + 1, 30};
    return trial;
  }
  static void fill(Stored& in, TrialStatus slower) {
    for (const auto& [tile, median_us] : {std::pair(1, 100.0), {2, 90.0}, {4, 120.0}}) {
      const std::int64_t id =
          in.store.add_trial(in.session, in.context, timed(tile, median_us, tile == 2 ? TrialStatus::ok : slower));
      in.slowest = tile == 4 ? id : in.slowest;
    }
    // The time of a configuration counts, not its later failure in another session.
    const std::int64_t later = begin_example_session(in.store, in.context);
    in.store.add_trial(later, in.context, failed_trial(4, TrialStatus::timed_out, "a busy machine"));
  }

  DroppedTrialsTest() {
    fill(complete_, TrialStatus::ok);
    fill(dropped_, TrialStatus::dropped);
  }
};

TEST_F(DroppedTrialsTest, DroppedTrialsHaveATimeAndFailuresHaveNone) {
  Trial timeless = timed(8, 100, TrialStatus::dropped);
  timeless.time.reset();
  EXPECT_THROW(dropped_.store.add_trial(dropped_.session, dropped_.context, timeless), StoreError);
  EXPECT_THROW(dropped_.store.add_trial(dropped_.session, dropped_.context, timed(8, 100, TrialStatus::crashed)),
               StoreError);
  TrialFilter filter;
  filter.status = TrialStatus::dropped;
  EXPECT_EQ(dropped_.store.trials(filter).size(), 2U);
  EXPECT_TRUE(complete_.store.trials(filter).empty());
}

TEST_F(DroppedTrialsTest, SearchesReuseTheirTimes) {
  const auto complete = complete_.store.known_trials(complete_.context);
  const auto dropped = dropped_.store.known_trials(dropped_.context);
  ASSERT_EQ(dropped.size(), 3U);
  ASSERT_EQ(complete.size(), dropped.size());
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    EXPECT_EQ(dropped[i].trial_id, complete[i].trial_id) << "the time counts, not the later failure";
    EXPECT_EQ(dropped[i].median_us, complete[i].median_us);
    EXPECT_FALSE(dropped[i].failed_in_finals);
    EXPECT_EQ(dropped[i].status, dropped[i].median_us > 90 ? TrialStatus::dropped : TrialStatus::ok);
  }
}

TEST_F(DroppedTrialsTest, OtherProblemsDevicesAndForecastsLearnFromThem) {
  const std::string kernel = example_problem().kernel;
  const auto times = [&](const Stored& of) { return of.store.measured(of.context.device, kernel).at(0).times_us; };
  EXPECT_EQ(times(dropped_).size(), 3U);
  EXPECT_EQ(times(dropped_), times(complete_));
  const auto elsewhere = [](const Stored& of) {
    Store::MeasuredElsewhere key;
    key.device_id = of.context.device;
    key.toolkit = of.context.toolkit;
    key.kernel = of.context.kernel;
    key.problem_id = of.context.problem;
    return of.store.times_us(key);
  };
  EXPECT_EQ(elsewhere(dropped_).size(), 3U);
  EXPECT_EQ(elsewhere(dropped_), elsewhere(complete_));
  const auto ran = [&](const Stored& of) {
    return of.store.trial_costs(of.context.device, kernel, Objective::time).ran;
  };
  EXPECT_EQ(ran(dropped_), 3);
  EXPECT_EQ(ran(complete_), 3);
}

TEST_F(DroppedTrialsTest, DroppedTrialsCanBeWinnersAndBaselines) {
  for (Stored* of : {&complete_, &dropped_}) {
    const BestTrial best = of->store.best_trials({}).at(0);
    EXPECT_EQ(best.stored.trial.config, example_config(2));
    ASSERT_TRUE(best.baseline);
    EXPECT_EQ(best.baseline->median_us, 120) << "the default";
    of->store.set_winner(of->context, of->slowest, {}, 0.9);
    EXPECT_EQ(of->store.best_trials({}).at(0).stored.id, of->slowest);
    Store merged(folder_ / (of == &dropped_ ? "merged-dropped.db" : "merged.db"), OpenMode::create);
    std::ignore = merge_database(of->store.file(), merged);
    ASSERT_EQ(merged.winners("", nullptr).size(), 1U);
    EXPECT_EQ(merged.winners("", nullptr)[0].trial.config, example_config(4));
  }
}

TEST_F(DroppedTrialsTest, OnlyTheCountOfDroppedTrialsDiffers) {
  TrialCounts complete = counts_by_session(complete_.store).at(complete_.session);
  const TrialCounts dropped = counts_by_session(dropped_.store).at(dropped_.session);
  EXPECT_EQ(complete.dropped, 0);
  EXPECT_EQ(dropped.dropped, 2);
  EXPECT_EQ(dropped.ok, 3);
  complete.dropped = 2;
  EXPECT_EQ(dropped, complete);
}

}  // namespace
}  // namespace pascaline::testing
