#include "runtime/formats/block_format.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.hpp"
#include "tests/runtime/formats/all_formats.hpp"
#include "tests/runtime/formats/draws.hpp"
#include "tests/share.hpp"

namespace pascaline::testing {
namespace {

// What the Python package `gguf` 0.19 makes of the same blocks and values: make_golden.py.
const nlohmann::json& golden(std::string_view format) {
  static const nlohmann::json all = nlohmann::json::parse(std::ifstream(PASCALINE_TEST_FORMATS_DATA "/golden.json"));
  return all.at(std::string(format));
}

constexpr std::size_t kChunk = 10'000;

std::vector<std::byte> chunk_of_blocks(const FormatTraits& info, std::size_t chunk) {
  const std::size_t words = (kChunk * info.block.bytes + 7) / 8;
  std::vector<std::byte> bytes(words * 8);
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = splitmix(chunk * words + i);
    std::memcpy(bytes.data() + 8 * i, &word, sizeof word);
  }
  bytes.resize(kChunk * info.block.bytes);
  if (chunk == 0) {
    std::size_t block = 0;
    for (const int byte : {0x00, 0xFF, 0x80, 0x7F, 0x01, 0x0F, 0xF0, 0x88}) {
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(block++ * info.block.bytes), info.block.bytes,
                  static_cast<std::byte>(byte));
    }
  }
  for (std::size_t block = 0; block < kChunk; ++block) {
    for (std::size_t i = 0; i < info.block.scales(); ++i) {
      std::byte& high = bytes[block * info.block.bytes + info.block.scales_at + 2 * i + 1];
      if ((high & std::byte{0x7C}) == std::byte{0x7C}) {
        high ^= std::byte{0x40};
      }
    }
  }
  return bytes;
}

std::string hash_of_blocks(const FormatTraits& info, std::size_t chunks) {
  XXH64_state_t state;
  XXH64_reset(&state, 0);
  std::vector<float> values(kChunk * info.block.values);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    dequantize(info.type, chunk_of_blocks(info, chunk), values);
    XXH64_update(&state, values.data(), values.size() * sizeof(float));
  }
  return fmt::format("{:016x}", XXH64_digest(&state));
}

std::vector<std::byte> quantized(const FormatTraits& info, std::span<const float> values) {
  std::vector<std::byte> blocks(values.size() / info.block.values * info.block.bytes);
  EXPECT_FALSE(quantize(info.type, values, blocks));
  return blocks;
}

std::vector<float> dequantized(const FormatTraits& info, std::span<const std::byte> blocks) {
  std::vector<float> values(blocks.size() / info.block.bytes * info.block.values);
  dequantize(info.type, blocks, values);
  return values;
}

double squared_error(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return sum;
}

double squares(std::span<const float> values) { return squared_error(values, std::vector<float>(values.size())); }

class BlockFormatTest : public ::testing::TestWithParam<ElementType> {
 protected:
  const FormatTraits& info_ = traits_of(GetParam());
  const std::size_t values_ = info_.block.values;
};

TEST_P(BlockFormatTest, BlocksAreThoseOfGguf) {
  EXPECT_EQ(hash_of_blocks(info_, 1), golden(info_.name).at("few").get<std::string>());
}

TEST_P(BlockFormatTest, AMillionBlocksAreThoseOfGguf) {
  const bool all = test_share() == 1;
  if (!all) {
    std::printf("a share of the test: 10,000 blocks (PASCALINE_TEST_SHARE)\n");
  }
  EXPECT_EQ(hash_of_blocks(info_, all ? 100 : 1), golden(info_.name).at(all ? "many" : "few").get<std::string>());
}

// The package gguf quantizes a short block by its largest value alone: no block of ours may be worse. llama.cpp, which
// weighs values by their size, may have the smaller error of a few.
TEST_P(BlockFormatTest, ErrorIsNotAboveThatOfGgufOrLlama) {
  const nlohmann::json& entry = golden(info_.name);
  const bool by_gguf = entry.contains("squared_errors");
  const auto errors = entry.at(by_gguf ? "squared_errors" : "squared_errors_of_llama").get<std::vector<double>>();
  const std::vector<float> values = drawn_values(errors.size(), values_);
  const std::vector<float> made = dequantized(info_, quantized(info_, values));
  double own = 0;
  double theirs = 0;
  std::size_t worse = 0;
  for (std::size_t block = 0; block < errors.size(); ++block) {
    const auto part = [&](std::span<const float> all) { return all.subspan(block * values_, values_); };
    const double error = squared_error(part(values), part(made));
    // Both are sums of the same rounded terms in different orders.
    worse += error > errors[block] * (1 + 1e-12) ? 1 : 0;
    own += error / std::max(squares(part(values)), 1e-300);
    theirs += errors[block] / std::max(squares(part(values)), 1e-300);
  }
  EXPECT_LE(worse, by_gguf ? 0 : errors.size() / 12);
  EXPECT_LT(own, theirs) << "a search that finds nothing better";
}

// Bits of a value in mind: an error of at most half a step of the block's range, and a signal far above it.
TEST_P(BlockFormatTest, ErrorsAreThoseOfSoManyBits) {
  const std::vector<float> values = drawn_values(64, values_);
  const std::vector<float> made = dequantized(info_, quantized(info_, values));
  // A scale that is a power of two fits the largest value less.
  const double steps = info_.block.exponent_reach > 0 ? 2.2 : 1.92;
  const double allowed = info_.bits == 8 ? 0.01 : steps / static_cast<double>(1U << info_.bits);
  for (std::size_t block = 0; block < 64; ++block) {
    if (block % 32 == 31 || block % 41 < 20) {
      continue;  // one large value drowns the others; scales so small that float16 rounds them coarsely
    }
    const auto part = [&](std::span<const float> all) { return all.subspan(block * values_, values_); };
    EXPECT_LE(std::sqrt(squared_error(part(values), part(made))), allowed * std::sqrt(squares(part(values))) + 1e-30)
        << "block " << block;
  }
}

// Quantizing what a block holds must not make it worse: its own scale is among those found.
TEST_P(BlockFormatTest, ValuesOfBlocksAreKeptNearly) {
  const std::vector<float> values = dequantized(info_, quantized(info_, drawn_values(64, values_)));
  const std::vector<float> again = dequantized(info_, quantized(info_, values));
  EXPECT_LE(squared_error(values, again), 1e-3 * squares(values));
}

TEST_P(BlockFormatTest, ZerosStayZero) {
  const std::vector<float> zeros(4 * values_, 0.0F);
  for (const float value : dequantized(info_, quantized(info_, zeros))) {
    EXPECT_EQ(value, 0.0F);
  }
}

TEST_P(BlockFormatTest, TinyAndHugeValuesAreHeldOrRefused) {
  std::vector<float> values(values_);
  std::vector<std::byte> blocks(info_.block.bytes);
  for (const float magnitude : {std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(), 1e-20F,
                                1e-8F, 6e4F, 5e5F, 1e9F, 1e30F, std::numeric_limits<float>::max()}) {
    for (std::size_t i = 0; i < values_; ++i) {
      values[i] = magnitude * (i % 2 == 0 ? 1.0F : -0.5F);
    }
    if (const auto unfit = quantize(info_.type, values, blocks)) {
      EXPECT_GE(magnitude, 6e4F);
      EXPECT_EQ(unfit->value, 0U);
      EXPECT_NE(unfit->reason.find(info_.block.exponent_reach > 0 ? "2^64" : "float16"), std::string::npos);
      continue;
    }
    const std::vector<float> made = dequantized(info_, blocks);
    for (const float value : made) {
      EXPECT_TRUE(std::isfinite(value));
    }
    EXPECT_LE(squared_error(values, made), squares(values)) << magnitude;
    if (magnitude >= (info_.block.exponent_reach > 0 ? 1e30F : 1e9F)) {
      ADD_FAILURE() << info_.name << " took " << magnitude;
    }
  }
}

TEST_P(BlockFormatTest, ValuesThatAreNotFiniteAreNamed) {
  std::vector<float> values(3 * values_, 1.0F);
  std::vector<std::byte> blocks(3 * info_.block.bytes);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    values[2 * values_ + 5] = bad;
    const auto unfit = quantize(info_.type, values, blocks);
    ASSERT_TRUE(unfit);
    EXPECT_EQ(unfit->value, 2 * values_ + 5);
    EXPECT_EQ(unfit->reason, "is not finite");
  }
}

TEST_P(BlockFormatTest, LengthsMustAgree) {
  std::vector<float> values(values_ + 1);
  std::vector<std::byte> blocks(info_.block.bytes);
  EXPECT_THROW(dequantize(info_.type, blocks, values), Error);
  EXPECT_THROW((void)quantize(info_.type, values, blocks), Error);
  values.resize(values_);
  blocks.pop_back();
  EXPECT_THROW(dequantize(info_.type, blocks, values), Error);
  EXPECT_THROW((void)quantize(info_.type, values, blocks), Error);
}

INSTANTIATE_TEST_SUITE_P(Formats, BlockFormatTest, ::testing::ValuesIn(ggml_formats()),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace pascaline::testing
