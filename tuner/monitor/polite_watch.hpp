#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/gpu_processes.hpp"

namespace pascaline {

/// Whether a sweep makes way for who uses the machine, and how it finds that out.
struct PoliteOptions {
  bool enabled = false;
  std::filesystem::path root = "/";  ///< that /sys and /proc are looked for in
  double look_every_s = 2;
  double calm_s = 10;  ///< the machine must be free that long before the device is used again
  /// Opens the list of the processes on a device; empty: `gpu_processes_of`.
  std::function<GpuProcessList(const DeviceInfo&)> processes{};
};

/// Looks whether the machine is in use: other processes compute on the device, it runs on its battery, or its lid is
/// closed. Processes that only draw count if they came after the watch began and are no display server. This process,
/// its children and the measuring processes of other sweeps do not count, nor do processes that cannot be seen from
/// here.
class PoliteWatch {
 public:
  PoliteWatch(PoliteOptions options, const DeviceInfo& device);

  /// Looks again if it is time for that, on a clock that never steps back. Whether the reason to pause came or went.
  bool look(double now_s);
  /// Why the device is to be left alone; empty: it may be used.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// Seconds, as of the last look, that there was a reason.
  [[nodiscard]] double paused_s() const noexcept { return paused_s_; }
  /// Readings that the machine lacked when the watch began, each to follow "this machine does not report".
  [[nodiscard]] const std::vector<std::string>& not_told() const noexcept { return not_told_; }

 private:
  [[nodiscard]] std::string present_reason() const;
  [[nodiscard]] std::string process_reason() const;
  [[nodiscard]] bool counts(const GpuProcess& process) const;

  PoliteOptions options_;
  std::string device_;
  GpuProcessList processes_;
  std::set<std::int64_t> drew_before_;
  std::vector<std::string> not_told_;
  std::string reason_;
  double paused_s_ = 0;
  std::optional<double> looked_at_s_;
  std::optional<double> used_at_s_;  ///< when there was a reason last
};

}  // namespace pascaline
