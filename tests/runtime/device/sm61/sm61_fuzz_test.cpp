#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>

#include "tests/core/util/mutator.hpp"
#include "tests/runtime/device/sm61/code_exercise.hpp"
#include "tests/runtime/device/sm61/code_fixture.hpp"

namespace pascaline::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewest = 2000;  ///< mutations, however little time there is

// What no input may take. Generous, as the machine may be busy; most take a millisecond.
constexpr std::chrono::seconds kLongest{20};

class Sm61FuzzTest : public ::testing::Test {
 protected:
  Sm61FuzzTest() : random_(fuzz_seed() + 61) {
    for (const char* name : kStoredKernels) {
      cubins_.push_back(stored_cubin(name));
    }
  }

  [[nodiscard]] std::size_t below(std::size_t bound) { return random_() % bound; }

  // Calls until time is over; `mutate` gives the bytes of each try.
  template <typename Mutate, typename Try>
  void repeat(int parts, const Mutate& mutate, const Try& attempt) {
    const auto end = Clock::now() + fuzz_time(parts);
    int count = 0;
    for (; Clock::now() < end || count < kFewest; ++count) {
      const std::string bytes = mutate(cubins_[below(cubins_.size())]);
      const auto start = Clock::now();
      ASSERT_NO_THROW(attempt(bytes)) << "mutation " << count;
      ASSERT_LT(Clock::now() - start, kLongest) << "mutation " << count;
    }
    std::printf("%d mutations, %d taken\n", count, taken_);
  }

  std::mt19937_64 random_;
  std::vector<std::string> cubins_;
  int taken_ = 0;
};

TEST_F(Sm61FuzzTest, DamagedFiles) {
  Mutator mutator(fuzz_seed() + 62, {});
  repeat(
      3,
      [&](std::string bytes) {
        const std::size_t table = bytes.size() - 1024;  // the headers of sections lie at the end
        switch (below(4)) {
          case 0:
            return mutator.damaged(std::move(bytes));
          case 1:
            return bytes.substr(0, below(bytes.size()));
          default:
            for (std::size_t i = 1 + below(6); i > 0; --i) {
              const std::size_t at = below(3) == 0 ? below(64) : table + below(1024);
              bytes[at] = static_cast<char>(random_());
            }
            return bytes;
        }
      },
      [&](const std::string& bytes) { taken_ += exercise_cubin(bytes) ? 1 : 0; });
  EXPECT_GT(taken_, 0);
}

// The file is whole, the code in it is not: words of other instructions, branches to anywhere.
TEST_F(Sm61FuzzTest, DamagedCode) {
  constexpr std::uint16_t kJumps[] = {0xe240, 0xe290, 0xe2a0, 0xe2b0, 0xe260, 0xe340, 0xe350, 0xf0f8, 0xe250, 0xe300};
  repeat(
      3,
      [&](std::string bytes) {
        for (std::size_t i = 1 + below(200); i > 0; --i) {
          const std::size_t at = 64 + below(bytes.size() / 8 - 256) * 8;
          std::uint64_t word = random_();
          if (below(3) != 0) {
            word = std::uint64_t{kJumps[below(std::size(kJumps))]} << 48U | (random_() & 0x70007) |
                   ((random_() % 4096 * 8 - 16384) & 0xffffff) << 20U | (below(2) == 0 ? 0xfU : 0U);
          }
          bytes.replace(at, sizeof word, reinterpret_cast<const char*>(&word), sizeof word);
        }
        return bytes;
      },
      [&](const std::string& bytes) { taken_ += exercise_cubin(bytes) ? 1 : 0; });
  EXPECT_GT(taken_, 0);
}

// Any words at all.
TEST_F(Sm61FuzzTest, RandomCode) {
  repeat(
      3,
      [&](std::string bytes) {
        bytes.resize(32 * below(64));
        for (char& byte : bytes) {
          byte = static_cast<char>(random_());
        }
        return bytes;
      },
      [&](const std::string& code) { exercise_code(code); });
}

}  // namespace
}  // namespace pascaline::testing
