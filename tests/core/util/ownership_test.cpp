#include "core/util/ownership.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace pascaline {
namespace {

struct stat status_of(uid_t owner, mode_t mode) {
  struct stat status {};
  status.st_uid = owner;
  status.st_gid = 7;
  status.st_mode = mode;
  return status;
}

TEST(OwnershipTest, TheUserAndRootAreNoOthers) {
  for (const uid_t owner : {::geteuid(), uid_t{0}}) {
    for (const mode_t mode : {0700U, 0755U, 01700U, 0600U}) {
      EXPECT_EQ(why_foreign(status_of(owner, mode)), "") << owner << " " << mode;
    }
    EXPECT_EQ(why_foreign(status_of(owner, 0777)), "everybody can write it");
    EXPECT_EQ(why_foreign(status_of(owner, 01777)), "everybody can write it");
    EXPECT_EQ(why_foreign(status_of(owner, 0602)), "everybody can write it");
    EXPECT_EQ(why_foreign(status_of(owner, 0770)), "group 7 can write it");
  }
  EXPECT_EQ(why_foreign(status_of(4321, 0700)), "user 4321 owns it");
}

TEST(OwnershipTest, BesideAProgramItsOwnerIsTrustedToo) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make a file of another user";
  }
  std::string file = (std::filesystem::temp_directory_path() / "pascaline_ownership.XXXXXX").string();
  const int open = ::mkstemp(file.data());
  ASSERT_GE(open, 0);
  ASSERT_EQ(::fchown(open, 4321, 4321), 0);
  EXPECT_EQ(why_foreign(file, 4321), "");
  EXPECT_EQ(why_foreign(file, 0), "user 4321 owns it");
  ASSERT_EQ(::fchmod(open, 0660), 0);
  EXPECT_EQ(why_foreign(file, 4321), "");
  ASSERT_EQ(::fchmod(open, 0666), 0);
  EXPECT_EQ(why_foreign(file, 4321), "everybody can write it");
  ::close(open);
  std::filesystem::remove(file);
  EXPECT_EQ(why_foreign(file, 0), "");
}

}  // namespace
}  // namespace pascaline
