#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/summary.hpp"

namespace pascaline {

/// The best of one problem on one device, of all compilers and drivers that it was tuned with there.
struct DeviceBest {
  TimeSummary best;
  std::optional<TimeSummary> baseline;  ///< of the default, or of what stands in for it, under the same toolkit
  Config config;                        ///< that of `best`
};

/// One problem on several devices.
struct DeviceProblem {
  std::string kernel;
  std::string problem;
  std::vector<std::optional<DeviceBest>> devices;  ///< nothing: none of its configurations is usable there, or tried
  bool same_config = false;                        ///< one configuration is the best on all that have one
};

/// The same problems on devices of one kind side by side. Each device's times are its own, of its own nights: nothing
/// here says which of two configurations is better.
struct DeviceComparison {
  std::vector<DeviceRow> devices;
  std::vector<std::string> names;   ///< of the devices; where two are alike, with what tells them apart
  std::vector<DeviceProblem> rows;  ///< problems that at least two have, of the newest source of each kernel
  std::size_t same_config = 0;      ///< rows where it is
};

/// One for each kind of device (cards, emulated devices) of which several have a problem in common.
[[nodiscard]] std::vector<DeviceComparison> compare_devices(const std::vector<DeviceSummary>& groups);

/// The same of the contexts of a report that is JSON or a page.
[[nodiscard]] std::vector<DeviceComparison> compare_devices(const std::vector<ReportContext>& contexts);

/// A section of the Markdown report; empty without a comparison.
[[nodiscard]] std::string markdown_devices(const std::vector<DeviceComparison>& comparisons);

}  // namespace pascaline
