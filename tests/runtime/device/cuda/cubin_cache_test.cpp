#include "runtime/device/cubin_cache.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "tests/runtime/device/cuda/support.hpp"

namespace pascaline::testing {
namespace {

namespace fs = std::filesystem;

const std::string kKey = "0123456789abcdef0123456789abcdef";

CompileResult sample() {
  CompileResult result;
  result.ok = true;
  result.binary.kind = BinaryKind::ptx;
  result.binary.target = "compute_61";
  result.binary.function = "k";
  result.binary.code = std::string("code\0with zeros\n", 16);
  result.binary.log = "a log";
  result.binary.compile_ms = 12.5;
  result.binary.max_registers = 64;
  result.binary.resources = {40, 1024, 340, 16, 3, 4, 500, 128};
  return result;
}

fs::path only_file(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      return entry.path();
    }
  }
  return {};
}

TEST(CubinCache, GivesBackWhatWasStored) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path() / "made" / "here");
  EXPECT_FALSE(cache.find(kKey));
  cache.store(kKey, sample());
  const std::optional<CompileResult> found = cache.find(kKey);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->ok);
  EXPECT_EQ(found->binary.code, sample().binary.code);
  EXPECT_EQ(found->binary.kind, BinaryKind::ptx);
  EXPECT_EQ(found->binary.target, "compute_61");
  EXPECT_EQ(found->binary.function, "k");
  EXPECT_EQ(found->binary.log, "a log");
  EXPECT_EQ(found->binary.max_registers, 64);
  EXPECT_EQ(found->binary.resources.registers, 40);
  EXPECT_EQ(found->binary.resources.ffma, 128);
  EXPECT_TRUE(found->binary.from_cache);
  EXPECT_EQ(found->binary.compile_ms, 0);
  EXPECT_EQ(only_file(cache.folder()).parent_path().filename(), "01");
}

TEST(CubinCache, FailuresAreKeptToo) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  CompileResult failed;
  failed.reason = "k.cu(3): error";
  failed.log = "k.cu(3): error\nand more";
  cache.store(kKey, failed);
  const std::optional<CompileResult> found = cache.find(kKey);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->ok);
  EXPECT_EQ(found->reason, failed.reason);
  EXPECT_EQ(found->log, failed.log);
}

TEST(CubinCache, DamagedEntriesAreRemoved) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  cache.store(kKey, sample());
  const fs::path file = only_file(folder.path());
  const std::string whole = read_file(file);
  const auto expect_removed = [&](const std::string& bytes, const std::string& how) {
    write_file_atomically(file, bytes);
    EXPECT_FALSE(cache.find(kKey)) << how;
    EXPECT_FALSE(fs::exists(file)) << how;
  };
  for (std::size_t length = 0; length < whole.size(); ++length) {
    expect_removed(whole.substr(0, length), "cut to " + std::to_string(length));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    expect_removed(flipped, "flipped at " + std::to_string(at));
  }
  expect_removed(std::string(whole.size(), '\0'), "zeros");
  expect_removed(whole + "x", "longer");
  write_file_atomically(file, whole);
  EXPECT_TRUE(cache.find(kKey));
}

TEST(CubinCache, KeysThatAreNoFileNamesAreRefused) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  for (const char* key : {"", "a", "ab", "../../../../etc/passwd", "ab/cd", "..x"}) {
    EXPECT_THROW((void)cache.find(key), Error) << key;
    EXPECT_THROW(cache.store(key, sample()), Error) << key;
  }
}

// A file where a folder must be is an obstacle for root as well.
TEST(CubinCache, FolderThatCannotBeMadeIsNamedWhenSomethingIsStored) {
  const TemporaryFolder folder;
  const fs::path obstacle = folder.write("file", "");
  const CubinCache cache(obstacle / "cache");
  EXPECT_FALSE(cache.find(kKey));
  try {
    cache.store(kKey, sample());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(obstacle.string()), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("PASCALINE_CACHE_DIR"), std::string::npos);
  }
}

TEST(CubinCache, WhatOthersCanChangeIsNotLoaded) {
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "cache/";
  const CubinCache cache(place);
  cache.store(kKey, sample());
  const fs::path file = only_file(place);
  for (const fs::path& path : {file, file.parent_path(), cache.folder()}) {
    const fs::perms before = fs::status(path).permissions();
    fs::permissions(path, before | fs::perms::group_write);
    try {
      (void)cache.find(kKey);
      ADD_FAILURE() << "loaded from " << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("cannot use " + path.string()), std::string::npos) << error.what();
    }
    fs::permissions(path, before);
    EXPECT_TRUE(cache.find(kKey));
  }
  fs::rename(file, folder.path() / "entry");
  fs::create_symlink(folder.path() / "entry", file);
  EXPECT_FALSE(cache.find(kKey)) << "a link";
}

TEST(CubinCache, CompilesOnceAndSurvivesADiskThatRefuses) {
  const std::vector<NvrtcInfo> libraries = nvrtc_for("sm_61");
  PASCALINE_NEED_NVRTC(libraries);
  const Toolchain toolchain = Toolchain::find("sm_61", libraries.front().path);
  const KernelSource source = source_of("extern \"C\" __global__ void k(int* x) { *x = 1; }");
  const CompileRequest request = request_for(source, "k");
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  const CompileResult first = cache.get(toolchain, request);
  const CompileResult second = cache.get(toolchain, request);
  ASSERT_TRUE(first.ok && second.ok);
  EXPECT_FALSE(first.binary.from_cache);
  EXPECT_TRUE(second.binary.from_cache);
  EXPECT_EQ(first.binary.code, second.binary.code);

  const std::string key = toolchain.cache_key(request);
  fs::remove_all(folder.path() / key.substr(0, 2));
  folder.write(key.substr(0, 2), "a file in the way");
  EXPECT_THROW(cache.store(key, first), Error);
  const CompileResult third = cache.get(toolchain, request);
  EXPECT_TRUE(third.ok);
  EXPECT_FALSE(third.binary.from_cache);
}

TEST(CubinCache, ReadersNeverSeeHalfAnEntry) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  CompileResult large = sample();
  large.binary.code.assign(200000, 'x');
  cache.store(kKey, large);
  std::thread writer([&] {
    for (int i = 0; i < 200; ++i) {
      cache.store(kKey, large);
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(cache.find(kKey));
  }
  writer.join();
}

std::string key_of(int number) { return kKey.substr(0, kKey.size() - 1) + std::to_string(number); }

TEST(CubinCache, ListsItsEntriesByTheirBeginning) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path() / "cache");
  EXPECT_TRUE(cache.entries().empty()) << "the folder is missing";
  CompileResult failed;
  failed.log.assign(5000, 'x');
  cache.store(key_of(0), failed);
  const std::vector<std::string> names{"cubin", "ptx", "shared object"};
  for (int kind = 0; kind < 3; ++kind) {
    CompileResult result = sample();
    result.binary.kind = static_cast<BinaryKind>(kind);
    cache.store(key_of(1 + kind), result);
  }
  CompileResult odd = sample();
  odd.binary.target = "\x1b[31m\xff";
  cache.store(key_of(4), odd);
  const fs::path place = cache.folder() / "01";
  const std::string whole = read_file(place / key_of(1).substr(2));
  write_file_atomically(place / key_of(5).substr(2), whole.substr(0, 40));
  write_file_atomically(place / key_of(6).substr(2), "pascaline binary 1\nof an earlier version");

  const std::vector<CubinCacheEntry> entries = cache.entries();
  ASSERT_EQ(entries.size(), 7U);
  const std::vector<std::string> kinds{"failed compilation", names[0],     names[1],    names[2],
                                       "unreadable",         "unreadable", "unreadable"};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].key, key_of(static_cast<int>(i)));
    EXPECT_EQ(entries[i].kind, kinds[i]) << i;
    EXPECT_EQ(entries[i].target, i >= 1 && i <= 3 ? "compute_61" : "") << i;
    EXPECT_EQ(entries[i].bytes, fs::file_size(place / entries[i].key.substr(2)));
  }
}

TEST(CubinCache, AnEntrysTimeIsThatOfItsLastUse) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  cache.store(kKey, sample());
  const std::int64_t stored = cache.entries().at(0).used_unix_ms;
  const fs::path file = only_file(folder.path());
  fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(50));
  EXPECT_NEAR(static_cast<double>(cache.entries().at(0).used_unix_ms), static_cast<double>(stored) - 50 * 3.6e6, 2);
  EXPECT_TRUE(cache.find(kKey));
  EXPECT_GE(cache.entries().at(0).used_unix_ms, stored);
}

TEST(CubinCache, ListsAndRemovesNothingElse) {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path() / "cache");
  cache.store(kKey, sample());
  const CubinCacheEntry entry = cache.entries().at(0);
  const fs::path file = only_file(cache.folder());
  const std::string whole = read_file(file);
  const std::string name = file.filename().string();
  fs::create_directories(cache.folder() / "02" / key_of(1).substr(2));
  fs::create_directories(cache.folder() / "else");
  fs::create_directories(folder.path() / "target");
  for (const fs::path& other : {folder.path() / "target" / name, cache.folder() / name, cache.folder() / "else" / name,
                                cache.folder() / "01" / "notes", cache.folder() / "01" / (name + "0")}) {
    write_file_atomically(other, whole);
  }
  write_file_atomically(cache.folder() / "02" / name, "no entry");
  fs::create_symlink(folder.path() / "target", cache.folder() / "03");
  fs::create_symlink(folder.path() / "target" / name, cache.folder() / "01" / key_of(2).substr(2));
  ASSERT_EQ(cache.entries().size(), 1U);
  EXPECT_EQ(cache.entries()[0].key, kKey);

  CubinCacheEntry linked = entry;
  linked.key = "03" + name;
  EXPECT_THROW((void)cache.remove(linked), Error);
  EXPECT_TRUE(fs::exists(folder.path() / "target" / name));
  EXPECT_TRUE(cache.remove(entry));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(fs::is_directory(file.parent_path())) << "somebody may be about to store something there";
  EXPECT_FALSE(cache.remove(entry)) << "it is gone";
  EXPECT_TRUE(cache.entries().empty());
}

}  // namespace
}  // namespace pascaline::testing
