#include "core/util/paths.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/error.hpp"

namespace pascaline {
namespace {

namespace fs = std::filesystem;

// Sets or clears an environment variable for its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      old_ = old;
    }
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class PathsTest : public ::testing::Test {
 protected:
  PathsTest() { fs::create_directories(folder_); }
  ~PathsTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  const fs::path folder_ = fs::temp_directory_path() / ("pascaline_paths_test." + std::to_string(::getpid()));
};

int code_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return 0;
}

TEST_F(PathsTest, LinksAndDevicesStayWhatTheyAre) {
  std::filesystem::create_symlink(folder_ / "real", folder_ / "link");
  for (const char* text : {"made through the link", "again"}) {
    write_file_atomically(folder_ / "link", text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
    EXPECT_EQ(read_file(folder_ / "real"), text);
  }
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THROW(write_file_atomically("/dev/full", std::string(1 << 20, 'x')), Error);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_THROW(write_file_atomically(folder_, "a folder"), Error);
}

TEST_F(PathsTest, LinksAreReplacedWhereAnybodyMayHaveMadeThem) {
  write_file_atomically(folder_ / "mine", "mine");
  std::filesystem::create_symlink(folder_ / "mine", folder_ / "link");
  replace_file(folder_ / "link", "theirs");
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder_ / "link")));
  EXPECT_EQ(read_file(folder_ / "link"), "theirs");
  EXPECT_EQ(read_file(folder_ / "mine"), "mine");
}

TEST_F(PathsTest, ReadingEndsAtALimit) {
  write_file_atomically(folder_ / "f", "123456");
  EXPECT_EQ(read_file(folder_ / "f", 6), "123456");
  EXPECT_THROW((void)read_file(folder_ / "f", 5), Error);
  EXPECT_THROW((void)read_file("/dev/zero", 1 << 20), Error);
}

TEST_F(PathsTest, WritesAndReadsBytes) {
  const std::string bytes("a\0b\r\n\xFF", 6);
  write_file_atomically(folder_ / "f", bytes);
  EXPECT_EQ(read_file(folder_ / "f"), bytes);
  write_file_atomically(folder_ / "f", "");
  EXPECT_EQ(read_file(folder_ / "f"), "");
  const std::string large(3'000'000, 'x');
  write_file_atomically(folder_ / "f", large);
  EXPECT_EQ(read_file(folder_ / "f"), large);
  EXPECT_EQ(files(), 1U);
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
}

TEST_F(PathsTest, ReadingWhatIsNotThereIsAFault) {
  EXPECT_EQ(code_of([&] { (void)read_file(folder_ / "none"); }), ENOENT);
  EXPECT_EQ(code_of([&] { (void)read_file(folder_); }), EISDIR);
}

TEST_F(PathsTest, AReadThatFailsIsNotTheEndOfTheFile) {
  EXPECT_NE(code_of([] { (void)read_file("/proc/self/mem"); }), 0);
}

TEST_F(PathsTest, AFailedWriteLeavesTheOldFileAndNoOther) {
  write_file_atomically(folder_ / "f", "old");
  // The file size limit stands for a full disk: the write stops half way.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::string message;
  try {
    write_file_atomically(folder_ / "f", std::string(100'000, 'n'));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), EFBIG);
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find((folder_ / "f").string()), std::string::npos) << message;
  EXPECT_EQ(read_file(folder_ / "f"), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(PathsTest, AFailedRenameClosesItsDescriptorOnce) {
  fs::create_directories(folder_ / "target" / "below");
  const int spare = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(spare);  // the number the write will get
  EXPECT_NE(code_of([&] { write_file_atomically(folder_ / "target", "x"); }), 0);
  EXPECT_EQ(files(), 1U) << "the temporary file is left";
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(next, spare);
  ::close(next);
}

TEST_F(PathsTest, WritingIntoAMissingFolderIsAFault) {
  EXPECT_EQ(code_of([&] { write_file_atomically(folder_ / "missing" / "f", "x"); }), ENOENT);
}

TEST_F(PathsTest, ALoadingProgramSaysWhereTheInstallationIs) {
  const Variable none("PASCALINE_DATA_DIR", nullptr);
  const fs::path data = folder_ / "share" / "pascaline" / "search_spaces";
  fs::create_directories(data);
  ASSERT_NE(installation_prefix(), folder_);
  set_installation_prefix(folder_);
  EXPECT_EQ(installation_prefix(), folder_);
  EXPECT_EQ(data_folder("search_spaces"), data);
  set_installation_prefix({});
  EXPECT_NE(installation_prefix(), folder_);
  EXPECT_NE(data_folder("search_spaces"), data);
}

TEST_F(PathsTest, DataFoldersAreFound) {
  {
    const Variable none("PASCALINE_DATA_DIR", nullptr);
    EXPECT_TRUE(fs::exists(data_folder("search_spaces") / "matmul.json"));
    EXPECT_TRUE(fs::exists(data_folder("kernel_templates") / "matmul.cu"));
  }
  fs::create_directories(folder_ / "search_spaces");
  const Variable own("PASCALINE_DATA_DIR", folder_.c_str());
  EXPECT_EQ(data_folder("search_spaces"), folder_ / "search_spaces");
  try {
    (void)data_folder("kernel_templates");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find((folder_ / "kernel_templates").string()), std::string::npos);
  }
}

TEST_F(PathsTest, WhatOthersCanWriteInADataFolderIsRefused) {
  const fs::path folder = folder_ / "kernel_templates";
  const fs::path nested = folder / "common" / "nested.cuh";
  fs::create_directories(nested.parent_path());
  write_file_atomically(folder / "own.cu", "x");
  write_file_atomically(nested, "x");
  const Variable own("PASCALINE_DATA_DIR", folder_.c_str());
  const auto complaint = []() -> std::string {
    try {
      (void)data_folder("kernel_templates");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint(), "");
  for (const fs::path& file : {folder / "own.cu", nested, nested.parent_path()}) {
    fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    EXPECT_NE(complaint().find(file.lexically_relative(folder).string() + " in it is not safe: everybody can write it"),
              std::string::npos)
        << complaint();
    fs::permissions(file, fs::perms::others_write, fs::perm_options::remove);
  }
  EXPECT_EQ(complaint(), "");
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere);
  write_file_atomically(elsewhere / "far.cuh", "x");
  fs::create_directory_symlink(elsewhere, folder / "linked");
  fs::create_directory_symlink(folder, folder / "loop");
  EXPECT_EQ(complaint(), "");
  fs::permissions(elsewhere / "far.cuh", fs::perms::others_write, fs::perm_options::add);
  EXPECT_NE(complaint().find("far.cuh in it is not safe: everybody can write it"), std::string::npos) << complaint();
}

TEST_F(PathsTest, CacheAndDatabaseFollowTheEnvironment) {
  const Variable cache("PASCALINE_CACHE_DIR", "/c");
  const Variable database("PASCALINE_DB", "/d.db");
  EXPECT_EQ(cache_folder(), "/c");
  EXPECT_EQ(default_database(), "/d.db");
  const Variable no_cache("PASCALINE_CACHE_DIR", "");
  const Variable no_database("PASCALINE_DB", nullptr);
  const Variable xdg_cache("XDG_CACHE_HOME", "/xc");
  const Variable xdg_data("XDG_DATA_HOME", "/xd");
  EXPECT_EQ(cache_folder(), "/xc/pascaline");
  EXPECT_EQ(default_database(), "/xd/pascaline/tuned.db");
  const Variable no_xdg_cache("XDG_CACHE_HOME", nullptr);
  const Variable no_xdg_data("XDG_DATA_HOME", nullptr);
  const Variable home("HOME", "/h");
  EXPECT_EQ(cache_folder(), "/h/.cache/pascaline");
  EXPECT_EQ(default_database(), "/h/.local/share/pascaline/tuned.db");
}

TEST_F(PathsTest, FoldersOfTheWorkingDirectoryAreNotThePrograms) {
  fs::create_directories(folder_ / "search_spaces");
  fs::create_directories(folder_ / "share" / "pascaline" / "search_spaces");
  const Variable none("PASCALINE_DATA_DIR", nullptr);
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  const fs::path found = data_folder("search_spaces");
  fs::current_path(before);
  EXPECT_TRUE(found.is_absolute());
  EXPECT_TRUE(fs::exists(found / "matmul.json")) << found;
}

TEST_F(PathsTest, OnlyFullPathsNameFoldersOfTheUser) {
  const Variable no_cache("PASCALINE_CACHE_DIR", nullptr);
  const Variable no_database("PASCALINE_DB", nullptr);
  const Variable xdg_cache("XDG_CACHE_HOME", "cache");
  const Variable xdg_data("XDG_DATA_HOME", ".");
  {
    const Variable home("HOME", "/h");
    EXPECT_EQ(cache_folder(), "/h/.cache/pascaline");
    EXPECT_EQ(default_database(), "/h/.local/share/pascaline/tuned.db");
  }
  const passwd* user = ::getpwuid(::geteuid());
  if (user == nullptr) {
    GTEST_SKIP() << "this user is not in the password database";
  }
  for (const char* value : {"", ".", "here"}) {
    const Variable home("HOME", value);
    EXPECT_EQ(cache_folder(), fs::path(user->pw_dir) / ".cache" / "pascaline") << value;
  }
}

// In a process of its own: prints what is said to a user whom nobody knows, and ends.
[[noreturn]] void ask_as_a_stranger() {
  for (const char* name : {"HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "PASCALINE_CACHE_DIR", "PASCALINE_DB"}) {
    ::unsetenv(name);
  }
  int code = ::setuid(2'000'000'011) == 0 ? 0 : 9;
  for (const auto& ask : {cache_folder, default_database}) {
    try {
      std::fprintf(stderr, "found %s\n", ask().c_str());
      code = 1;
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  std::_Exit(code);
}

TEST_F(PathsTest, WithoutAHomeNothingGoesWhereOthersMayPutFiles) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become a user whom nobody knows";
  }
  EXPECT_EXIT(ask_as_a_stranger(), ::testing::ExitedWithCode(0),
              "compiled kernels: HOME is not set.*--cache or PASCALINE_CACHE_DIR\n.*the database: HOME is not "
              "set.*--db or PASCALINE_DB");
}

}  // namespace
}  // namespace pascaline
