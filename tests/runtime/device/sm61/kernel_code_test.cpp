#include "runtime/device/sm61/kernel_code.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.hpp"
#include "tests/runtime/device/sm61/code_exercise.hpp"
#include "tests/runtime/device/sm61/code_fixture.hpp"

namespace pascaline::sm61 {
namespace {

using testing::stored_cubin;

constexpr std::size_t kSectionTable = 40;  // of the ELF header
constexpr std::size_t kFlags = 48;
constexpr std::size_t kSectionHeaderBytes = 58;
constexpr std::size_t kSectionCount = 60;

template <typename T>
T get(const std::string& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
std::string with(std::string bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

std::string refusal(const std::string& bytes, const std::string& kernel) {
  try {
    (void)read_kernel(bytes, kernel);
    return "taken";
  } catch (const Error& error) {
    return error.what();
  }
}

// Where the header of the section of that kernel's code lies.
std::size_t code_header(const std::string& bytes, const std::string& kernel) {
  const auto table = get<std::uint64_t>(bytes, kSectionTable);
  const auto names = get<std::uint64_t>(bytes, table + 64 * get<std::uint16_t>(bytes, 62) + 24);
  for (std::size_t i = 0; i < get<std::uint16_t>(bytes, kSectionCount); ++i) {
    if (bytes.c_str() + names + get<std::uint32_t>(bytes, table + 64 * i) == ".text." + kernel) {
      return table + 64 * i;
    }
  }
  return 0;
}

TEST(Sm61KernelCode, ResourcesOfStoredKernels) {
  const KernelCode matmul = read_kernel(stored_cubin("matmul"), "matmul");
  EXPECT_EQ(matmul.name, "matmul");
  EXPECT_EQ(matmul.registers, 96);
  EXPECT_EQ(matmul.shared_bytes, 17408);
  EXPECT_EQ(matmul.local_bytes, 0);
  const KernelCode transpose = read_kernel(stored_cubin("transpose"), "transpose");
  EXPECT_EQ(transpose.registers, 18);
  EXPECT_EQ(transpose.shared_bytes, 4224);
  EXPECT_TRUE(transpose.costs.empty());
  EXPECT_EQ(transpose.hottest, std::nullopt);
}

TEST(Sm61KernelCode, LoopsOfAStoredKernel) {
  const std::vector<KernelCode> kernels = read_kernels(stored_cubin("matvec_q"));
  ASSERT_EQ(kernels.size(), 1U);
  const KernelCode& kernel = kernels.front();
  std::vector<std::pair<std::uint32_t, std::int32_t>> nesting;
  for (const Loop& loop : kernel.flow.loops) {
    nesting.emplace_back(loop.depth, loop.parent);
  }
  EXPECT_EQ(nesting, (std::vector<std::pair<std::uint32_t, std::int32_t>>{{1, -1}, {2, 0}, {2, 0}, {1, -1}, {1, -1}}));
  EXPECT_EQ(kernel.hottest, 2U);
  EXPECT_GT(kernel.costs[2].own.of(Kind::dp4a), 0U);
}

TEST(Sm61KernelCode, RefusesWhatItCannotRead) {
  const std::string cubin = stored_cubin("transpose");
  EXPECT_NE(refusal(cubin, "nosuch").find("no machine code of a kernel nosuch"), std::string::npos);
  EXPECT_NE(refusal("", "transpose").find("not a cubin"), std::string::npos);
  EXPECT_NE(refusal(std::string(4096, '\0'), "transpose").find("not a cubin"), std::string::npos);
  EXPECT_NE(refusal(with<std::uint8_t>(cubin, kFlags, 75), "transpose").find("sm_75"), std::string::npos);
  EXPECT_NE(refusal(with<std::uint16_t>(cubin, kSectionHeaderBytes, 56), "transpose").find("damaged"),
            std::string::npos);
  EXPECT_NE(refusal(with<std::uint16_t>(cubin, kSectionCount, 0), "transpose").find("damaged"), std::string::npos);
  EXPECT_NE(refusal(with<std::uint64_t>(cubin, kSectionTable, ~std::uint64_t{0} - 5), "transpose").find("damaged"),
            std::string::npos);
  const std::size_t header = code_header(cubin, "transpose");
  ASSERT_GT(header, 0U);
  EXPECT_NE(refusal(with<std::uint64_t>(cubin, header + 24, std::uint64_t{1} << 63U), "transpose").find("outside"),
            std::string::npos);
  EXPECT_NE(refusal(with<std::uint64_t>(cubin, header + 32, ~std::uint64_t{0}), "transpose").find("outside"),
            std::string::npos);
  EXPECT_NE(refusal(with<std::uint32_t>(cubin, header, 0xfffffff0), "transpose").find("outside"), std::string::npos);
}

TEST(Sm61KernelCode, SectionsWithoutCodeAreEmpty) {
  const std::string cubin = stored_cubin("transpose");
  const std::size_t header = code_header(cubin, "transpose");
  const KernelCode empty = read_kernel(with<std::uint64_t>(cubin, header + 32, 0), "transpose");
  EXPECT_TRUE(empty.instructions.empty());
  EXPECT_TRUE(empty.flow.blocks.empty());
  EXPECT_EQ(read_kernel(with<std::uint32_t>(cubin, header + 4, 8), "transpose").instructions.size(), 0U);  // no bits
}

TEST(Sm61KernelCode, EveryTruncationIsSurvived) {
  const std::string cubin = stored_cubin("softmax");
  // What follows the headers of sections is for the driver's loader.
  const std::size_t needed = get<std::uint64_t>(cubin, kSectionTable) + 64 * get<std::uint16_t>(cubin, kSectionCount);
  for (std::size_t length = 0; length < cubin.size(); length += 7) {
    ASSERT_EQ(testing::exercise_cubin(cubin.substr(0, length)), length >= needed) << length;
  }
  EXPECT_TRUE(testing::exercise_cubin(cubin));
}

}  // namespace
}  // namespace pascaline::sm61
