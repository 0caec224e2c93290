#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/util/paths.hpp"
#include "model/checkpoint/hf/safetensors.hpp"
#include "tests/model/checkpoint/model_fixture.hpp"

namespace pascaline {
namespace {

std::vector<std::byte> counted_bytes(std::size_t count, unsigned first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(first + i);
  }
  return bytes;
}

TEST(SafetensorsStreamTest, PiecesInAnyOrderAreTheFileThatIsWrittenAtOnce) {
  const testing::TemporaryFolder folder;
  const std::vector<std::byte> a = counted_bytes(40, 1);
  const std::vector<std::byte> b = counted_bytes(12, 100);
  std::vector<StoredTensor> tensors{{"b", StoredType::U8, {3, 4}, b}, {"a", StoredType::F32, {10}, a}};
  write_safetensors(folder.path() / "whole", tensors, {{"format", "pt"}});
  SafetensorsStream stream(folder.path() / "parts", tensors, {{"format", "pt"}});
  std::thread other([&] { stream.write(1, 16, std::span(a).subspan(16)); });
  stream.write(0, 4, std::span(b).subspan(4));
  stream.write(0, 0, std::span(b).first(4));
  stream.write(1, 0, std::span(a).first(16));
  other.join();
  EXPECT_THROW(stream.write(0, 11, std::span(b).first(2)), Error);
  EXPECT_THROW(stream.write(0, 13, {}), Error);
  stream.finish();
  EXPECT_EQ(read_file(folder.path() / "parts"), read_file(folder.path() / "whole"));
  EXPECT_EQ(stream.bytes(), std::filesystem::file_size(folder.path() / "parts"));
}

TEST(SafetensorsStreamTest, WhatCannotBeWrittenIsSaid) {
  const testing::TemporaryFolder folder;
  const std::vector<StoredTensor> one{{"a", StoredType::U8, {3}, {}}};
  EXPECT_THROW(SafetensorsStream(folder.path() / "absent" / "x", one, {}), Error);
  folder.write("there", "");
  EXPECT_THROW(SafetensorsStream(folder.path() / "there", one, {}), Error);
  const std::vector<StoredTensor> vast{{"a", StoredType::F64, {INT64_MAX}, {}}};
  EXPECT_THROW(SafetensorsStream(folder.path() / "x", vast, {}), ModelError);
  const std::vector<StoredTensor> huge{{"a", StoredType::U8, {std::int64_t{1} << 60}, {}}};
  EXPECT_THROW(SafetensorsStream(folder.path() / "y", huge, {}), Error);
  const std::vector<StoredTensor> twice{{"a", StoredType::U8, {3}, {}}, {"a", StoredType::U8, {3}, {}}};
  EXPECT_THROW(SafetensorsStream(folder.path() / "z", twice, {}), ModelError);
}

}  // namespace
}  // namespace pascaline
