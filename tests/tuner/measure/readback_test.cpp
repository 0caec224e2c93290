#include "tuner/measure/readback.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace pascaline::testing {
namespace {

class ReadbackTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_device("emulator");
  Readback readback_{*device_};

  struct Seen {
    std::vector<std::byte> bytes;
    std::vector<std::size_t> offsets;
  };
  Seen read(const Buffer& buffer) {
    Seen seen;
    readback_.read(buffer, [&](std::span<const std::byte> piece, std::size_t offset) {
      EXPECT_EQ(offset, seen.bytes.size());
      seen.offsets.push_back(offset);
      seen.bytes.insert(seen.bytes.end(), piece.begin(), piece.end());
    });
    return seen;
  }
  // Bytes of which every piece differs.
  static std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> all(count);
    for (std::size_t i = 0; i < count; ++i) {
      all[i] = static_cast<std::byte>((i * 2654435761U) >> 13U);
    }
    return all;
  }
};

TEST_F(ReadbackTest, PiecesAreTheBufferInOrder) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{4096}, Readback::kPieceBytes, Readback::kPieceBytes + 4,
                                  2 * Readback::kPieceBytes, 3 * Readback::kPieceBytes + 12}) {
    const Buffer buffer = device_->allocate(count);
    const std::vector<std::byte> content = bytes(count);
    device_->upload(buffer, content);
    const Seen seen = read(buffer);
    EXPECT_TRUE(seen.bytes == content) << count;
    EXPECT_EQ(seen.offsets.size(), (count + Readback::kPieceBytes - 1) / Readback::kPieceBytes) << count;
  }
}

TEST_F(ReadbackTest, AnEmptyBufferHasNoPiece) { EXPECT_TRUE(read(device_->allocate(0)).offsets.empty()); }

TEST_F(ReadbackTest, AfterAnErrorOfTheOneWhoLooksItReadsOn) {
  const Buffer buffer = device_->allocate(3 * Readback::kPieceBytes);
  device_->upload(buffer, bytes(buffer.bytes()));
  EXPECT_THROW(readback_.read(buffer, [](auto, std::size_t) { throw std::runtime_error("enough"); }),
               std::runtime_error);
  EXPECT_TRUE(read(buffer).bytes == bytes(buffer.bytes()));
}

}  // namespace
}  // namespace pascaline::testing
