#include "runtime/ops/matmul.hpp"

#include <gtest/gtest.h>

#include "core/util/paths.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/dispatch/matmul_check.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"
#include "tests/runtime/dispatch/test_cache.hpp"

namespace pascaline::testing {
namespace {

Problem matmul_problem(std::int64_t m, std::int64_t n, std::int64_t k, ElementType type = ElementType::float32) {
  return {"matmul",
          {{"M", m}, {"N", n}, {"K", k}, {"EPILOGUE", 0}, {"NORM", 0}, {"HEAD_DIM", 0}, {"POSITIONS", 0}},
          {{"STORAGE", type}, {"WEIGHT", type}}};
}

Config default_with(const Space& space, const std::vector<std::pair<std::string, std::int64_t>>& changes) {
  std::vector<Config::Setting> settings = space.general_default().settings();
  for (const auto& [name, value] : changes) {
    for (auto& [known, held] : settings) {
      held = known == name ? Value(value) : held;
    }
  }
  return Config(settings);
}

TEST(MatmulHostTest, AgreesWithTheReferenceOnRaggedShapes) {
  const auto device = open_device("emulator");
  Dispatcher dispatcher(*device, with_test_cache());
  check_matmul(dispatcher, 9, 7, 5, ElementType::float32);
  check_matmul(dispatcher, 130, 131, 17, ElementType::float32);
  check_matmul(dispatcher, 1, 36, 40, ElementType::float32);
  check_matmul(dispatcher, 19, 36, 24, ElementType::float16);
  ASSERT_EQ(dispatcher.misses().size(), 4U);
  EXPECT_EQ(dispatcher.misses()[2].problem.kernel, "matvec");
  EXPECT_EQ(dispatcher.misses()[3].problem, matmul_problem(19, 36, 24, ElementType::float16));
}

TEST(MatmulHostTest, ATunedSplitOfTheDepthIsRunTwice) {
  const auto device = open_device("emulator");
  const TemporaryFolder folder;
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  Winner winner = scale_winner(matmul_problem(40, 36, 64), default_with(space, {{"SPLIT_K", 4}}));
  winner.device = device_row(device->info());
  winner.kernel = {"matmul", KernelSource::load(data_folder("kernel_templates") / "matmul.cu").hash};
  Store store(folder / "tuned.db", OpenMode::create);
  add_winner(store, winner);

  DispatcherOptions options = with_test_cache();
  options.database = folder / "tuned.db";
  Dispatcher dispatcher(*device, options);
  const Prepared& prepared = dispatcher.prepare(winner.trial.problem);
  EXPECT_EQ(prepared.plan.provenance, Provenance::exact) << prepared.plan.reason;
  EXPECT_EQ(prepared.geometries.front().grid[1], 4U);
  check_matmul(dispatcher, 40, 36, 64, ElementType::float32);
  check_matmul(dispatcher, 40, 36, 64, ElementType::float32);
  EXPECT_TRUE(dispatcher.misses().empty());
}

}  // namespace
}  // namespace pascaline::testing
