#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/cli_fixture.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

/// `pascaline cache` on a folder into which the toy kernel was compiled.
class CliCacheTest : public CliTest {
 protected:
  const fs::path cache_ = folder_ / "cache";

  [[nodiscard]] ProgramResult on_cache(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"cache", "--cache", cache_.string()});
    return run(words);
  }
  [[nodiscard]] nlohmann::json document(std::vector<std::string> words = {}) const {
    words.emplace_back("--json");
    return json_of(on_cache(words));
  }
  // Another kernel for each value, so that they are different entries.
  void compile(const std::string& block) const {
    const ProgramResult result = run(on_toy("compile", {"--arch", "emulator", "--set", "BLOCK=" + block}),
                                     {.environment = {{"PASCALINE_CACHE_DIR", cache_.string()}}});
    ASSERT_EQ(result.exit_code, 0) << result.error;
  }
  // Kernels, or, which only GCC makes, parsed headers.
  [[nodiscard]] std::vector<fs::path> files(bool headers = false) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
      if (entry.is_regular_file() && (entry.path().extension() == ".gch") == headers) {
        found.push_back(entry.path());
      }
    }
    return found;
  }
  [[nodiscard]] std::uintmax_t bytes(bool headers = false) const {
    std::uintmax_t sum = 0;
    for (const fs::path& file : files(headers)) {
      sum += fs::file_size(file);
    }
    return sum;
  }
};

TEST_F(CliCacheTest, ShowsWhatACompilationStored) {
  compile("32");
  compile("64");
  const std::size_t headers = files(true).size();
  const nlohmann::json document = this->document();
  EXPECT_EQ(document["folder"], cache_.string());
  EXPECT_EQ(document["exists"], true);
  EXPECT_EQ(document["files"], 2 + headers);
  EXPECT_EQ(document["bytes"], bytes() + bytes(true));
  ASSERT_EQ(document["kinds"].size(), 1 + headers);
  EXPECT_EQ(document["kinds"].back(),
            (nlohmann::json{{"kind", "shared object"}, {"target", "host"}, {"files", 2}, {"bytes", bytes()}}));
  EXPECT_LE(document["oldest_use_unix_ms"], document["newest_use_unix_ms"]);

  const ProgramResult text = on_cache();
  EXPECT_EQ(text.exit_code, 0);
  for (const std::string& part :
       {fmt::format("{}: {} files, ", cache_.string(), 2 + headers), std::string("shared object for host"),
        std::string("last used: from 20"), std::string(" UTC\n")}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " in " << text.out;
  }
  EXPECT_EQ(files().size(), 2U) << "showing removes nothing";
}

TEST_F(CliCacheTest, ClearsItsOwnFilesOnlyAndCompilesAgain) {
  compile("32");
  const fs::path entry = files().at(0);
  const std::string whole = read_file(entry);
  write_bytes(folder_ / "outside", whole);
  write_bytes(cache_ / "device-0123.lock", "process 1");
  write_bytes(entry.parent_path() / "notes.txt", "mine");
  write_bytes(entry.parent_path() / std::string(30, 'a'), "mine, too");
  const fs::path link = entry.parent_path() / std::string(30, 'b');
  fs::create_symlink(folder_ / "outside", link);
  fs::create_directory(folder_ / "linked");
  write_bytes(folder_ / "linked" / entry.filename(), whole);
  fs::create_directory_symlink(folder_ / "linked", cache_ / "zz");
  const std::string unused = entry.parent_path().filename() == "00" ? "01" : "00";
  fs::create_directory_symlink(folder_ / "linked", cache_ / unused);

  const std::size_t own = 1 + files(true).size();
  const ProgramResult cleared = on_cache({"--clear"});
  EXPECT_EQ(cleared.exit_code, 0) << cleared.error;
  EXPECT_EQ(cleared.out.find(fmt::format("removed {} file", own)), 0U) << cleared.out;
  EXPECT_TRUE(files(true).empty());
  EXPECT_NE(cleared.out.find("; 0 files, 0 B left"), std::string::npos) << cleared.out;
  EXPECT_FALSE(fs::exists(entry));
  for (const fs::path& kept :
       {folder_ / "outside", folder_ / "linked" / entry.filename().string(), cache_ / "device-0123.lock",
        entry.parent_path() / "notes.txt", entry.parent_path() / std::string(30, 'a'), link}) {
    EXPECT_TRUE(fs::exists(kept)) << kept;
  }
  compile("32");
  EXPECT_EQ(read_file(entry), whole);
}

TEST_F(CliCacheTest, ClearsThoseThatWereNotUsedForSomeDays) {
  compile("32");
  const fs::path old = files().at(0);
  const auto age = [&](int hours) {
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  compile("64");
  age(7 * 24 - 1);
  EXPECT_EQ(document({"--clear", "--older-than", "7"})["removed"], (nlohmann::json{{"files", 0}, {"bytes", 0}}));
  age(7 * 24 + 1);
  compile("32");  // which is a use
  const std::size_t headers = files(true).size();
  EXPECT_EQ(document({"--clear", "--older-than", "7"})["files"], 2 + headers);
  age(7 * 24 + 1);
  const std::uintmax_t bytes = fs::file_size(old);
  const nlohmann::json cleared = document({"--clear", "--older-than", "7"});
  EXPECT_EQ(cleared["removed"], (nlohmann::json{{"files", 1}, {"bytes", bytes}}));
  EXPECT_EQ(cleared["files"], 1 + headers);
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(CliCacheTest, AFolderThatIsNotThereIsNoFault) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"--clear"}}) {
    const ProgramResult result = on_cache(words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_NE(result.out.find(cache_.string() + " does not exist yet"), std::string::npos) << result.out;
    const nlohmann::json document = this->document(words);
    EXPECT_EQ(document["exists"], false);
    EXPECT_EQ(document["files"], 0);
    EXPECT_TRUE(document["oldest_use_unix_ms"].is_null());
  }
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(CliCacheTest, RefusesWhatIsNoFolderAndAnAgeWithoutClear) {
  write_bytes(cache_, "a file");
  expect_fault(on_cache(), 1, {"cannot list the folder " + cache_.string()});
  expect_fault(on_cache({"--clear"}), 1, {cache_.string()});
  expect_fault(on_cache({"--older-than", "7"}), 2, {"--older-than requires --clear"});
  for (const char* days : {"-1", "1.5", "7d", "40000"}) {
    expect_fault(on_cache({"--clear", fmt::format("--older-than={}", days)}), 2, {"--older-than"});
  }
}

}  // namespace
}  // namespace pascaline::testing
