#include "model/checkpoint/hf/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

using testing::complaint_of;
using testing::TemporaryFolder;

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

TEST(SafetensorsTest, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> small{1, 2, 3};
  const std::vector<float> wide{1.5F, -2.0F};
  const std::vector<StoredTensor> tensors{{"small", StoredType::U8, {3}, bytes_of(small)},
                                          {"wide/\"\xC3\xA9\"", StoredType::F32, {2, 1}, bytes_of(wide)},
                                          {"empty", StoredType::I64, {0, 5}, {}}};
  const auto file = folder.path() / "out.safetensors";
  write_safetensors(file, tensors, {{"format", "pt"}});
  Safetensors first(file);
  const Safetensors read = std::move(first);
  EXPECT_EQ(read.path(), file);
  EXPECT_EQ(read.metadata().at("format"), "pt");
  ASSERT_EQ(read.tensors().size(), 3U);
  for (const StoredTensor& written : tensors) {
    const StoredTensor& tensor = read.at(written.name);
    EXPECT_EQ(tensor.type, written.type);
    EXPECT_EQ(tensor.shape, written.shape);
    EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), written.bytes.begin(), written.bytes.end()));
  }
  // Wide types come first and are aligned.
  const auto address = reinterpret_cast<std::uintptr_t>(read.at(tensors[1].name).bytes.data());
  EXPECT_EQ(address % sizeof(float), 0U);
  EXPECT_EQ(read.find("absent"), nullptr);
  PASCALINE_EXPECT_SAYS(complaint_of([&] { (void)read.at("absent"); }), "there is no tensor 'absent' among its 3");
  MappedFile::read_ahead(read.at("small").bytes);
  MappedFile::read_ahead({});
}

TEST(SafetensorsTest, WritingReplacesTheFileOrLeavesIt) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "out.safetensors";
  const std::vector<float> value{1.0F};
  const StoredTensor tensor{"w", StoredType::F32, {1}, bytes_of(value)};
  write_safetensors(file, {&tensor, 1});
  const std::string before = read_file(file);
  const auto refuse = [&](const std::vector<StoredTensor>& tensors, const char* says) {
    PASCALINE_EXPECT_SAYS(complaint_of([&] { write_safetensors(file, tensors); }), says);
  };
  refuse({tensor, tensor}, "cannot write tensor 'w': the name is taken");
  refuse({{"__metadata__", StoredType::F32, {1}, bytes_of(value)}}, "the name is taken");
  refuse({{"w", StoredType::F32, {2}, bytes_of(value)}}, "not as many as its type and shape need");
  refuse({{"w", StoredType::F64, {1}, bytes_of(value)}}, "not as many as its type and shape need");
  refuse({{"w", StoredType::F32, {-1}, bytes_of(value)}}, "not as many as its type and shape need");
  refuse({{"\xFF", StoredType::F32, {1}, bytes_of(value)}}, "not UTF-8");
  EXPECT_EQ(read_file(file), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(SafetensorsTest, AFileThatCannotBeWrittenIsNamed) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "absent" / "out.safetensors";
  try {
    write_safetensors(file, {});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ENOENT);
    PASCALINE_EXPECT_SAYS(error.what(), "cannot write " + file.string());
  }
}

TEST(SafetensorsTest, OnlyRegularFilesAreMapped) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto open = [](const std::filesystem::path& file) {
    return complaint_of([&] { const Safetensors opened(file); });
  };
  PASCALINE_EXPECT_SAYS(open(pipe), "pipe: this is not a regular file");
  PASCALINE_EXPECT_SAYS(open(folder.path()), "this is not a regular file");
  PASCALINE_EXPECT_SAYS(open(folder.path() / "absent"), "absent: cannot open this file: No such file");
  PASCALINE_EXPECT_SAYS(open(folder.write("empty", "")), "empty: 0 bytes are too few");
}

TEST(SafetensorsTest, AMappedFileMoves) {
  const TemporaryFolder folder;
  MappedFile one(folder.write("one", "1"));
  MappedFile two(folder.write("two", "22"));
  two = std::move(one);
  EXPECT_EQ(two.path().filename(), "one");
  ASSERT_EQ(two.bytes().size(), 1U);
  EXPECT_EQ(two.bytes()[0], std::byte{'1'});
  const MappedFile three(std::move(two));
  EXPECT_EQ(three.bytes().size(), 1U);
}

}  // namespace
}  // namespace pascaline
