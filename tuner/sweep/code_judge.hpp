#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/binary.hpp"
#include "core/device/probe.hpp"
#include "core/space/space.hpp"
#include "runtime/device/device.hpp"

namespace pascaline {

/// Between what a launch takes by its machine code, in microseconds: the ends of what is not known of the hardware.
struct CodeRange {
  double least_us = 0;
  double most_us = 0;

  /// Geometric mean of both.
  [[nodiscard]] double middle_us() const noexcept;
};

/// Estimates a compiled configuration; nothing where its code does not tell.
using CodeEstimator = std::function<std::optional<CodeRange>(const Config&, const Binary&)>;

/// `estimate_from_code` of configurations of `space`, which must outlive it, on such a device, by what
/// `pascaline probe` measured of it where it did. Empty for all but GPUs of compute capability 5.0 to 6.2.
[[nodiscard]] CodeEstimator code_estimator(const DeviceInfo& device, const MeasuredRates& measured,
                                           const BoundSpace& space);

/// What the machine code of a problem's compiled configurations says of their times beside that of the fastest
/// measured so far: which are to be measured first, and which cannot win.
class CodeJudge {
 public:
  /// How many times as slow as the fastest a configuration has to be at both ends of its estimate to be left out. By
  /// this factor the best was never left out in trials of another GPU (docs/results.md).
  static constexpr double kCannotWin = 1.5;

  struct Verdict {
    std::string reason;      ///< for people
    double expected_us = 0;  ///< by the time of the fastest and both estimates
  };

  explicit CodeJudge(CodeEstimator estimator) : estimator_(std::move(estimator)) {}

  /// Takes in a configuration's code.
  void take(const Config& config, const Binary& binary);
  /// The fastest of those measured is now this one.
  void set_fastest(const Config& config, double median_us);
  /// Middle of its estimate in microseconds, 0 if there is none: the less the more promising.
  [[nodiscard]] double middle_us(const Config& config) const;
  /// Why a configuration whose code was taken cannot be the fastest; nothing if it may be, or nobody knows.
  [[nodiscard]] std::optional<Verdict> cannot_win(const Config& config) const;

 private:
  CodeEstimator estimator_;
  std::map<std::string, CodeRange> estimates_;  ///< by the configuration's text
  std::optional<CodeRange> fastest_;
  double fastest_us_ = 0;
};

}  // namespace pascaline
