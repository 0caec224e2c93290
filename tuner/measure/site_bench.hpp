#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trial.hpp"
#include "runtime/device/device.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "tuner/measure/site_tensors.hpp"

namespace pascaline {

/// Computes one site with tensors of its own, in any of its ways.
class SiteChains;

/// A site of a model on a device: its alternatives as chains of launches, each kernel with the best configuration that
/// is known, on drawn inputs.
class SiteBench {
 public:
  /// Reads the winners as they are now. `device` must outlive it; `drawing` as for ProblemData. Throws Error for a
  /// problem that is no site's, and as Dispatcher.
  SiteBench(Device& device, const DispatcherOptions& options, const Problem& site, std::uint64_t seed,
            const std::optional<Binary>& drawing = std::nullopt);
  SiteBench(const SiteBench&) = delete;
  SiteBench& operator=(const SiteBench&) = delete;
  ~SiteBench();

  /// Tensors and what "single" makes of them, unless they are there. Throws ReferenceError if "single" cannot be
  /// computed, for want of memory or of a kernel, StoppedError, and what the device throws.
  void prepare();
  /// Compiles and loads what the alternative launches. Nothing, or why it is of no use: `rejected` where it does not
  /// fit the site, `compile_failed` where a kernel cannot be built.
  [[nodiscard]] std::optional<std::pair<TrialStatus, std::string>> build(const std::string& alternative);
  /// Kernels that the alternative launches, in its order; of one that fits.
  [[nodiscard]] std::vector<std::string> kernels_of(const std::string& alternative);
  /// Runs a built alternative on fresh inputs and waits. Throws what the device throws.
  void run(const std::string& alternative);
  /// What that gave, compared with what "single" gives.
  [[nodiscard]] SiteTensors::Difference difference() const { return tensors_->difference(); }
  /// The largest difference that rounding explains, as a share of a tensor's largest value: by the types that values
  /// are rounded to on the way.
  [[nodiscard]] double tolerance() const noexcept { return tolerance_; }
  /// The chain of a built alternative that has run, to be launched as often as is wanted.
  [[nodiscard]] Graph record(const std::string& alternative);

 private:
  Device* device_;
  Dispatcher dispatcher_;
  Problem site_;
  double tolerance_;
  std::uint64_t seed_;
  InputDrawing drawing_;
  std::unique_ptr<SiteTensors> tensors_;
  std::unique_ptr<SiteChains> chains_;
};

}  // namespace pascaline
