#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/device/probe.hpp"
#include "core/problem.hpp"
#include "db/store.hpp"

namespace pascaline {

/// What limits a configuration, estimated from its machine code for sm_50 to sm_62; never measured on such a card.
/// Counts are of one round of the hottest loop, and of a thread. "Least" is the faster end of what is not known of the
/// hardware, "most" the slower one.
struct ReportLimit {
  std::string role;  ///< "winner", "default", "winner, which is the default", "baseline"
  Config config;
  std::string compiler;  ///< "nvrtc 11.8 for sm_61"
  /// "nvrtc 12.9", where what was measured was built by that and not by `compiler`; else empty.
  std::string measured_compiler;
  std::string missing;  ///< why there is no estimate, and what to do; empty if there is one
  bool has_loop = false;
  std::size_t instructions = 0;
  std::size_t ffma = 0;
  std::size_t dp4a = 0;
  double conflicts = 0;      ///< register bank conflicts for each FFMA and dp4a
  int registers = 0;         ///< of a thread
  int threads = 0;           ///< of a block
  int blocks = 0;            ///< on an SM at a time
  std::string blocks_limit;  ///< what holds them to that: "registers", "shared memory", …
  double waves = 0;
  double least_us = 0;
  double most_us = 0;
  std::string least_limit;  ///< "issue", "bank conflicts", …
  std::string most_limit;
  /// Issue slots of a register bank conflict that were measured on the device and hold at both ends.
  std::optional<double> measured_conflict;
};

/// A configuration that a report asks about.
struct LimitRequest {
  DeviceRow device;
  ToolkitRow toolkit;
  std::string source_hash;  ///< of the kernel that was measured
  Problem problem;
  std::optional<Config> config;  ///< nothing: the default of the kernel's space
  MeasuredRates measured{};      ///< of the device, by `pascaline probe`
};

/// Tells what limits a configuration; `role` is set by the report.
using LimitSource = std::function<ReportLimit(const LimitRequest&)>;

/// Whether code for a toolkit's target (`sm_61`, `compute_61`) can be asked about: sm_50 to sm_62.
[[nodiscard]] bool has_limits(const std::string& target);

/// The winner's and the default's; one if they are the same. `request.config` does not matter. `best` and `baseline`,
/// which stands in for a default that is not usable, may be missing.
[[nodiscard]] std::vector<ReportLimit> limits_of(const LimitSource& source, LimitRequest request,
                                                 const std::optional<Config>& best,
                                                 const std::optional<Config>& baseline);

/// What it says in sentences, without role and configuration, each a member.
[[nodiscard]] std::vector<std::string> limit_sentences(const ReportLimit& limit);

/// What holds for all of them, in a sentence or two.
[[nodiscard]] std::string limit_notice();

}  // namespace pascaline
