#include "tests/tuner/kernels/long_sums.hpp"

#include <gtest/gtest.h>

#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_runner.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline::testing {

LongSums::LongSums(Device& device, const std::string& target, const std::string& kernel)
    : device_(device),
      plan_(compile_target(device.info(), target)),
      toolchain_(Toolchain::find(plan_.architecture)),
      cache_(test_cache()),
      space_(Space::load(data_folder("search_spaces") / (kernel + ".json"))),
      source_(KernelSource::load(data_folder("kernel_templates") / (kernel + ".cu"))) {}

void LongSums::damage(const std::string& from, const std::string& to) {
  int found = 0;
  const auto replace = [&](std::string& text) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
      ++found;
    }
  };
  replace(source_.text);
  for (auto& [name, text] : source_.headers) {
    replace(text);
  }
  source_.hash = hash_hex(source_.hash + from + to);
  ASSERT_EQ(found, 1) << "'" << from << "' is not what the kernel's source has once";
}

std::vector<Trial> LongSums::run(const Sizes& sizes, std::size_t drawn) {
  const BoundSpace bound(space_, space_.problem(sizes), plan_.limits);
  std::vector<Config> configs{bound.default_config()};
  for (std::size_t i = 0; i < drawn; ++i) {
    if (const auto config = draw_.config(bound)) {
      configs.push_back(*config);
    }
  }
  const CompileRequest request =
      reference_request_of(space_, compile_request(bound, configs[0], source_, plan_.kind, plan_.architecture));
  const CompileResult naive = cache_.get(toolchain_, request);
  EXPECT_TRUE(naive.ok) << naive.reason;
  DeviceMonitor monitor(device_, {.passive = true});
  TrialRunner runner(monitor, bound, ReferenceRun{naive.binary, configs[0]}, quick_measure(), 1);
  std::vector<Trial> trials;
  for (const Config& config : configs) {
    Compiled compiled;
    compiled.result = cache_.get(toolchain_, compile_request(bound, config, source_, plan_.kind, plan_.architecture));
    compiled.status = compiled.result.ok ? TrialStatus::ok : TrialStatus::compile_failed;
    trials.push_back(runner.run(config, compiled, 0));
  }
  return trials;
}

void LongSums::expect_right(const Sizes& sizes, std::size_t drawn) {
  for (const Trial& trial : run(sizes, drawn)) {
    const bool unfit = trial.status == TrialStatus::rejected && !trial.is_default;
    EXPECT_TRUE(trial.status == TrialStatus::ok || unfit)
        << trial.problem.text() << ", " << trial.config.text() << ": " << name_of(trial.status) << ", " << trial.reason;
    if (trial.max_error) {
      std::printf("%s: error %.3g\n", trial.problem.text().c_str(), *trial.max_error);
    }
  }
}

}  // namespace pascaline::testing
