#include "tuner/static_model/rank_check.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.hpp"
#include "tests/tuner/static_model/measured_database.hpp"
#include "tests/tuner/static_model/modelled_space.hpp"

namespace pascaline {
namespace {

using testing::modelled_space;
using testing::store_trials;
using testing::TemporaryFolder;
using testing::timed_trial;

class RankCheckTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "measured.db";
  Space space_ = Space::parse(modelled_space({{"flops", "BLOCKS * (1 + X) * 10000000"}}).dump(), "modelled.json");
  Problem problem_ = space_.problem({{"BLOCKS", "400"}});
  RankCheckOptions options_;

  void SetUp() override {
    options_.min_trials = 3;
    options_.load_space = [this](const std::string& kernel) {
      return kernel == "modelled" ? std::optional(space_) : std::nullopt;
    };
  }
  [[nodiscard]] Trial trial(std::int64_t x, double time_us) const {
    return timed_trial(problem_, Config({{"X", x}}), time_us);
  }
  [[nodiscard]] std::vector<RankCheck> check() const {
    return check_ranking(Store(file_, OpenMode::read_only), options_);
  }
};

TEST_F(RankCheckTest, AgreementAndItsOppositeAreSeen) {
  store_trials(file_, space_, {trial(0, 10), trial(1, 20), trial(2, 30), trial(3, 40)});
  ASSERT_EQ(check().size(), 1U);
  const RankCheck good = check().front();
  EXPECT_DOUBLE_EQ(good.correlation, 1);
  EXPECT_DOUBLE_EQ(good.compiled_correlation, 1);
  EXPECT_EQ(good.found, 1);
  EXPECT_EQ(good.trials, 4U);
  EXPECT_EQ(good.skipped, 0U);
  EXPECT_EQ(good.problem, problem_.text());
  space_ = Space::parse(modelled_space({{"flops", "BLOCKS * (10 - X) * 10000000"}}).dump(), "modelled.json");
  const RankCheck bad = check().front();
  EXPECT_DOUBLE_EQ(bad.correlation, -1);
  EXPECT_EQ(bad.found, 0);
}

TEST_F(RankCheckTest, OnlyWhatWasMeasuredInTheSearchCounts) {
  Trial finals = trial(4, 1);
  finals.stage = TrialStage::finals;
  Trial failed = trial(3, 1);
  failed.status = TrialStatus::wrong_result;
  failed.time.reset();
  Trial foreign = timed_trial(problem_, Config({{"X", std::int64_t{77}}}), 1);
  store_trials(file_, space_, {trial(0, 99), trial(0, 10), trial(1, 20), trial(2, 30), finals, failed, foreign});
  const RankCheck found = check().front();
  EXPECT_EQ(found.trials, 3U);
  EXPECT_EQ(found.skipped, 1U);
  EXPECT_DOUBLE_EQ(found.correlation, 1);  // of a configuration measured twice the last counts
}

TEST_F(RankCheckTest, TrialsOfTwoCompilersAreNotMixed) {
  store_trials(file_, space_, {trial(0, 10), trial(1, 20), trial(2, 30)}, "cuda", "11.8");
  store_trials(file_, space_, {trial(0, 30), trial(1, 20), trial(2, 10)}, "cuda", "12.9");
  const std::vector<RankCheck> found = check();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].toolkit.version, "11.8");
  EXPECT_EQ(found[0].trials, 3U);
  EXPECT_DOUBLE_EQ(found[0].correlation, 1);
  EXPECT_EQ(found[1].toolkit.version, "12.9");
  EXPECT_DOUBLE_EQ(found[1].correlation, -1);
}

TEST_F(RankCheckTest, WithoutACompilerForATargetTheRestIsStillCompared) {
  store_trials(file_, space_, {trial(0, 10), trial(1, 20), trial(2, 30)}, "cuda", "11.8");
  store_trials(file_, space_, {trial(0, 10), trial(1, 20), trial(2, 30)}, "cuda", "12.9");
  options_.compile = 3;
  std::vector<std::string> asked;
  options_.compiler = [&](const BoundSpace&, const ToolkitRow& measured, const std::vector<Config>& configs,
                          const std::function<void(const Config&, const Binary&)>&) {
    asked.push_back(measured.version + " " + measured.target);
    EXPECT_EQ(configs.size(), 3U);
    if (measured.version == "11.8") {
      throw NvrtcError("no NVRTC compiles for it");
    }
  };
  const std::vector<RankCheck> found = check();
  EXPECT_EQ(asked, (std::vector<std::string>{"11.8 compute_61", "12.9 compute_61"}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].code_missing, "no NVRTC compiles for it");
  EXPECT_DOUBLE_EQ(found[0].correlation, 1);
  EXPECT_EQ(found[1].code_missing, "");
}

TEST_F(RankCheckTest, TooFewTrialsTheHostAndUnknownKernelsSayNothing) {
  store_trials(file_, space_, {trial(0, 10), trial(1, 20)});
  EXPECT_TRUE(check().empty());
  store_trials(folder_ / "host.db", space_, {trial(0, 10), trial(1, 20), trial(2, 30)}, "host");
  file_ = folder_ / "host.db";
  EXPECT_TRUE(check().empty());
  file_ = folder_ / "measured.db";
  options_.min_trials = 2;
  EXPECT_EQ(check().size(), 1U);
  options_.load_space = [](const std::string&) { return std::optional<Space>(); };
  EXPECT_TRUE(check().empty());
}

TEST_F(RankCheckTest, AProblemTheSpaceNoLongerHasIsLeftOut) {
  store_trials(file_, space_, {trial(0, 10), trial(1, 20), trial(2, 30)});
  nlohmann::json other = modelled_space(nullptr);
  other["dimensions"].push_back({{"name", "MORE"}});
  space_ = Space::parse(other.dump(), "modelled.json");
  EXPECT_TRUE(check().empty());
}

TEST_F(RankCheckTest, AModelWithoutValueIsAnError) {
  store_trials(file_, space_, {trial(0, 10), trial(1, 20), trial(2, 30)});
  space_ = Space::parse(modelled_space({{"flops", "10 / X"}}).dump(), "modelled.json");
  EXPECT_THROW((void)check(), Error);
}

TEST_F(RankCheckTest, RatesCanBeReplaced) {
  store_trials(file_, space_, {trial(0, 10), trial(1, 20), trial(2, 30)});
  std::int64_t seen = 0;
  options_.adjust = [&](DeviceRates& rates) { seen = rates.limits.sm_count; };
  (void)check();
  EXPECT_EQ(seen, 132);
}

}  // namespace
}  // namespace pascaline
