#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/space/space.hpp"
#include "core/trial.hpp"
#include "runtime/device/compilers.hpp"
#include "runtime/dispatch/compile_request.hpp"
#include "tuner/compile/compile_pool.hpp"

namespace pascaline {

/// What to compile without a device.
struct VariantOptions {
  std::string architecture;  ///< "sm_61"
  std::string nvrtc;         ///< as for find_compilers; with several, each compiles every configuration
  std::filesystem::path kernels;
  std::filesystem::path cache;
  std::uint64_t limit = 0;  ///< variants at most, drawn at random; 0: every valid one, in the space's order
  std::uint64_t seed = 1;
  std::size_t jobs = 1;
};

/// One compiled variant.
struct CompiledVariant {
  Config config;
  CompilerInfo compiler;
  TrialStatus status = TrialStatus::ok;  ///< ok, rejected (does not fit the architecture), compile_failed, …
  std::string reason;
  Binary binary;  ///< without its code unless it is kept
  double occupancy = 0;
};

/// The compilers that do it, and how many variants there are.
struct VariantCount {
  CompilerChoice compilers{};
  std::uint64_t variants = 0;  ///< of all compilers
};

/// A finished compilation, rejected where the device of `bound` cannot launch it so.
[[nodiscard]] CompiledVariant assess(const BoundSpace& bound, std::span<const Launch> launches, const Config& config,
                                     Compiled compiled);

/// Compilers for an architecture without a device. Throws as `find_compilers`.
[[nodiscard]] CompilerChoice variant_compilers(const std::string& architecture, const std::string& nvrtc);

/// Compiles variants of a bound space in worker processes, no device needed. `begin` is told the plan, `each` every
/// variant as it finishes. Throws NvrtcError if no NVRTC knows the architecture, SpaceError if nothing is valid, and
/// StoppedError if `stop` is set before the variants are counted; later it ends the call.
void compile_variants(const BoundSpace& bound, const VariantOptions& options,
                      const std::function<void(const VariantCount&)>& begin,
                      const std::function<void(const CompiledVariant&)>& each, const std::atomic<bool>& stop);

/// The same of given valid configurations, each once; `limit` and `seed` do not matter. Throws NvrtcError likewise.
void compile_variants(const BoundSpace& bound, const VariantOptions& options, const std::vector<Config>& configs,
                      const std::function<void(const CompiledVariant&)>& each, const std::atomic<bool>& stop);

/// The request that compiles that code, from the `compile_request` of the baseline.
[[nodiscard]] CompileRequest reference_request_of(const Space& space, CompileRequest default_request);

}  // namespace pascaline
