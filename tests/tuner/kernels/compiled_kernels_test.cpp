#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/util/paths.hpp"
#include "runtime/device/cubin_cache.hpp"
#include "tests/runtime/device/cuda/nvrtc_here.hpp"
#include "tests/share.hpp"
#include "tests/tuner/kernels/ragged_shapes.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline::testing {
namespace {

/// Every kernel of this tree, in every element type, as the card it is for gets it. What a C++ compiler makes of it for
/// the emulated device says nothing of NVRTC.
class CompiledKernelTest : public ::testing::TestWithParam<RaggedKernels> {
 protected:
  void SetUp() override { PASCALINE_NEED_NVRTC(libraries_); }

  /// Compiles with the first so many of the NVRTCs that are here.
  void compile(const BoundSpace& bound, const Config& config, std::size_t compilers) {
    const bool is_default = config == space_.default_config(limits_);
    for (const NvrtcInfo& library : std::span(libraries_).first(std::min(compilers, libraries_.size()))) {
      const Toolchain toolchain = Toolchain::find("sm_61", library.path);
      const CompileRequest request = compile_request(bound, config, source_, BinaryKind::cubin, "sm_61");
      if (!seen_.insert(toolchain.cache_key(request)).second) {
        continue;
      }
      const CompileResult compiled = cache_.get(toolchain, request);
      ASSERT_TRUE(compiled.ok) << toolchain.version() << ": " << bound.problem().text() << " " << config.text() << ": "
                               << compiled.reason;
      if (is_default) {
        const auto problem =
            exceeds_limits(compiled.binary.resources, bound.geometry(space_.launches.front(), config), limits_);
        EXPECT_FALSE(problem) << toolchain.version() << ": " << bound.problem().text() << ": " << *problem;
      }
    }
  }

  std::vector<NvrtcInfo> libraries_ = nvrtc_for("sm_61");
  DeviceLimits limits_ = limits_of_architecture("sm_61").value();
  Space space_ = Space::load(data_folder("search_spaces") / (GetParam().cases.front().name + ".json"));
  KernelSource source_ = KernelSource::load(data_folder("kernel_templates") / (GetParam().cases.front().name + ".cu"));
  CubinCache cache_{test_cache()};
  std::set<std::string> seen_;
};

// Shapes that divide by little and those that divide by much choose different code. Every NVRTC compiles the default
// configuration of the first, the newest a drawn one of the second, and the default one unless this is one of many
// cases that differ in little but a format of weights. A share of the test leaves out that one and takes one NVRTC,
// which depends on the case.
TEST_P(CompiledKernelTest, CompilesForSm61) {
  const bool share = test_share() > 1;
  const std::vector<NvrtcInfo> libraries = libraries_;
  for (const RaggedKernel& kernel : share_of(GetParam().cases, "types", GetParam().name.size() + 3)) {
    SCOPED_TRACE(kernel.text());
    RaggedShapes draw(1);
    const BoundSpace first(space_, draw.problem(space_, kernel, limits_), limits_);
    const BoundSpace second(space_, draw.problem(space_, kernel, limits_), limits_);
    libraries_ = libraries;
    if (share) {
      const std::size_t chosen = kernel.text().size() % libraries_.size();
      std::swap(libraries_[0], libraries_[chosen]);
      std::printf("a share of the test: NVRTC %s, two variants (PASCALINE_TEST_SHARE)\n", libraries_[0].path.c_str());
    }
    ASSERT_NO_FATAL_FAILURE(compile(first, space_.default_config(limits_), share ? 1 : libraries_.size()));
    if (!kernel.other && !share) {
      ASSERT_NO_FATAL_FAILURE(compile(second, space_.default_config(limits_), 1));
    }
    if (const auto drawn = draw.config(second)) {
      ASSERT_NO_FATAL_FAILURE(compile(second, *drawn, 1));
    }
  }
  EXPECT_FALSE(seen_.empty());
}

INSTANTIATE_TEST_SUITE_P(Kernels, CompiledKernelTest,
                         ::testing::ValuesIn(RaggedShapes::by_kernel(data_folder("search_spaces"))),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace pascaline::testing
