#include "tuner/fleet/fleet_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.hpp"
#include "tests/db/fixtures.hpp"

namespace pascaline::testing {
namespace {

Fleet small_fleet() {
  Fleet fleet;
  fleet.planned_unix_ms = 1'700'000'000'000;
  fleet.program = "0.1.0";
  fleet.options = {{"--seed", "7"}, {"--polite", ""}};
  fleet.paths = {{"--kernels", "/home/me/kernels"}};
  fleet.budget_s = 3600;
  fleet.kernels = {{"matmul", "aa", "bb"}};
  // In the space's order, which is not the alphabet's.
  const Problem problem{"matmul", {{"M", 8}, {"N", 16}, {"K", 4}}, {{"STORAGE", ElementType::float32}}};
  fleet.shards = {{12.5, {{problem, 3, "q_proj", {{"prompt", 2}, {"token", 1}}, {1, 2}}}},
                  {1, {{problem, 0, "", {}}, {problem, 3, "q_proj", {}, {2, 2}}}}};
  fleet.id = id_of(fleet);
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
  EXPECT_EQ(read.paths, fleet.paths);
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

TEST(FleetFileTest, NoOptionOfAFileChoosesCodeOrPaths) {
  for (const char* const option : {"--kernels", "--spaces", "--cache", "--log", "--sensors", "--model", "--db"}) {
    const std::string fault = fault_with("\"--seed\"", fmt::format("\"{}\"", option));
    EXPECT_NE(fault.find(fmt::format("/options/0: {} is an option that is not accepted", option)), std::string::npos)
        << fault;
  }
  const std::string fault = fault_with("\"--seed\",\n   \"7\"", "\"--nvrtc\",\n   \"./evil.so\"");
  EXPECT_NE(fault.find("/options/0: --nvrtc has the value './evil.so'"), std::string::npos) << fault;
}

TEST(FleetFileTest, NamesBecomeNoPaths) {
  EXPECT_NE(fault_with("\"kernel\": \"matmul\",\n   \"source", "\"kernel\": \"../matmul\",\n   \"source")
                .find("/kernels/0/kernel: '../matmul' is not a kernel's name"),
            std::string::npos);
  EXPECT_NE(fault_with("\"kernel\": \"matmul\",\n     \"dim", "\"kernel\": \"/tmp/matmul\",\n     \"dim")
                .find("/shards/0/problems/0/kernel: '/tmp/matmul' is not a kernel's name"),
            std::string::npos);
  EXPECT_NE(fault_with("\"aa\"", "\"../aa\"").find("/kernels/0/source_hash: '../aa' is not a hash"), std::string::npos);
}

TEST(FleetFileTest, TheIdIsThatOfThePlan) {
  const std::string id = small_fleet().id;
  EXPECT_EQ(id.size(), 16U);
  for (const char* const other : {"../../x", "ab\\ncd", "AB", "\\u001b[31m"}) {
    EXPECT_NE(fault_with(id, other).find("/fleet: '"), std::string::npos) << other;
  }
  EXPECT_NE(fault_with(id, "0123456789abcdef").find("/fleet: the id does not match this plan, whose id is " + id),
            std::string::npos);
  EXPECT_NE(fault_with("\"7\"", "\"8\"").find("/fleet: the id does not match this plan"), std::string::npos);
  EXPECT_NE(fault_with("\"7\"", "\"1.5\"").find("/options: --seed has the value '1.5'"), std::string::npos);
}

TEST(FleetFileTest, FilesOfAShardAreItsOwn) {
  const TemporaryFolder folder;
  require_own_files(folder.path(), 1);
  const auto elsewhere = folder.path() / "elsewhere";
  write_bytes(elsewhere, "mine");
  write_bytes(folder.path() / "shard-0001.db", "");
  require_own_files(folder.path(), 1);
  for (const char* const ending : {"db-wal", "log", "out"}) {
    const auto file = folder.path() / fmt::format("shard-0001.{}", ending);
    std::filesystem::create_symlink(elsewhere, file);
    EXPECT_THROW(require_own_files(folder.path(), 1), ForeignFileError) << ending;
    std::filesystem::remove(file);
    std::filesystem::create_symlink(folder.path() / "missing", file);
    EXPECT_THROW(require_own_files(folder.path(), 1), ForeignFileError) << ending << ", dangling";
    std::filesystem::remove(file);
    std::filesystem::create_hard_link(elsewhere, file);
    EXPECT_THROW(require_own_files(folder.path(), 1), ForeignFileError) << ending << ", another name";
    std::filesystem::remove(file);
  }
  const auto linked = folder.path() / "from-host";
  std::filesystem::create_directory_symlink(folder.path(), linked);
  EXPECT_THROW(require_own_folder(linked), ForeignFileError);
}

}  // namespace
}  // namespace pascaline::testing
