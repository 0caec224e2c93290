#include <numeric>

#include "core/util/stop_check.hpp"
#include "tests/tuner/simulation/simulated_fixture.hpp"
#include "tuner/compile/compile_variants.hpp"

namespace pascaline::testing {
namespace {

// Billions of combinations, of which the default alone is valid: looking for another one has no end.
class SparseSweepTest : public SimulatedSweepTest {
 protected:
  void SetUp() override {
    SimulatedSweepTest::SetUp();
    nlohmann::json json = toy_json({kRight});
    std::vector<int> values(64);
    std::iota(values.begin(), values.end(), 1);
    std::string sum;
    for (const char* name : {"P0", "P1", "P2", "P3", "P4", "P5"}) {
      json["parameters"].push_back({{"name", name}, {"values", values}, {"default", 64}, {"description", "of none"}});
      sum += (sum.empty() ? "" : " + ") + std::string(name);
    }
    json["constraints"].push_back({{"require", "BLOCK == 64 && " + sum + " == 384"}, {"because", "only the end fits"}});
    write_toys(folder_.path(), {json});
    space_ = Space::load(folder_ / "toy.json");
    options_.search.searcher = "exhaustive";
    options_.compile.jobs = 1;
    simulation_.clock().pass_with_each_look(0.001);
  }
};

TEST_F(SparseSweepTest, EndsWithItsTimeAndShowsThatItGoesBy) {
  options_.budget_s = 3;
  double elapsed_s = 0;
  events_.view = [&](const SweepView& view) { elapsed_s = std::max(elapsed_s, view.elapsed_s); };
  const SweepSummary summary = sweep();
  EXPECT_EQ(summary.ok, 1) << "the default";
  EXPECT_GE(elapsed_s, 1);
  EXPECT_LT(summary.times.wall_s, 3.5) << "all of it takes an hour";
  EXPECT_GE(Store(database_, OpenMode::read_only).sessions().at(0).spent_ms, 1000) << "what status shows";
  expect_sound();
}

TEST_F(SparseSweepTest, IsInterruptedWhileItLooks) {
  events_.view = [&](const SweepView& view) { stop_ = stop_ || view.ok == 1; };
  const SweepSummary summary = sweep();
  EXPECT_TRUE(summary.interrupted);
  EXPECT_LE(summary.ok, 1);
  EXPECT_EQ(last_state(), "interrupted");
  expect_sound();
}

TEST_F(SparseSweepTest, CompilingAllOfItIsInterruptedWhileItCounts) {
  const BoundSpace bound(space_, space_.problem({{"N", "1000"}}), *limits_of_architecture("sm_61"));
  VariantOptions variants;
  variants.architecture = "emulator";
  variants.kernels = folder_.path();
  variants.cache = test_cache();
  stop_ = true;
  const auto begin = [](const VariantCount&) { FAIL() << "the variants were counted"; };
  EXPECT_THROW(compile_variants(
                   bound, variants, begin, [](const CompiledVariant&) {}, stop_),
               StoppedError);
}

}  // namespace
}  // namespace pascaline::testing
