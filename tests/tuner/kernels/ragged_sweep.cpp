#include "tests/tuner/kernels/ragged_sweep.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/util/hash.hpp"
#include "core/util/paths.hpp"
#include "tests/tuner/toy_kernel.hpp"
#include "tuner/compile/compile_variants.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline::testing {
namespace {

// Of the names alone: one kernel's shapes do not change with another's.
std::uint64_t seed_of(const RaggedKernel& kernel) {
  const std::string name = kernel.name + std::string(name_of(kernel.storage)) +
                           (kernel.other ? std::string(name_of(*kernel.other)) : std::string());
  return std::stoull(hash_hex(name).substr(0, 15), nullptr, 16);
}

}  // namespace

RaggedSource RaggedSource::shipped(const RaggedKernel& kernel) {
  return {data_folder("kernel_templates"), data_folder("search_spaces"), kernel};
}

RaggedSweep::RaggedSweep(Device& device, const std::string& target, const RaggedSource& source, RaggedLimits limits)
    : device_(device),
      plan_(compile_target(device.info(), target)),
      toolchain_(Toolchain::find(plan_.architecture)),
      cache_(test_cache()),
      space_(Space::load(source.spaces / (source.kernel.name + ".json"))),
      source_(KernelSource::load(source.kernels / (source.kernel.name + ".cu"))),
      kernel_(source.kernel),
      limits_(limits),
      draw_(seed_of(kernel_)),
      default_(space_.default_config(plan_.limits)) {
  for (const auto& [type, tolerance] : space_.tolerances) {
    if (type == ElementType::float32 || type == ElementType::float16) {
      EXPECT_LE(tolerance, type == ElementType::float32 ? 1e-5 : 2e-3) << name_of(type);
    }
  }
}

CompileRequest RaggedSweep::request(const BoundSpace& bound, const Config& config) const {
  return compile_request(bound, config, source_, plan_.kind, plan_.architecture);
}

// Whether the configuration's code is known for this shape, or may still be added.
bool RaggedSweep::admits(const BoundSpace& bound, const Config& config) {
  const bool is_default = config == default_;
  std::set<std::string>& variants = is_default ? default_variants_ : drawn_variants_;
  // All else that code depends on is the same for every shape.
  const CompileRequest wanted = request(bound, config);
  const std::string key =
      fmt::format("{} {} {}", fmt::join(wanted.defines, " "), fmt::join(wanted.options, " "), wanted.threads);
  if (variants.contains(key)) {
    return true;
  }
  if (variants.size() >= (is_default ? limits_.default_variants : limits_.drawn_variants)) {
    return false;
  }
  variants.insert(key);
  return true;
}

std::vector<Config> RaggedSweep::configs(const BoundSpace& bound) {
  std::vector<Config> configs{default_};
  if (drawn_.size() < limits_.drawn_configs) {
    const auto config = draw_.config(bound);
    if (config && config != configs[0] && std::find(drawn_.begin(), drawn_.end(), *config) == drawn_.end()) {
      drawn_.push_back(*config);
    }
  }
  for (const Config& config : drawn_) {
    if (!bound.why_invalid(config) && admits(bound, config)) {
      configs.push_back(config);
    }
  }
  return configs;
}

void RaggedSweep::run() {
  for (int shape = 0; shape < limits_.shapes; ++shape) {
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 20000) << "no further shape shares the code that was compiled";
      // Where no more code is to be compiled, shapes of other types would only be drawn in vain.
      const bool is_full = default_variants_.size() >= limits_.default_variants;
      const auto one = is_full ? static_cast<std::size_t>(draw_.below(std::ssize(compiled_))) : 0;
      const Problem problem = draw_.problem(space_, kernel_, plan_.limits, is_full ? &compiled_.at(one) : nullptr);
      const BoundSpace bound(space_, problem, plan_.limits);
      const std::size_t before = default_variants_.size();
      if (admits(bound, default_)) {
        if (default_variants_.size() > before) {
          compiled_.push_back(problem);
        }
        SCOPED_TRACE(bound.problem().text());
        ASSERT_NO_FATAL_FAILURE(check_shape(bound));
        break;
      }
    }
  }
  std::printf("%s: %d shapes, %d runs of drawn configurations, %zu variants\n", space_.kernel.c_str(), default_runs_,
              drawn_runs_, default_variants_.size() + drawn_variants_.size());
  EXPECT_EQ(default_runs_, limits_.shapes);
  EXPECT_GT(drawn_runs_, 0);
}

// Compiled for each shape, as macros may depend on it.
Kernel RaggedSweep::reference(const BoundSpace& bound) {
  const CompileResult compiled = cache_.get(toolchain_, reference_request_of(space_, request(bound, default_)));
  if (!compiled.ok) {
    throw Error("the reference kernel does not compile: " + compiled.reason);
  }
  return device_.load(compiled.binary);
}

void RaggedSweep::check_shape(const BoundSpace& bound) {
  ProblemData data(device_, bound, reference(bound));
  data.draw(static_cast<std::uint64_t>(default_runs_) + 1);
  for (const Config& config : configs(bound)) {
    SCOPED_TRACE(config.text());
    ASSERT_NO_FATAL_FAILURE(check_config(bound, data, config));
    if (config == default_) {
      ++default_runs_;
    }
  }
}

void RaggedSweep::check_config(const BoundSpace& bound, ProblemData& data, const Config& config) {
  const CompileResult compiled = cache_.get(toolchain_, request(bound, config));
  ASSERT_TRUE(compiled.ok) << compiled.reason;
  const Geometry geometry = bound.geometry(space_.launches.front(), config);
  const Kernel kernel = device_.load(compiled.binary);
  const bool is_default = config == default_;
  if (const auto problem = exceeds_limits(kernel.resources(), geometry, plan_.limits)) {
    ASSERT_FALSE(is_default) << "the default does not fit: " << *problem;
    return;
  }
  const LaunchArguments arguments(device_, bound, config, data.buffers());
  arguments.refill_scratch(device_, 0xFF);
  // Twice: the second launch finds what the first left in its counters.
  for (int launch = 0; launch < (arguments.scratch().empty() ? 1 : 2); ++launch) {
    data.poison_outputs();
    device_.launch(kernel, geometry, arguments.pointers());
    device_.synchronize();
    EXPECT_EQ(data.damaged_guard(), "") << "written outside of it";
    EXPECT_EQ(data.changed_input(), "");
    for (const LaunchArguments::Scratch& scratch : arguments.scratch()) {
      EXPECT_TRUE(device_.guards_intact(scratch.buffer)) << "scratch " << scratch.argument;
    }
    const ProblemData::Check check = data.check_outputs();
    ASSERT_TRUE(check.passed()) << "error " << check.max_error << " at " << check.where;
  }
  drawn_runs_ += is_default ? 0 : 1;
}

}  // namespace pascaline::testing
