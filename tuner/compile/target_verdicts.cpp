#include "tuner/compile/target_verdicts.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "runtime/dispatch/planner.hpp"
#include "tuner/measure/trial_setup.hpp"

namespace pascaline {

TargetVerdicts::TargetVerdicts(std::string architecture, const KernelSource& source, const std::filesystem::path& cache)
    : architecture_(std::move(architecture)), source_(source) {
  try {
    compiler_ = variant_compilers(architecture_, {}).found.front();
    // One worker is enough: compiling for the emulated device takes longer.
    pool_.emplace(CompilePoolOptions{
        .program = {}, .cache_folder = cache, .architecture = architecture_, .nvrtc = compiler_.path});
  } catch (const Error& error) {
    why_not_ = error.what();
  }
}

void TargetVerdicts::begin(const BoundSpace& bound, const std::vector<Config>& configs) {
  bound_ = &bound;
  configs_ = configs;
  variants_.clear();
  if (!pool_) {
    return;
  }
  try {
    submit(bound);
  } catch (const Error& error) {
    why_not_ = error.what();
    pool_.reset();
  }
}

void TargetVerdicts::submit(const BoundSpace& bound) {
  const auto request = [&](const Config& config) {
    return compile_request(bound, config, source_, BinaryKind::cubin, architecture_);
  };
  if (bound.space().reference.kernel) {  // else it is a configuration, which another may replace
    pool_->submit(kReference, reference_request_of(bound.space(), request(untuned_config(bound))));
  }
  for (std::size_t i = 0; i < configs_.size(); ++i) {
    pool_->submit(i + 1, request(configs_[i]));
  }
}

// The reference has an id of its own, as what refuses it refuses all configurations.
void TargetVerdicts::settle(Compiled compiled) {
  const Space& space = bound_->space();
  const std::uint64_t id = compiled.id;
  const bool is_reference = id == kReference;
  const std::span<const Launch> launches = is_reference ? reference_launches(space) : std::span(space.launches);
  const Config config = is_reference ? untuned_config(*bound_) : configs_[id - 1];
  CompiledVariant& variant = variants_[id] = assess(*bound_, launches, config, std::move(compiled));
  variant.binary = {};  // only the verdict counts
  if (is_reference && variant.status != TrialStatus::ok) {
    const bool compiles = variant.status == TrialStatus::rejected;
    variant.reason = fmt::format("the reference kernel '{}' {}: {}", launches.front().function,
                                 compiles ? "cannot be launched" : "does not compile", variant.reason);
    variant.status = TrialStatus::rejected;
  }
}

void TargetVerdicts::look(std::chrono::milliseconds timeout) noexcept {
  try {
    while (auto compiled = pool_ ? pool_->wait(timeout) : std::nullopt) {
      settle(std::move(*compiled));
      timeout = std::chrono::milliseconds(0);
    }
  } catch (const std::exception& error) {
    why_not_ = error.what();
    pool_.reset();
  }
}

// Its own verdict says more than that of the reference, which may be the same code.
const CompiledVariant* TargetVerdicts::refused(std::size_t index) const {
  for (const std::uint64_t id : {std::uint64_t{index} + 1, kReference}) {
    const auto found = variants_.find(id);
    if (found != variants_.end() && found->second.status != TrialStatus::ok) {
      return &found->second;
    }
  }
  return nullptr;
}

bool TargetVerdicts::refuses(std::size_t index) noexcept {
  look(std::chrono::milliseconds(0));
  return refused(index) != nullptr;
}

std::optional<CompiledVariant> TargetVerdicts::refusal(std::size_t index, const std::atomic<bool>& stop) {
  constexpr std::chrono::milliseconds kLook{100};
  while (pool_ && !stop && !variants_.contains(index + 1)) {
    look(kLook);
  }
  const CompiledVariant* found = stop ? nullptr : refused(index);
  if (found == nullptr) {
    return std::nullopt;
  }
  CompiledVariant variant = *found;
  variant.reason = fmt::format("for {} with {}: {}", architecture_, compiler_.text(), variant.reason);
  return variant;
}

}  // namespace pascaline
