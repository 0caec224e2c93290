#include "support.hpp"

namespace pascaline::testing {
namespace {

class EmulatorLanguage : public ::testing::TestWithParam<const char*> {};

// The kernel checks itself and reports the first line that was not so.
TEST_P(EmulatorLanguage, GivesWhatCudaGives) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "language.cu", GetParam());
  const Buffer checks = to_device(*device, std::vector<int>{0, 0});
  run(*device, kernel, {{8, 1, 1}, {32, 1, 1}, 0}, checks.data());
  const auto result = to_host<int>(*device, checks);
  EXPECT_EQ(result[0], 0) << "first at language.cu:" << result[1];
}

INSTANTIATE_TEST_SUITE_P(Groups, EmulatorLanguage,
                         ::testing::Values("halves", "half_values", "integers", "math", "vectors", "complex_numbers"),
                         [](const auto& test) { return std::string(test.param); });

TEST(EmulatorAtomics, AreAtomicAcrossBlocks) {
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "language.cu", "atomics");
  const Buffer sum = to_device<int>(*device, {0}), minimum = to_device<int>(*device, {0});
  const Buffer maximum = to_device<unsigned>(*device, {0}), real = to_device<float>(*device, {0});
  const Buffer wide = to_device<double>(*device, {0}), big = to_device<unsigned long long>(*device, {0});
  const Buffer bits = to_device<unsigned>(*device, {0, ~0U, 0}), wrapped = to_device<unsigned>(*device, {0});
  const Buffer owner = to_device<int>(*device, {-1});
  constexpr unsigned kBlocks = 3000, kThreads = 96, kAll = kBlocks * kThreads;
  run(*device, kernel, {{kBlocks, 1, 1}, {kThreads, 1, 1}, 0}, sum.data(), maximum.data(), minimum.data(), real.data(),
      wide.data(), big.data(), bits.data(), wrapped.data(), owner.data());
  EXPECT_EQ(to_host<int>(*device, sum)[0], static_cast<int>(kAll * 2));
  EXPECT_EQ(to_host<unsigned>(*device, maximum)[0], kAll - 1);
  EXPECT_EQ(to_host<int>(*device, minimum)[0], -static_cast<int>(kAll - 1));
  EXPECT_EQ(to_host<float>(*device, real)[0], static_cast<float>(kAll));
  EXPECT_EQ(to_host<double>(*device, wide)[0], kAll * 0.5);
  EXPECT_EQ(to_host<unsigned long long>(*device, big)[0], static_cast<unsigned long long>(kAll) << 32);
  EXPECT_EQ(to_host<unsigned>(*device, bits), (std::vector<unsigned>{~0U, 0xffff0000U, 0}));
  EXPECT_EQ(to_host<unsigned>(*device, wrapped)[0], kAll % 10);
  EXPECT_EQ(to_host<int>(*device, owner)[0], 5);
}

TEST(EmulatorArguments, OfAllSizesArrive) {
  struct Pair {
    short x, y;
  };
  const auto device = open_emulated_device();
  const Kernel kernel = load(*device, "language.cu", "arguments");
  const Buffer out = to_device<char>(*device, {0});
  const float* nothing = nullptr;
  run(*device, kernel, {}, out.data(), -7, 1LL << 40, 1.5F, -2.25, static_cast<unsigned char>(200), Pair{-3, 4},
      nothing, true);
  EXPECT_EQ(to_host<char>(*device, out)[0], 1);
}

}  // namespace
}  // namespace pascaline::testing
