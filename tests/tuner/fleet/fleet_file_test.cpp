#include "tuner/fleet/fleet_file.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

Fleet small_fleet() {
  Fleet fleet;
  fleet.id = "0123456789abcdef";
  fleet.planned_unix_ms = 1'700'000'000'000;
  fleet.program = "0.1.0";
  fleet.options = {{"--seed", "7"}, {"--polite", ""}};
  fleet.budget_s = 3600;
  fleet.kernels = {{"matmul", "aa", "bb"}};
  // In the space's order, which is not the alphabet's.
  const Problem problem{"matmul", {{"M", 8}, {"N", 16}, {"K", 4}}, {{"STORAGE", ElementType::float32}}};
  fleet.shards = {{12.5, {{problem, 3, "q_proj", {{"prompt", 2}, {"token", 1}}, {1, 2}}}},
                  {1, {{problem, 0, "", {}}, {problem, 3, "q_proj", {}, {2, 2}}}}};
  return fleet;
}

std::string fault_with(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  std::string text = fleet_text(small_fleet());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  write_bytes(fleet_file(folder.path()), text);
  try {
    (void)load_fleet(fleet_file(folder.path()));
  } catch (const SpaceError& error) {
    return error.what();
  }
  return "none";
}

TEST(FleetFileTest, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const Fleet fleet = small_fleet();
  write_bytes(fleet_file(folder.path()), fleet_text(fleet));
  const Fleet read = load_fleet(fleet_file(folder.path()));
  EXPECT_EQ(read.id, fleet.id);
  EXPECT_EQ(read.planned_unix_ms, fleet.planned_unix_ms);
  EXPECT_EQ(read.program, fleet.program);
  EXPECT_EQ(read.options, fleet.options);
  EXPECT_EQ(read.budget_s, fleet.budget_s);
  EXPECT_EQ(read.kernels, fleet.kernels);
  ASSERT_EQ(read.count(), 2);
  for (std::size_t shard = 0; shard < 2; ++shard) {
    EXPECT_EQ(read.shards[shard].problems, fleet.shards[shard].problems);
    EXPECT_EQ(read.shards[shard].expected_s, fleet.shards[shard].expected_s);
  }
  EXPECT_EQ(read.shards[0].problems[0].problem.text(), "matmul M=8 N=16 K=4 STORAGE=float32");
  EXPECT_EQ(read.identity(2), (ShardIdentity{fleet.id, {2, 2}}));
}

TEST(FleetFileTest, FaultsAreNamedByTheirPlace) {
  EXPECT_NE(fault_with("\"format\": 1", "\"format\": 2").find("/format: this program reads fleets of format 1"),
            std::string::npos);
  EXPECT_NE(fault_with("\"shard\": 2", "\"shard\": 3").find("/shards/1/shard: shards are in order"), std::string::npos);
  EXPECT_NE(fault_with("float32", "float33").find("/shards/0/problems/0/types/STORAGE"), std::string::npos);
  EXPECT_NE(fault_with("\"1/2\"", "\"4/2\"").find("/shards/0/problems/0/part: is not a part of a space"),
            std::string::npos);
  EXPECT_NE(fault_with("\"1/2\"", "\"2/3\"").find("/shards: the parts of matmul M=8"), std::string::npos);
  EXPECT_NE(fault_with("\"calls\": 3", "\"calls\": -3").find("at least 0"), std::string::npos);
  EXPECT_NE(fault_with("\"--seed\"", "\"seed\"").find("/options/0: an option is a pair"), std::string::npos);
  EXPECT_NE(fault_with("\"fleet\":", "\"flet\":").find("fleet"), std::string::npos);
  EXPECT_NE(fault_with("{", "").find("fleet.json"), std::string::npos);
}

}  // namespace
}  // namespace pascaline::testing
