#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>

#include "tests/core/util/mutator.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/bundle/bundle_exercise.hpp"
#include "tests/runtime/bundle/bundle_fixture.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 18> kManifestWords{
    "\"kernels\"", "\"codes\"", "\"winners\"", "\"offset\"", "\"bytes\"",  "\"hash\"",
    "\"config\"",  "\"ptx\"",   "\"cubin\"",   "\"sm_61\"",  "null",       "[]",
    "{}",          "-1",        "\\ud800",     "1e999",      "\"device\"", "\"host\""};

class BundleFuzzTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string bytes_;
  int accepted_ = 0;
  int refused_ = 0;

  BundleFuzzTest() {
    write_scale_kernel(folder_.path());
    bytes_ = encode_bundle(scale_bundle(folder_.path(), FakeDevice().info()));
  }
  void try_bytes(const std::string& bytes) { ++(exercise_bundle(bytes) ? accepted_ : refused_); }
};

TEST_F(BundleFuzzTest, DamagedFilesAreNeverTaken) {
  Mutator mutator(fuzz_seed() + 41, kManifestWords);
  const auto end = Clock::now() + fuzz_time(3);
  while (Clock::now() < end || refused_ < 50) {
    const std::string damaged = mutator.damaged(bytes_);
    ASSERT_NO_THROW(try_bytes(damaged));
    ASSERT_TRUE(accepted_ == 0 || damaged == bytes_) << "a damaged file was taken";
    accepted_ = 0;
  }
  std::printf("%d refused\n", refused_);
}

TEST_F(BundleFuzzTest, DamagedFilesWithTheRightHashesAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 42, kManifestWords);
  const auto end = Clock::now() + fuzz_time(3);
  while (Clock::now() < end || refused_ < 50) {
    ASSERT_NO_THROW(try_bytes(resealed(mutator.damaged(bytes_))));
  }
  std::printf("%d accepted, %d refused\n", accepted_, refused_);
}

TEST_F(BundleFuzzTest, AlteredManifestsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 43, kManifestWords);
  const auto end = Clock::now() + fuzz_time(3);
  while (Clock::now() < end || refused_ < 50 || accepted_ < 1) {
    ASSERT_NO_THROW(try_bytes(with_manifest_text(bytes_, mutator.altered(manifest_of(bytes_)).dump())));
  }
  std::printf("%d accepted, %d refused\n", accepted_, refused_);
}

}  // namespace
}  // namespace pascaline::testing
