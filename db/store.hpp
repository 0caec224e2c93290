#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/trial.hpp"

namespace pascaline {

/// Identity of a device as measurements are kept under (the UUID is kept beside, with the session).
struct DeviceRow {
  std::string kind;                ///< "cuda" or "host"
  std::string name;
  std::string compute_capability;  ///< "6.1"; empty on the host
  std::int64_t sm_count = 0;
  std::uint64_t memory_bytes = 0;  ///< kept beside, not part of the identity
  std::string limits_json;         ///< kept beside
  friend bool operator==(const DeviceRow&, const DeviceRow&) = default;
};

/// What built and ran the code.
struct ToolkitRow {
  std::string compiler;        ///< "nvrtc", "g++"
  std::string version;
  std::string target;          ///< "sm_61", "compute_61" (PTX), "host"
  std::string driver_version;  ///< empty on the host
  friend bool operator==(const ToolkitRow&, const ToolkitRow&) = default;
};

/// A version of a kernel's source.
struct KernelRow {
  std::string name;
  std::string source_hash;
  friend bool operator==(const KernelRow&, const KernelRow&) = default;
};

/// Rows a measurement hangs on. Equal contexts may reuse each other's measurements; others never do.
struct ContextIds {
  std::int64_t device = 0;
  std::int64_t toolkit = 0;
  std::int64_t kernel = 0;
  std::int64_t space = 0;
  std::int64_t problem = 0;
};

/// One run of the tuner.
struct SessionRow {
  std::int64_t id = 0;
  std::string uuid;
  std::int64_t started_unix_ms = 0;
  std::optional<std::int64_t> finished_unix_ms;
  std::string state;         ///< "running", "finished", "interrupted", "failed"
  std::string command_line;
  std::string searcher;
  std::uint64_t seed = 0;
  std::string options_json;
  std::string device_uuid;
  std::string program_version;
};

/// The best known variant of a problem on a device.
struct Winner {
  Trial trial;                          ///< without samples
  std::int64_t trial_id = 0;
  std::optional<TimeSummary> baseline;  ///< the default configuration, measured in the same finals
  double confidence = 0;                ///< that it is not slower than the default; 0.5 = a tie
  KernelRow kernel;
  ToolkitRow toolkit;
  DeviceRow device;
  std::string space_hash;
};

/// A reading of a device's sensors during a session.
struct TelemetryRow {
  std::int64_t unix_ms = 0;
  std::optional<double> temperature_c;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> power_w;
  std::optional<std::int64_t> throttle_reasons;
  std::string governor_state;
};

/// A stored trial with the rows it hangs on.
struct StoredTrial {
  std::int64_t id = 0;
  std::int64_t session_id = 0;
  DeviceRow device;
  ToolkitRow toolkit;
  KernelRow kernel;
  std::string space_hash;
  Trial trial;  ///< samples only if asked for
};

/// Which trials are wanted; empty fields do not narrow.
struct TrialFilter {
  std::string kernel;
  std::string problem;  ///< Problem::text()
  std::optional<TrialStatus> status;
  std::optional<std::int64_t> session_id;
  bool with_samples = false;
};

enum class OpenMode : std::uint8_t { read_only, read_write, create };

/// The database of everything measured: SQLite in WAL mode, foreign keys on, each trial one transaction. Several
/// processes may write one database (busy waits up to 30 s). Every failure throws StoreError naming the file.
class Store {
 public:
  static constexpr int kSchemaVersion = 1;

  /// Opens (and with `create`, makes) the database, migrating an older schema unless read-only. Refuses a file that
  /// is no Pascaline database, is damaged, or is newer than this program.
  Store(const std::filesystem::path& file, OpenMode mode);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  [[nodiscard]] const std::filesystem::path& file() const noexcept;

  std::int64_t device_id(const DeviceRow& row);
  std::int64_t toolkit_id(const ToolkitRow& row);
  std::int64_t kernel_id(const KernelRow& row);
  /// `json` is the space's canonical text, `hash` its hash.
  std::int64_t space_id(const std::string& kernel, const std::string& hash, const std::string& json);
  /// `flops` and `bytes`: the work of the problem.
  std::int64_t problem_id(const Problem& problem, double flops, double bytes);

  /// Begins a session; fills `row.id` and, if empty, `row.uuid`.
  std::int64_t begin_session(SessionRow& row, std::int64_t device_id, std::int64_t toolkit_id);
  void end_session(std::int64_t session_id, std::string_view state);
  [[nodiscard]] std::vector<SessionRow> sessions() const;

  /// Notes, before the device is touched, that a configuration is about to run.
  void begin_attempt(std::int64_t session_id, const ContextIds& context, const Config& config);
  /// Stores the trial with its samples and forgets its attempt, in one transaction. Returns the trial's id.
  std::int64_t add_trial(std::int64_t session_id, const ContextIds& context, const Trial& trial);
  /// Turns attempts left by this or by dead sessions of the same device (no process holds them any more: `alive`
  /// says whether a process id still runs) into `crashed` trials. Returns how many.
  int settle_attempts(std::int64_t device_id);

  /// Configurations of the context that already have a search-stage trial, with their status and median.
  struct Known {
    Config config;
    TrialStatus status = TrialStatus::ok;
    double median_us = 0;
  };
  [[nodiscard]] std::vector<Known> known_trials(const ContextIds& context) const;

  /// Declares the winner of a problem in a context; replaces an earlier one.
  void set_winner(const ContextIds& context, std::int64_t trial_id, const std::optional<TimeSummary>& baseline,
                  double confidence);
  /// Winners of a kernel (empty: of every kernel) on a device with that identity; all devices if nullptr.
  [[nodiscard]] std::vector<Winner> winners(const std::string& kernel, const DeviceRow* device) const;

  void add_telemetry(std::int64_t session_id, const TelemetryRow& row);
  [[nodiscard]] std::vector<TelemetryRow> telemetry(std::int64_t session_id) const;

  [[nodiscard]] std::vector<StoredTrial> trials(const TrialFilter& filter) const;
  [[nodiscard]] std::vector<DeviceRow> devices() const;
  /// Work of a stored problem (flops, bytes), if known.
  [[nodiscard]] std::optional<std::pair<double, double>> work(const std::string& problem_text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pascaline
