#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/workload.hpp"
#include "runtime/bundle/bundle.hpp"
#include "tuner/bundle/bundle_target.hpp"

namespace pascaline {

/// What a bundle is made of besides winners, and by what.
struct BundleMakerOptions {
  std::filesystem::path kernels;
  std::filesystem::path spaces;
  std::filesystem::path cache;
  std::string nvrtc;  ///< narrows the choice of NVRTC
  std::size_t jobs = 1;
  std::vector<Workload> workloads;  ///< whose problems it has code for, alternatives among them
  bool listed_only = false;         ///< no sizes in between, and no kernels that nothing names
};

/// A bundle, and what is to be said of it.
struct MadeBundle {
  Bundle bundle;
  std::size_t problems = 0;           ///< that it was planned for
  std::vector<std::string> warnings;  ///< what was left out and why, a line each
  bool stopped = false;               ///< it is not complete
};

/// Sorts out the winners, plans every known problem of every kernel in `spaces` as a dispatcher would, and compiles
/// what that takes in worker processes. `progress` is told how many codes there are and how many are done. Throws
/// NvrtcError or EmulatorError without a compiler, SpaceError, and Error if nothing compiles.
[[nodiscard]] MadeBundle make_bundle(const BundleTarget& target, const BundleMakerOptions& options,
                                     const std::function<void(std::size_t all, std::size_t done)>& progress,
                                     const std::atomic<bool>& stop);

}  // namespace pascaline
