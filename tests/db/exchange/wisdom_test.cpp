#include "db/exchange/wisdom.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/db/fixtures.hpp"

namespace pascaline {
namespace {

using nlohmann::json;
using testing::example_context;
using testing::example_problem;
using testing::example_trial;

class WisdomTest : public ::testing::Test {
 protected:
  std::int64_t add(const ContextIds& context, std::int64_t m, std::int64_t tile, double median,
                   TrialStage stage = TrialStage::search) {
    Trial trial = example_trial(tile);
    trial.problem = example_problem(m);
    trial.stage = stage;
    trial.time = TimeSummary{median, median - 1, median + 1, 30};
    return store_.add_trial(session_, context, trial);
  }
  [[nodiscard]] json entries(const SpaceFilter& filter = {}) const {
    const json document = json::parse(wisdom_json(store_, filter).value_or(R"({"entries": []})"));
    if (document.at("entries").empty()) {
      return document.at("entries");
    }
    EXPECT_EQ(document.at("format"), "pascaline-wisdom");
    EXPECT_EQ(document.at("version"), 1);
    return document.at("entries");
  }

  testing::TemporaryFolder folder_;
  Store store_{folder_ / "tuned.db", OpenMode::create};
  ContextIds context_ = example_context(store_);
  std::int64_t session_ = testing::begin_example_session(store_, context_);
};

TEST_F(WisdomTest, AWinnerIsTold) {
  add(context_, 512, 1, 120);
  add(context_, 512, 8, 90);  // faster in the search, yet not the winner
  const std::int64_t winner = add(context_, 512, 4, 100, TrialStage::finals);
  store_.set_winner(context_, winner, TimeSummary{125, 124, 126, 30}, 0.99);
  const json all = entries();
  ASSERT_EQ(all.size(), 1U);
  const json& entry = all[0];
  EXPECT_EQ(entry.at("kernel"), "matmul");
  EXPECT_EQ(entry.at("source_hash"), "source-a");
  EXPECT_EQ(entry.at("device").at("name"), "NVIDIA GeForce GTX 1080 Ti");
  EXPECT_EQ(entry.at("device").at("compute_capability"), "6.1");
  EXPECT_EQ(entry.at("problem"),
            (json{{"dimensions", {{"M", 512}, {"N", 2048}, {"K", 1024}}}, {"types", {{"STORAGE", "float16"}}}}));
  EXPECT_EQ(entry.at("config"), testing::example_config(4).json());
  EXPECT_EQ(entry.at("time_us"), 100);
  EXPECT_EQ(entry.at("time_interval_us"), json::array({99, 101}));
  EXPECT_EQ(entry.at("default_time_us"), 125);
  EXPECT_EQ(entry.at("confidence"), 0.99);
  EXPECT_EQ(entry.at("decided"), true);
  EXPECT_EQ(entry.at("environment").at("compiler"), "nvrtc");
  EXPECT_EQ(entry.at("environment").at("compiler_version"), "12.9");
  EXPECT_EQ(entry.at("environment").at("driver"), "12.9");
  EXPECT_TRUE(entry.at("environment").at("date").is_string());
}

TEST_F(WisdomTest, AWinnerFromTheSearchWasNotDecidedInFinals) {
  add(context_, 512, 8, 90);
  const std::int64_t winner = add(context_, 512, 4, 100);
  store_.set_winner(context_, winner, TimeSummary{125, 124, 126, 30}, 0.9);
  const json all = entries();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at("decided"), false);
  EXPECT_EQ(all[0].at("confidence"), 0.9);
  EXPECT_EQ(all[0].at("time_us"), 100);
  EXPECT_EQ(all[0].at("default_time_us"), 125);
}

TEST_F(WisdomTest, WithoutAWinnerTheBestOfTheNewestSourceIsTold) {
  add(context_, 512, 4, 10);  // of a source that is no longer the newest
  ContextIds newer = context_;
  newer.kernel = store_.kernel_id({"matmul", "source-b"});
  add(newer, 512, 1, 130);
  add(newer, 512, 2, 110);
  add(newer, 512, 8, 115);
  const json all = entries();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at("decided"), false);
  EXPECT_TRUE(all[0].at("confidence").is_null());
  EXPECT_EQ(all[0].at("time_us"), 110);
  EXPECT_EQ(all[0].at("default_time_us"), 130);
  EXPECT_EQ(all[0].at("source_hash"), "source-b");
  EXPECT_EQ(all[0].at("config").at("TILE"), 2);
}

TEST_F(WisdomTest, EachProblemAndDeviceHasOneEntry) {
  const std::int64_t old = add(context_, 512, 4, 100);
  store_.set_winner(context_, old, {}, 0.9);
  ContextIds newer = context_;
  newer.kernel = store_.kernel_id({"matmul", "source-b"});
  const std::int64_t young = add(newer, 512, 2, 105);
  store_.set_winner(newer, young, {}, 0.8);
  add(example_context(store_, 7), 7, 2, 50);
  ContextIds other = context_;
  DeviceRow device = testing::example_device();
  device.name = "Another";
  other.device = store_.device_id(device);
  add(other, 512, 2, 60);
  EXPECT_EQ(entries().size(), 3U);
  EXPECT_EQ(entries({.problem = example_problem().text(), .device = "NVIDIA GeForce GTX 1080 Ti"})[0].at("time_us"),
            105);
  EXPECT_EQ(entries({.device = "Another"}).size(), 1U);
  EXPECT_EQ(entries({.kernel = "softmax"}).size(), 0U);
}

}  // namespace
}  // namespace pascaline
