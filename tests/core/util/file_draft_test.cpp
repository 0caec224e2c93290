#include "core/util/file_draft.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "core/error.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

class FileDraftTest : public ::testing::Test {
 protected:
  FileDraftTest() { fs::create_directories(folder_); }
  ~FileDraftTest() override {
    ::umask(before_);
    fs::remove_all(folder_);
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  const fs::path folder_ = fs::temp_directory_path() / ("pascaline_file_draft_test." + std::to_string(::getpid()));
  const mode_t before_ = ::umask(022);
};

mode_t permissions_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

TEST_F(FileDraftTest, NothingIsThereBeforeItIsComplete) {
  write_file_atomically(folder_ / "f", "old");
  {
    const FileDraft draft(folder_ / "f");
    const Descriptor open = draft.open();
    ASSERT_EQ(::write(open.get(), "new", 3), 3);
    EXPECT_EQ(read_file(folder_ / "f"), "old");
  }
  EXPECT_EQ(read_file(folder_ / "f"), "old");
  EXPECT_EQ(files(), 1U);
  FileDraft draft(folder_ / "f");
  ASSERT_EQ(::write(draft.open().get(), "new", 3), 3);
  draft.complete();
  EXPECT_EQ(read_file(folder_ / "f"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(FileDraftTest, NewFilesHaveTheModeOfTheUmask) {
  int number = 0;
  for (const mode_t mask : {022U, 077U, 002U}) {
    ::umask(mask);
    const fs::path file = folder_ / std::to_string(number++);
    write_file_atomically(file, "x");
    EXPECT_EQ(permissions_of(file), 0666U & ~mask);
    write_file_atomically(file, "y", 0600);
    EXPECT_EQ(permissions_of(file), 0666U & ~mask) << "a file keeps the mode that it has";
  }
}

TEST_F(FileDraftTest, LinksOfOthersInFoldersOfEverybodyAreNotFollowed) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make a link of another user";
  }
  const fs::path shared = folder_ / "shared";
  fs::create_directories(shared);
  fs::permissions(shared, fs::perms{01777});
  fs::create_symlink(folder_ / "precious", shared / "x");
  write_file_atomically(shared / "x", "through my own link");
  EXPECT_EQ(read_file(folder_ / "precious"), "through my own link");
  ASSERT_EQ(::lchown((shared / "x").c_str(), 65534, 65534), 0);
  EXPECT_THROW(write_file_atomically(shared / "x", "through theirs"), Error);
  EXPECT_EQ(read_file(folder_ / "precious"), "through my own link");
}

TEST_F(FileDraftTest, WhatIsNoFileIsWrittenToAsItIs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  write_file_atomically("/dev/fd/" + std::to_string(ends[1]), "text");
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace pascaline
