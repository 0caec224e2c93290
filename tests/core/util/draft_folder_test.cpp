#include "core/util/draft_folder.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

class DraftFolderTest : public ::testing::Test {
 protected:
  DraftFolderTest() {
    std::string pattern = (fs::temp_directory_path() / "pascaline_draft.XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~DraftFolderTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::vector<fs::path> entries() const {
    return {fs::begin(fs::directory_iterator(folder_)), fs::end(fs::directory_iterator())};
  }
  // A draft folder beside `name` with a file in it, made by a process that is killed then.
  [[nodiscard]] fs::path abandoned(const std::string& name) const {
    const std::set<fs::path> before = in_folder();
    const pid_t child = ::fork();
    if (child == 0) {
      const DraftFolder draft(folder_ / name);
      write_file_atomically(draft.path() / "half", "half");
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    for (const fs::path& entry : in_folder()) {
      if (!before.contains(entry)) {
        return entry;
      }
    }
    ADD_FAILURE() << "nothing is left";
    return {};
  }
  [[nodiscard]] std::set<fs::path> in_folder() const {
    const auto all = entries();
    return {all.begin(), all.end()};
  }
  // `remove_abandoned` as a process does it that has just started.
  void clean_in_new_process() const {
    const pid_t child = ::fork();
    if (child == 0) {
      remove_abandoned(folder_);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
  }
  fs::path folder_;
};

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

TEST_F(DraftFolderTest, LiesBesideItsPlaceUnderANameOfItsOwnAndIsGoneAfterwards) {
  {
    const DraftFolder one(folder_ / "model");
    const DraftFolder other(folder_ / "model");
    EXPECT_NE(one.path(), other.path());
    for (const DraftFolder* draft : {&one, &other}) {
      EXPECT_EQ(draft->path().parent_path(), folder_);
      EXPECT_TRUE(draft->path().filename().string().starts_with("model."));
      EXPECT_EQ(mode_of(draft->path()), 0700U);
    }
    write_file_atomically(one.path() / "f", "x");
  }
  EXPECT_TRUE(entries().empty());
}

TEST_F(DraftFolderTest, ModeIsThatOfTheUmask) {
  const mode_t before = ::umask(027);
  EXPECT_EQ(mode_of(DraftFolder(folder_ / "model", 0777).path()), 0750U);
  ::umask(before);
}

TEST_F(DraftFolderTest, NamesMayBeAsLongAsTheFileSystemHasThem) {
  const DraftFolder draft(folder_ / std::string(255, 'n'));
  EXPECT_TRUE(fs::is_directory(draft.path()));
}

TEST_F(DraftFolderTest, FaultNamesTheFolderThatItWasToBeIn) {
  try {
    const DraftFolder draft(folder_ / "none" / "model");
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ENOENT);
    EXPECT_NE(std::string(error.what()).find((folder_ / "none").string()), std::string::npos) << error.what();
  }
}

TEST_F(DraftFolderTest, TheNextProcessRemovesWhatAKilledOneLeft) {
  const fs::path left = abandoned("model");
  ASSERT_TRUE(fs::exists(left / "half"));
  clean_in_new_process();
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(DraftFolderTest, WhatALivingProcessOwnsStays) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const DraftFolder draft(folder_ / "model");
    while (::write(ends[1], "", 1) == 1) {
      ::pause();  // until it is killed
    }
    ::_exit(1);
  }
  char begun = 1;
  ASSERT_EQ(::read(ends[0], &begun, 1), 1);
  clean_in_new_process();
  EXPECT_EQ(entries().size(), 1U);
  ::kill(owner, SIGKILL);
  int status = 0;
  ::waitpid(owner, &status, 0);
  clean_in_new_process();
  EXPECT_TRUE(entries().empty());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(DraftFolderTest, ANewDraftBesideItRemovesItToo) {
  const fs::path left = abandoned("model");
  const DraftFolder draft(folder_ / "another");
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(DraftFolderTest, WhatIsLeftLaterIsRemovedWhereItWasLookedBefore) {
  remove_abandoned(folder_);
  const fs::path left = abandoned("model");
  remove_abandoned(folder_);
  EXPECT_TRUE(fs::exists(left)) << "it looks once";
  const DraftFolder own(folder_ / "own");
  remove_abandoned_again();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(own.path()));
}

TEST_F(DraftFolderTest, PlacesAreNotThoseInDrafts) {
  const DraftFolder draft(folder_ / "model");
  const std::size_t places = draft_places().size();
  EXPECT_GE(places, 1U);
  write_file_atomically(draft.path() / "file", "x");
  EXPECT_EQ(draft_places().size(), places);
  const DraftFolder another(folder_ / "another");
  EXPECT_EQ(draft_places().size(), places) << "each once";
}

TEST_F(DraftFolderTest, OnlyDraftsOfTheUserAndThisMachineAreRemoved) {
  const fs::path left = abandoned("model");
  const std::string name = left.filename().string();
  const std::string digits = name.substr(name.rfind(".part-"));
  const auto make = [&](const std::string& other) {
    fs::create_directories(folder_ / other);
    return folder_ / other;
  };
  std::string elsewhere = name;
  elsewhere[name.rfind(".part-") + 6] = elsewhere[name.rfind(".part-") + 6] == '0' ? '1' : '0';
  std::vector<fs::path> kept{make("model.part-1"), make(name + ".old"), make(name.substr(0, name.size() - 1)),
                             make(elsewhere)};
  fs::create_directory_symlink(folder_ / "model.part-1", folder_ / ("link" + digits));
  kept.push_back(folder_ / ("link" + digits));
  write_file_atomically(folder_ / ("file" + digits), "x");
  kept.push_back(folder_ / ("file" + digits));
  if (::geteuid() == 0) {
    kept.push_back(make("others" + digits));
    ASSERT_EQ(::chown(kept.back().c_str(), 65534, 65534), 0);
  }
  clean_in_new_process();
  for (const fs::path& path : kept) {
    EXPECT_TRUE(fs::exists(fs::symlink_status(path))) << path;
  }
  EXPECT_FALSE(fs::exists(left));
}

}  // namespace
}  // namespace pascaline
