#include "tuner/measure/problem_memory.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/util/available_memory.hpp"
#include "tests/tuner/toy_kernel.hpp"

namespace pascaline::testing {
namespace {

constexpr double kGuards = 2.0 * Device::kGuardBytes;

// The toy has two inputs and an output of N float32.
TEST(ProblemMemoryTest, SumsBuffersReferencesAndCopies) {
  const ToyBench bench(toy_json({kRight}));
  const ProblemMemory memory = problem_memory(bench.bound());
  EXPECT_EQ(memory.buffers, 3 * (4 * 1000 + kGuards));
  EXPECT_EQ(memory.references, 8 * 1000 + kGuards);
  EXPECT_EQ(memory.copies, 8 * 1000) << "inputs are drawn where they are read";
  nlohmann::json space = toy_json({kRight});
  space["reference"].update({{"workspace", "3 * N"}, {"slack", "out"}});
  const ToyBench with_more(space);
  const ProblemMemory more = problem_memory(with_more.bound());
  EXPECT_EQ(more.buffers, memory.buffers);
  EXPECT_EQ(more.references, memory.references + 8 * 1000 + 3 * 8 * 1000 + 2 * kGuards);
  EXPECT_EQ(more.copies, memory.copies + 8 * 1000);
}

TEST(ProblemMemoryTest, MoreThanIsAvailableIsRefusedInOneLineThatNamesTheSizes) {
  // Each buffer fits by itself; all of them do not.
  const auto count = static_cast<std::int64_t>(available_memory_bytes() / 16);
  for (const std::int64_t n : {count, std::int64_t{1} << 36}) {
    ToyBench bench(toy_json({kRight}), n);
    try {
      require_problem_memory(bench.device(), bench.bound());
      FAIL() << n;
    } catch (const OutOfMemoryError& error) {
      const std::string line = error.what();
      EXPECT_TRUE(line.starts_with("this shape needs ")) << line;
      for (const char* part : {"buffers ", "references on the device ", "are available; use a smaller shape"}) {
        EXPECT_NE(line.find(part), std::string::npos) << line;
      }
      EXPECT_EQ(line.find('\n'), std::string::npos);
      EXPECT_GT(error.needed_bytes(), error.free_bytes());
    }
  }
  ToyBench small(toy_json({kRight}));
  EXPECT_NO_THROW(require_problem_memory(small.device(), small.bound()));
}

}  // namespace
}  // namespace pascaline::testing
