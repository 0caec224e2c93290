#include "db/file_system.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.hpp"
#include "tests/db/merge_fixture.hpp"

namespace pascaline::testing {
namespace {

constexpr std::uint64_t kNfs = 0x6969;
constexpr std::uint64_t kExt4 = 0xEF53;
constexpr std::uint64_t kFuse = 0x65735546;

class FileSystemTest : public MergeTest {
 protected:
  void TearDown() override {
    pretend_file_system(std::nullopt);
    ::unsetenv("PASCALINE_NETWORK_DATABASE");
  }
};

TEST_F(FileSystemTest, NetworkOnesAreKnownByTypeAndBehindFuseByName) {
  EXPECT_EQ(network_name_of({kNfs, "nfs4"}), "NFS");
  EXPECT_EQ(network_name_of({0xFF534D42, "cifs"}), "CIFS");
  EXPECT_EQ(network_name_of({0x0BD00BD0, "lustre"}), "Lustre");
  EXPECT_EQ(network_name_of({0x01021997, "9p"}), "9p");
  EXPECT_EQ(network_name_of({kFuse, "fuse.sshfs"}), "fuse.sshfs");
  EXPECT_FALSE(network_name_of({kFuse, "fuseblk"})) << "a local disk of another system";
  EXPECT_FALSE(network_name_of({kFuse, ""}));
  EXPECT_FALSE(network_name_of({kExt4, "ext4"}));
  EXPECT_FALSE(network_name_of({0, ""})) << "what cannot be told is not refused";
}

TEST_F(FileSystemTest, WhereAFileWillLieIsTold) {
  const FileSystem here = file_system_of(folder_.path());
  EXPECT_NE(here.type, 0U);
  EXPECT_EQ(file_system_of(folder_ / "not" / "there" / "yet.db").type, here.type);
  EXPECT_EQ(file_system_of("/proc/self/stat").mounted_as, "proc");
  EXPECT_FALSE(network_file_system(folder_.path())) << "tests run on a local disk";
}

TEST_F(FileSystemTest, NothingIsWrittenThere) {
  pretend_file_system(FileSystem{kNfs, "nfs4"});
  const std::string message = store_error([&] { Store(mine_, OpenMode::create); });
  EXPECT_NE(message.find("network file system (NFS)"), std::string::npos) << message;
  EXPECT_NE(message.find("pascaline fleet"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(mine_));
  pretend_file_system(std::nullopt);
  make(mine_, 1);
  const std::string before = bytes_of(mine_);
  pretend_file_system(FileSystem{kFuse, "fuse.sshfs"});
  EXPECT_NE(store_error([&] { Store(mine_, OpenMode::read_write); }).find("fuse.sshfs"), std::string::npos);
  EXPECT_EQ(bytes_of(mine_), before);
}

TEST_F(FileSystemTest, WhoKnowsBetterMayInsist) {
  pretend_file_system(FileSystem{kNfs, "nfs4"});
  ::setenv("PASCALINE_NETWORK_DATABASE", "1", 1);
  make(mine_, 1);
  EXPECT_EQ(count(mine_, "trials"), 1);
}

TEST_F(FileSystemTest, IsReadAndMergedFromAsItIs) {
  make(other_, 3);
  pretend_file_system(FileSystem{kNfs, "nfs4"});
  EXPECT_EQ(Store(other_, OpenMode::read_only).trials({}).size(), 3U);
  EXPECT_FALSE(std::filesystem::exists(other_.string() + "-shm")) << "nothing is left beside it";
  Store mine = Store::scratch_copy(mine_);
  EXPECT_EQ(merge_database(other_, mine).trials, 3);
}

TEST_F(FileSystemTest, IsNotReadWhileAnotherMachineMayWrite) {
  make(other_, 1);
  write_bytes(other_.string() + "-wal", "not empty");
  pretend_file_system(FileSystem{kNfs, "nfs4"});
  const std::string message = store_error([&] { Store(other_, OpenMode::read_only); });
  EXPECT_NE(message.find("-wal"), std::string::npos) << message;
}

// A real one of another machine is not to be had here; of those that tests can mount, FUSE's and 9p's need a server.
TEST_F(FileSystemTest, LocalOnesOfEveryKindAreNotRefused) {
  for (const std::uint64_t local : {kExt4, std::uint64_t{0x9123683E}, std::uint64_t{0x58465342},
                                    std::uint64_t{0x01021994}, std::uint64_t{0x794C7630}, std::uint64_t{0x2FC12FC1}}) {
    EXPECT_FALSE(network_name_of({local, ""})) << std::hex << local;
  }
}

}  // namespace
}  // namespace pascaline::testing
