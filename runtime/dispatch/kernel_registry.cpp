#include "runtime/dispatch/kernel_registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.hpp"
#include "core/space/code_words.hpp"
#include "runtime/dispatch/identity.hpp"

namespace pascaline {

KernelRegistry::KernelRegistry(std::filesystem::path kernels, std::filesystem::path spaces, std::vector<Winner> winners,
                               std::vector<ToolkitRow> here)
    : kernels_(std::move(kernels)), spaces_(std::move(spaces)), here_(std::move(here)) {
  replace(std::move(winners));
}

void KernelRegistry::replace(std::vector<Winner> winners) {
  const std::lock_guard lock(mutex_);
  winners_.clear();
  for (Winner& winner : winners) {
    winners_[winner.trial.problem.kernel].push_back(std::move(winner));
  }
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    const TunedKernel& known = *known_[i].load(std::memory_order_relaxed);
    publish(i, known.space, known.source);
  }
}

std::optional<KernelHandle> KernelRegistry::find(KernelName name) const noexcept {
  const std::uint32_t count = count_.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (hashes_[i].load(std::memory_order_relaxed) != name.hash()) {
      continue;
    }
    // A program has a literal once, so that its letters are seldom compared.
    if (opened_by_[i].load(std::memory_order_relaxed) == name.text().data() ||
        known_[i].load(std::memory_order_acquire)->space.kernel == name.text()) {
      return KernelHandle{i};
    }
  }
  return std::nullopt;
}

KernelHandle KernelRegistry::open(KernelName name) const {
  if (const auto handle = find(name)) {
    return *handle;
  }
  const std::lock_guard lock(mutex_);
  if (const auto handle = find(name)) {
    return *handle;
  }
  const Space space = Space::load(kernel_file(spaces_, name.text(), ".json"));
  append(name, space, KernelSource::load(kernel_file(kernels_, name.text(), ".cu"), space));
  return KernelHandle{count_.load(std::memory_order_relaxed) - 1};
}

void KernelRegistry::add(KernelName name, const Space& space, const KernelSource& source) const {
  const std::lock_guard lock(mutex_);
  if (!find(name)) {
    append(name, space, source);
  }
}

void KernelRegistry::append(KernelName name, const Space& space, const KernelSource& source) const {
  const std::uint32_t index = count_.load(std::memory_order_relaxed);
  if (index == kMaxKernels) {
    throw Error(
        fmt::format("cannot open kernel '{}': a dispatcher holds at most {} kernels", name.text(), kMaxKernels));
  }
  publish(index, space, source);
  hashes_[index].store(name.hash(), std::memory_order_relaxed);
  const char* const letters = name.text().data();  // only its address is looked at
  opened_by_[index].store(letters, std::memory_order_relaxed);
  count_.store(index + 1, std::memory_order_release);
}

const TunedKernel& KernelRegistry::at(KernelHandle handle) const noexcept {
  return *known_[handle.index].load(std::memory_order_acquire);
}

std::vector<std::string> KernelRegistry::missing_compilers() const {
  const std::lock_guard lock(mutex_);
  std::vector<Winner> of_today;
  for (const auto& [name, winners] : winners_) {
    const bool all_here = std::all_of(winners.begin(), winners.end(), [&](const Winner& winner) {
      return std::any_of(here_.begin(), here_.end(),
                         [&](const ToolkitRow& one) { return same_compiler(one, winner.toolkit); });
    });
    if (all_here) {
      continue;
    }
    try {
      const Space space = Space::load(kernel_file(spaces_, name, ".json"));
      const std::string hash = KernelSource::load(kernel_file(kernels_, name, ".cu"), space).hash;
      std::copy_if(winners.begin(), winners.end(), std::back_inserter(of_today), [&](const Winner& winner) {
        return winner.objective == Objective::time && winner.kernel.source_hash == hash;
      });
    } catch (const Error&) {
      continue;  // a kernel that is not here is told of when it is asked for
    }
  }
  return pascaline::missing_compilers(of_today, here_);
}

bool KernelRegistry::has_winners_by(Objective objective) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(winners_.begin(), winners_.end(), [&](const auto& kernel) {
    return std::any_of(kernel.second.begin(), kernel.second.end(),
                       [&](const Winner& winner) { return winner.objective == objective; });
  });
}

std::vector<Winner> KernelRegistry::winners_of(const std::string& name) const {
  const auto winners = winners_.find(name);
  return winners == winners_.end() ? std::vector<Winner>{} : winners->second;
}

void KernelRegistry::publish(std::size_t index, const Space& space, const KernelSource& source) const {
  std::vector<Winner> winners = winners_of(space.kernel);
  kept_.push_back(std::make_unique<TunedKernel>(make_tuned_kernel(space, source, std::move(winners), here_)));
  known_[index].store(kept_.back().get(), std::memory_order_release);
}

}  // namespace pascaline
