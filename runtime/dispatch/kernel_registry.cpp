#include "runtime/dispatch/kernel_registry.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace pascaline {

KernelRegistry::KernelRegistry(std::filesystem::path kernels, std::filesystem::path spaces, std::vector<Winner> winners,
                               ToolkitRow today)
    : kernels_(std::move(kernels)), spaces_(std::move(spaces)), today_(std::move(today)) {
  for (Winner& winner : winners) {
    winners_[winner.trial.problem.kernel].push_back(std::move(winner));
  }
}

std::optional<KernelHandle> KernelRegistry::find(std::string_view name) const noexcept {
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (known_[i]->space.kernel == name) {
      return KernelHandle{i};
    }
  }
  return std::nullopt;
}

KernelHandle KernelRegistry::open(std::string_view name) const {
  if (const auto handle = find(name)) {
    return *handle;
  }
  const std::lock_guard lock(mutex_);
  if (const auto handle = find(name)) {
    return *handle;
  }
  const std::uint32_t index = count_.load(std::memory_order_relaxed);
  if (index == kMaxKernels) {
    throw Error(fmt::format("cannot open kernel '{}': a dispatcher holds at most {} kernels", name, kMaxKernels));
  }
  known_[index] = read(std::string(name));
  count_.store(index + 1, std::memory_order_release);
  return KernelHandle{index};
}

const TunedKernel& KernelRegistry::at(KernelHandle handle) const noexcept { return *known_[handle.index]; }

std::unique_ptr<TunedKernel> KernelRegistry::read(const std::string& name) const {
  Space space = Space::load(spaces_ / (name + ".json"));
  KernelSource source = KernelSource::load(kernels_ / (name + ".cu"));
  const auto winners = winners_.find(name);
  return std::make_unique<TunedKernel>(
      make_tuned_kernel(std::move(space), std::move(source),
                        winners == winners_.end() ? std::vector<Winner>{} : winners->second, today_));
}

}  // namespace pascaline
