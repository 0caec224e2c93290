#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/trial.hpp"

namespace pascaline {

/// A tunable parameter of a recorded space: its values in order.
struct RecordedParameter {
  std::string name;
  std::vector<Value> values;
};

/// What became of one configuration. Durations are 0 where the file does not tell them.
struct RecordedTrial {
  std::vector<std::uint16_t> indices;    ///< of each parameter's value
  TrialStatus status = TrialStatus::ok;  ///< never `dropped`: trials with a time are `ok`
  std::string reason;                    ///< why not ok, in the file's words; one line, possibly empty
  double time_us = 0;                    ///< what the searcher minimises; finite and positive if ok
  std::vector<double> samples_us;        ///< single launches, possibly none
  double compile_ms = 0;
  double verify_ms = 0;
  double measure_ms = 0;
  double framework_ms = 0;
  double search_ms = 0;
  std::int64_t started_unix_ms = 0;  ///< 0: unknown
  /// What trying the configuration cost: compiling, verifying, measuring and the framework's own time.
  [[nodiscard]] double cost_ms() const noexcept { return compile_ms + verify_ms + measure_ms + framework_ms; }
};

/// A search space with the outcome of its configurations: a file of another tuner, or one problem of a database. The
/// space is what was recorded: a configuration that is not among `trials` breaks a constraint. No configuration stands
/// there twice.
struct RecordedSpace {
  std::string name;          ///< for tables: the file's stem, or kernel, problem and device
  std::string format;        ///< "kernel_tuner", "clblast", "ktt", "t4", "csv" or "pascaline"
  std::string kernel;        ///< possibly empty
  std::string device;        ///< possibly empty
  std::string problem_size;  ///< as the file writes it, possibly empty
  std::vector<RecordedParameter> parameters;
  std::vector<RecordedTrial> trials;
  std::size_t left_out = 0;  ///< entries of the file that worked but have no positive time, which are not among them

  [[nodiscard]] Config config(const RecordedTrial& trial) const;
};

}  // namespace pascaline
