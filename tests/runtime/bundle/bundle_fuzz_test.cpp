#include "tests/core/util/fuzz_test.hpp"
#include "tests/db/fixtures.hpp"
#include "tests/runtime/bundle/bundle_exercise.hpp"
#include "tests/runtime/bundle/bundle_fixture.hpp"
#include "tests/runtime/dispatch/fake_device.hpp"
#include "tests/runtime/dispatch/scale_kernel.hpp"

namespace pascaline::testing {
namespace {

const std::vector<std::string_view> kManifestWords =
    word_list(R"("kernels"|"codes"|"winners"|"offset"|"bytes"|"hash"|"config"|"ptx"|"cubin"|"sm_61"|null|[]|{}|-1|)"
              R"(\ud800|1e999|"device"|"host")");

class BundleFuzzTest : public FuzzTest {
 protected:
  TemporaryFolder folder_;
  std::string bytes_;

  BundleFuzzTest() {
    write_scale_kernel(folder_.path());
    bytes_ = encode_bundle(scale_bundle(folder_.path(), FakeDevice().info()));
  }
  void try_bytes(const std::string& bytes) { ++(exercise_bundle(bytes) ? accepted_ : refused_); }
};

TEST_F(BundleFuzzTest, DamagedFilesAreNeverTaken) {
  Mutator mutator(fuzz_seed() + 41, kManifestWords);
  repeat(3, {}, [&] {
    const std::string damaged = mutator.damaged(bytes_);
    try_bytes(damaged);
    ASSERT_TRUE(accepted_ == 0 || damaged == bytes_) << "a damaged file was taken";
    accepted_ = 0;
  });
}

TEST_F(BundleFuzzTest, DamagedFilesWithTheRightHashesAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 42, kManifestWords);
  repeat(3, {}, [&] { try_bytes(resealed(mutator.damaged(bytes_))); });
}

TEST_F(BundleFuzzTest, AlteredManifestsAreRefusedOrUsable) {
  Mutator mutator(fuzz_seed() + 43, kManifestWords);
  repeat(3, {.accepted = 1},
         [&] { try_bytes(with_manifest_text(bytes_, mutator.altered(manifest_of(bytes_)).dump())); });
}

}  // namespace
}  // namespace pascaline::testing
