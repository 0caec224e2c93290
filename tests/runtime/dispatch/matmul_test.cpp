#include "runtime/ops/matmul.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/paths.hpp"
#include "runtime/dispatch/identity.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/matmul_check.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

DispatcherOptions with_test_cache() {
  DispatcherOptions options;
  options.cache = PASCALINE_TEST_CACHE;
  return options;
}

Problem matmul_problem(std::int64_t m, std::int64_t n, std::int64_t k, ElementType type = ElementType::float32) {
  return {"matmul", {{"M", m}, {"N", n}, {"K", k}}, {{"STORAGE", type}}};
}

Config default_with(const Space& space, const std::vector<std::pair<std::string, std::int64_t>>& changes) {
  std::vector<Config::Setting> settings = space.default_config().settings();
  for (const auto& [name, value] : changes) {
    for (auto& [known, held] : settings) {
      held = known == name ? Value(value) : held;
    }
  }
  return Config(settings);
}

TEST(MatmulHostTest, AgreesWithTheReferenceOnRaggedShapes) {
  const auto device = open_device("host");
  Dispatcher dispatcher(*device, with_test_cache());
  check_matmul(dispatcher, 5, 7, 9, ElementType::float32);
  check_matmul(dispatcher, 130, 131, 17, ElementType::float32);
  check_matmul(dispatcher, 1, 36, 40, ElementType::float32);
  check_matmul(dispatcher, 19, 36, 24, ElementType::float16);
  ASSERT_EQ(dispatcher.misses().size(), 4U);
  EXPECT_EQ(dispatcher.misses()[3].problem, matmul_problem(19, 36, 24, ElementType::float16));
}

TEST(MatmulHostTest, ATunedSplitOfTheDepthIsRunTwice) {
  const auto device = open_device("host");
  const TemporaryFolder folder;
  const Space space = Space::load(data_folder("search_spaces") / "matmul.json");
  Winner winner = scale_winner(matmul_problem(40, 36, 64), default_with(space, {{"SPLIT_K", 4}, {"VECTOR", 2}}));
  winner.device = device_row(device->info());
  winner.kernel = {"matmul", KernelSource::load(data_folder("kernel_templates") / "matmul.cu").hash};
  Store store(folder / "tuned.db", OpenMode::create);
  add_winner(store, winner);

  DispatcherOptions options = with_test_cache();
  options.database = folder / "tuned.db";
  Dispatcher dispatcher(*device, options);
  const Prepared& prepared = dispatcher.prepare(winner.trial.problem);
  EXPECT_EQ(prepared.plan.provenance, Provenance::exact) << prepared.plan.because;
  EXPECT_EQ(prepared.geometry.grid[2], 4U);
  check_matmul(dispatcher, 40, 36, 64, ElementType::float32);
  check_matmul(dispatcher, 40, 36, 64, ElementType::float32);
  EXPECT_TRUE(dispatcher.misses().empty());
}

class MatmulChecksTest : public ::testing::Test {
 protected:
  FakeDevice device_;
  Dispatcher dispatcher_{device_, with_test_cache()};
  alignas(16) float memory_[16] = {};

  TensorView tensor(std::initializer_list<std::int64_t> shape, ElementType type = ElementType::float32) {
    return {memory_, type, shape};
  }
  std::string error(const TensorView& a, const TensorView& b, const TensorView& c) {
    try {
      ops::matmul(dispatcher_, a, b, c);
    } catch (const Error& error) {
      EXPECT_EQ(device_.launches, 0);
      return error.what();
    }
    ADD_FAILURE() << "matmul took what it must refuse";
    return {};
  }
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(MatmulChecksTest, RefusesShapesThatDoNotFit) {
  EXPECT_TRUE(contains(error(tensor({4, 8}), tensor({4, 9}), tensor({4, 4})), "A[4,8] · B[4,9]"));
  EXPECT_TRUE(contains(error(tensor({4, 8}), tensor({5, 8}), tensor({4, 4})), "do not fit"));
  EXPECT_TRUE(contains(error(tensor({4, 8}), tensor({4, 8}), tensor({5, 4})), "do not fit"));
  EXPECT_TRUE(contains(error(tensor({2, 2, 8}), tensor({4, 8}), tensor({4, 4})), "A has 3 dimensions"));
  EXPECT_THROW(tensor({1, 1, 1, 1, 1}), Error);
}

TEST_F(MatmulChecksTest, RefusesExtentsBeyondInt32AndBelowZero) {
  const std::int64_t large = std::int64_t{1} << 31;
  EXPECT_TRUE(contains(error(tensor({large, 8}), tensor({4, 8}), tensor({large, 4})), "2147483648"));
  EXPECT_TRUE(contains(error(tensor({4, 8}), tensor({-1, 8}), tensor({4, -1})), "-1"));
}

TEST_F(MatmulChecksTest, RefusesMixedAndUnknownTypes) {
  EXPECT_TRUE(contains(error(tensor({4, 8}), tensor({4, 8}, ElementType::float16), tensor({4, 4})), "float16"));
  const auto int8 = ElementType::int8;
  EXPECT_TRUE(contains(error(tensor({4, 8}, int8), tensor({4, 8}, int8), tensor({4, 4}, int8)), "STORAGE=int8"));
}

TEST_F(MatmulChecksTest, RefusesMisalignedAndNullAddresses) {
  TensorView b = tensor({4, 8});
  b.data = memory_ + 1;
  EXPECT_TRUE(contains(error(tensor({4, 8}), b, tensor({4, 4})), "address of B"));
  b.data = nullptr;
  EXPECT_TRUE(contains(error(tensor({4, 8}), b, tensor({4, 4})), "address of B"));
}

TEST_F(MatmulChecksTest, NothingToDoForEmptyResultsButNoEmptyDepth) {
  ops::matmul(dispatcher_, {nullptr, ElementType::float32, {0, 8}}, tensor({4, 8}),
              {nullptr, ElementType::float32, {0, 4}});
  ops::matmul(dispatcher_, tensor({4, 8}), tensor({0, 8}), tensor({4, 0}));
  EXPECT_EQ(device_.launches, 0);
  EXPECT_TRUE(contains(error(tensor({4, 0}), tensor({4, 0}), tensor({4, 4})), "K is 0"));
}

}  // namespace
}  // namespace pascaline::testing
