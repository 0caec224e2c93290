#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/probe.hpp"
#include "core/objective.hpp"
#include "core/trial.hpp"
#include "db/taken_over.hpp"

namespace pascaline {

/// Identity of a device as measurements are kept under (the UUID is kept beside, with the session).
struct DeviceRow {
  std::string kind;  ///< "cuda", "host" or "foreign" (measured by another tuner, on whatever it was)
  std::string name;
  std::string compute_capability;  ///< "6.1"; empty on the emulator
  std::int64_t sm_count = 0;
  std::uint64_t memory_bytes = 0;  ///< kept beside, not part of the identity
  std::string limits_json;         ///< kept beside
  friend bool operator==(const DeviceRow&, const DeviceRow&) = default;
};

/// Whether both are the same kind of device: equal kind, name, compute capability and SM count.
[[nodiscard]] inline bool same_identity(const DeviceRow& a, const DeviceRow& b) noexcept {
  return a.kind == b.kind && a.name == b.name && a.compute_capability == b.compute_capability &&
         a.sm_count == b.sm_count;
}

/// What built and ran the code.
struct ToolkitRow {
  std::string compiler;  ///< "nvrtc", "g++"
  std::string version;
  std::string target;          ///< "sm_61", "compute_61" (PTX), "host"
  std::string driver_version;  ///< empty on the emulator
  friend bool operator==(const ToolkitRow&, const ToolkitRow&) = default;
};

/// A version of a kernel's source.
struct KernelRow {
  std::string name;
  std::string source_hash;
  friend bool operator==(const KernelRow&, const KernelRow&) = default;
};

/// Rows a measurement hangs on. Contexts equal in all but the space may reuse each other's measurements (a space with
/// a value more changes nothing that was measured); others never do.
struct ContextIds {
  std::int64_t device = 0;
  std::int64_t toolkit = 0;
  std::int64_t kernel = 0;
  std::int64_t space = 0;
  std::int64_t problem = 0;
};

/// What one `pascaline sweep` did on one device, over all processes that took it up.
struct SessionRow {
  std::int64_t id = 0;
  std::string uuid;
  std::string run_uuid;  ///< shared by the sessions, one for each GPU, of one sweep
  std::int64_t started_unix_ms = 0;
  std::optional<std::int64_t> finished_unix_ms;
  std::string state = "running";  ///< "running", "finished", "interrupted", "failed"
  std::string command_line;       ///< for the record
  std::string searcher;
  std::uint64_t seed = 0;
  std::string options_json;  ///< for the record
  std::string device_uuid;
  std::string program_version;
  std::int64_t spent_ms = 0;    ///< time spent in this session over all its processes
  std::string progress;         ///< JSON, what a status command shows; empty if nothing was noted
  std::int64_t process_id = 0;  ///< filled when read
  std::string imported_from;    ///< filled when read: name of the file it was taken over from; empty for an own one
  bool has_plan = false;        ///< filled when read: the database says how to resume its run
  DeviceRow device;             ///< filled when read
  ToolkitRow toolkit;           ///< filled when read
  bool alive = false;           ///< filled when read: it is running and so is its process
};

/// The best known variant of a problem on a device, by one objective.
struct Winner {
  Objective objective = Objective::time;
  Trial trial;  ///< without samples
  std::int64_t trial_id = 0;
  std::optional<TimeSummary> baseline;  ///< the default configuration, measured in the same finals
  /// The objective's value of the default, in the objective's unit (`unit_of`); nothing for time, which `baseline` has.
  std::optional<double> baseline_score;
  double confidence = 0;  ///< that it is not worse than the default by the objective; 0.5 = a tie
  KernelRow kernel;
  ToolkitRow toolkit;
  DeviceRow device;
  std::string space_hash;
  std::int64_t decided_unix_ms = 0;
  /// Decisions that it is the best founded of: more than one where databases were merged.
  std::int64_t decisions = 1;
  /// Of a winner by time whose own trial lacks them: what the latest finals of the same configuration that measured
  /// them gave, of the same device, toolkit, source and problem.
  std::optional<double> known_energy_mj{};
  std::optional<double> known_sustained_us{};
};

/// A decision by time, whether it still counts or not.
struct PastDecision {
  KernelRow kernel;
  std::string problem;  ///< text
  ToolkitRow toolkit;
  TimeSummary time;                       ///< the winner's
  std::optional<TimeSummary> baseline{};  ///< what it was compared with
  std::int64_t decided_unix_ms = 0;
};

/// A reading of a device's sensors during a session.
struct TelemetryRow {
  std::int64_t unix_ms = 0;
  std::optional<double> temperature_c{};
  std::optional<double> sm_clock_mhz{};
  std::optional<double> memory_clock_mhz{};
  std::optional<double> power_w{};
  std::optional<std::int64_t> throttle_reasons{};
  std::string governor_state{};
  std::optional<double> canary_us{};  ///< time of the canary kernel
};

/// A configuration that was on the device when its process died, or that its process left there.
struct LeftAttempt {
  Config config;
  TrialStage stage = TrialStage::search;
  bool is_default = false;
};

/// What trials of a kernel cost on a device so far: for estimates.
struct TrialCost {
  double compile_ms = 0;      ///< mean over trials that were compiled and not taken from a cache
  double run_ms = 0;          ///< mean of verifying and measuring over `ok` trials of the search
  std::int64_t compiled = 0;  ///< trials in `compile_ms`
  std::int64_t ran = 0;       ///< trials in `run_ms`
  double pace_ms = 0;         ///< mean from one search trial's begin to the next one's of the same problem
  std::int64_t paced = 0;     ///< pairs of trials in `pace_ms`
  /// Mean of all else that a session took for a problem: starting, preparing, finals. Of sessions by the objective
  /// asked for; where there are none, of those by time.
  double problem_ms = 0;
  bool with_objective = false;  ///< finals by that objective are part of it
  std::int64_t problems = 0;    ///< in `problem_ms`, of sessions of this database's own that have ended
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
  std::string kernel{};
  std::string problem{};  ///< Problem::text()
  std::optional<TrialStatus> status{};
  std::optional<std::int64_t> session_id{};
  std::optional<std::int64_t> trial_id{};
  bool with_energy = false;  ///< only those whose energy is known
  bool with_samples = false;
};

struct BestFilter;       // db/best_trials.hpp
struct BestTrial;        // db/best_trials.hpp
struct ImportedResults;  // db/results.hpp
struct MergeCounts;      // db/merge.hpp
struct StoredProbe;      // db/stored_probe.hpp
struct SweepPlan;        // db/sweep_plan.hpp
struct ContextRows;      // db/overview.hpp, as the next four
struct SampleCounts;
struct TrialBrief;
struct TrialTimes;
struct VersionTrials;

enum class OpenMode : std::uint8_t { read_only, read_write, create };

/// What a power cut may take: nothing that was reported as stored, or the last transactions (never the file).
enum class Durability : std::uint8_t { full, normal };

/// The database of everything measured: SQLite in WAL mode, foreign keys on, each trial one transaction. Several
/// processes may write one database (waiting up to 30 s for each other), each thread through a Store of its own; none
/// may be carried over a fork. Every failure throws StoreError naming the file (StoreBusyError if another process kept
/// the lock), leaves what was stored before intact and the Store usable: the call may be tried again.
class Store {
 public:
  /// Opens (and with `create`, makes, with its folders) the database. Refuses, without touching it, a file that is not
  /// a Pascaline database, is damaged, or has another version of the schema or another schema than this program makes:
  /// views, triggers and checks of others would be run.
  /// Damage inside the file is looked for only when it is opened for writing, so that readers start fast.
  Store(const std::filesystem::path& file, OpenMode mode, Durability durability = Durability::full);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// A store on a temporary copy of the database, empty if there is no such file: for trying out what would change it.
  /// Its `file()` is that of the original, which is only read.
  [[nodiscard]] static Store scratch_copy(const std::filesystem::path& file);

  [[nodiscard]] const std::filesystem::path& file() const noexcept;
  /// How long a call waits for another process's lock before it throws StoreBusyError.
  void set_busy_timeout(std::chrono::milliseconds longest);

  std::int64_t device_id(const DeviceRow& row);
  std::int64_t toolkit_id(const ToolkitRow& row);
  std::int64_t kernel_id(const KernelRow& row);
  /// `json` is the space's canonical text, `hash` its hash.
  std::int64_t space_id(const std::string& kernel, const std::string& hash, const std::string& json);
  /// `flops` and `bytes`: the work of the problem.
  std::int64_t problem_id(const Problem& problem, double flops, double bytes);

  /// A name for a run that is about to begin.
  [[nodiscard]] static std::string new_run();
  /// Stores what the run is to do, its problems being stored already, in place of what was stored of it before.
  void save_plan(const std::string& run_uuid, const SweepPlan& plan);
  /// Nothing if the run has none. Include db/sweep_plan.hpp to call it.
  [[nodiscard]] std::optional<SweepPlan> plan(const std::string& run_uuid) const;

  /// Begins a session of this process; fills `row.id` and, if empty or 0, `row.uuid`, `row.run_uuid` and
  /// `row.started_unix_ms`.
  std::int64_t begin_session(SessionRow& row, std::int64_t device_id, std::int64_t toolkit_id);
  /// Ends it now with a state other than "running".
  void end_session(std::int64_t session_id, std::string_view state);
  /// This process takes over a session that ended, or whose process is dead: it is running again. Throws StoreError if
  /// there is none with that id, it runs in another process or it was taken over from another file.
  void resume_session(std::int64_t session_id);
  /// Sets the session's `spent_ms` and `progress` (JSON; empty: none) and stores the readings, in one transaction.
  void note_progress(std::int64_t session_id, std::int64_t spent_ms, const std::string& progress_json,
                     std::span<const TelemetryRow> readings);
  /// All sessions, the one begun last first.
  [[nodiscard]] std::vector<SessionRow> sessions() const;

  // An attempt is "left" if its session has ended or its session's process is dead or this one. So what asks for left
  // ones is to be called while this process does not have those configurations on the device.

  /// Notes, before the device is touched, that a configuration is about to run. Takes over left attempts of the same
  /// configuration, device, toolkit, kernel and problem: this try counts as theirs, and as one more if the machine was
  /// started since, that is if it went down with them.
  void begin_attempt(std::int64_t session_id, const ContextIds& context, const Config& config,
                     TrialStage stage = TrialStage::search, bool is_default = false);
  /// Forgets an attempt of the session without a trial; nothing happens if there is none.
  void end_attempt(std::int64_t session_id, const ContextIds& context, const Config& config);
  /// Stores the trial with its samples and forgets its attempt, in one transaction. Returns the trial's id. Throws
  /// StoreError if the trial's problem is not the context's. A `max_error` that is not a number becomes infinity.
  std::int64_t add_trial(std::int64_t session_id, const ContextIds& context, const Trial& trial);
  /// Marks sessions of the device whose process is dead as interrupted, and turns left attempts at their second try
  /// into `crashed` trials of their own sessions. Those at their first stay: whatever ended the process or the machine
  /// need not have been theirs. Returns how many became crashed.
  int settle_attempts(std::int64_t device_id);
  /// Configurations with left attempts in the context, whatever its space was, the one left longest first.
  [[nodiscard]] std::vector<LeftAttempt> left_attempts(const ContextIds& context) const;

  /// A configuration that already has a search-stage trial, with what is known of it. Of the trials of one session the
  /// one stored last counts. Of several sessions, the best supported: a wrong result, which a kernel that is right only
  /// sometimes gives, is above all; then the time with the narrowest interval; other failures only if none has a time.
  struct Known {
    Config config;
    TrialStatus status = TrialStatus::ok;
    double median_us = 0;
    std::int64_t trial_id = 0;
    std::string binary_hash;
    bool failed_in_finals = false;  ///< it was usable in the search and failed in finals
    bool in_run = false;            ///< a session of the asked run has a search-stage trial of it
  };
  /// Those of the context, whatever its space was: a configuration may have values that the space no longer has.
  [[nodiscard]] std::vector<Known> known_trials(const ContextIds& context, const std::string& run_uuid = {}) const;
  /// Usable search-stage trials of one key: what may tell something about another.
  struct Measured {
    std::int64_t toolkit = 0;
    std::int64_t kernel = 0;
    std::int64_t problem_id = 0;
    Problem problem;
    std::vector<std::pair<Config, double>> times_us;  ///< the last of each configuration
    std::int64_t last_trial = 0;
  };
  /// Of a kernel on a device, whatever its source, toolkit and problem; what was measured last comes first.
  [[nodiscard]] std::vector<Measured> measured(std::int64_t device_id, const std::string& kernel) const;
  /// A key under which another device of the same kind has search-stage trials, failed ones among them.
  struct MeasuredElsewhere {
    DeviceRow device;
    std::int64_t device_id = 0;
    std::int64_t toolkit = 0;
    std::int64_t kernel = 0;
    std::int64_t problem_id = 0;
    Problem problem;
    std::int64_t trials = 0;
  };
  /// Those of a kernel that are not of the given device: of GPUs for a GPU, of emulated devices for an emulated one,
  /// never what another tuner measured. Whatever their source, toolkit and problem; in the order of their rows.
  [[nodiscard]] std::vector<MeasuredElsewhere> measured_elsewhere(std::int64_t device_id,
                                                                  const std::string& kernel) const;
  /// The last usable time of each configuration under that key.
  [[nodiscard]] std::vector<std::pair<Config, double>> times_us(const MeasuredElsewhere& key) const;
  /// What the search that tried that trial's configuration first, under its key, took over (`taken_over_of`).
  [[nodiscard]] std::vector<TakenOver> taken_over(std::int64_t trial_id) const;
  /// Costs over all versions and problems of a kernel.
  [[nodiscard]] TrialCost trial_costs(std::int64_t device_id, const std::string& kernel,
                                      Objective objective = Objective::time) const;

  /// Declares the winner of a problem by an objective in a context; replaces an earlier one by the same objective,
  /// whose decision does not count any more. It is decided later than all of that kernel's source and problem on the
  /// device by that objective, whatever the clock says. `baseline_score`: see Winner.
  /// Throws StoreError unless it is an `ok` trial of that context.
  void set_winner(const ContextIds& context, std::int64_t trial_id, const std::optional<TimeSummary>& baseline,
                  double confidence, Objective objective = Objective::time,
                  const std::optional<double>& baseline_score = {});
  /// Winners by an objective (nothing: by every one) of a kernel (empty: of every kernel) on a device with that
  /// identity (all devices if nullptr), the newest decision first: one for each device, toolkit, kernel source, problem
  /// and objective, outdated ones among them.
  [[nodiscard]] std::vector<Winner> winners(const std::string& kernel, const DeviceRow* device,
                                            std::optional<Objective> objective = Objective::time) const;

  /// All decisions by time on devices with that identity, the oldest first.
  [[nodiscard]] std::vector<PastDecision> decisions(const DeviceRow& device) const;

  /// The context's winner is decided for once more, as it was: it counts as decided now, later than all others as by
  /// `set_winner`, with trial, figures and confidence as they are. Throws StoreError if the context has none.
  void confirm_winner(const ContextIds& context, Objective objective = Objective::time);

  /// Which of all decisions of its context and objective one is: no two have both in common.
  struct DecisionId {
    std::int64_t trial = 0;
    std::int64_t decided_unix_ms = 0;
    friend bool operator==(const DecisionId&, const DecisionId&) = default;
  };
  /// What was decided for a context.
  struct Decision {
    TrialStage stage = TrialStage::finals;  ///< of the winner's trial: whether finals decided
    Config config;
    TimeSummary time;
    std::optional<double> canary_us{};        ///< of the winner's trial
    std::optional<TimeSummary> baseline{};    ///< what the winner was compared with
    std::optional<Config> baseline_config{};  ///< of that; nothing if it is not among the trials of the context
    double confidence = 0;
    DecisionId id;
  };
  /// Nothing if the context has no winner by that objective.
  [[nodiscard]] std::optional<Decision> decision(const ContextIds& context,
                                                 Objective objective = Objective::time) const;
  /// What the winner with this trial was compared with, where that is not the default configuration.
  struct StandIn {
    Config config;
    std::string why;  ///< what became of the default; empty if it was not tried
  };
  /// Nothing if it was the default, there was nothing, or it is not known.
  [[nodiscard]] std::optional<StandIn> stand_in_of(std::int64_t winner_trial_id) const;

  /// Whether finals of the run decided the context's winner by that objective: its trial is of one of its sessions,
  /// or it was confirmed after finals of theirs. A provisional winner does not count.
  [[nodiscard]] bool decided_in_run(const ContextIds& context, const std::string& run_uuid,
                                    Objective objective = Objective::time) const;

  /// What `merge_databases` (db/merge.hpp) does.
  std::vector<MergeCounts> merge(std::span<const std::filesystem::path> files,
                                 const std::function<void(const std::filesystem::path&)>& on_file);
  /// The same from an open one.
  MergeCounts merge(Store& other);
  /// All that is to be compared, line by line in an order that depends on nothing but the content: one JSON object for
  /// each device, toolkit, kernel, space, problem, session with its readings, trial with its samples, decision, winner
  /// and probe, as merging takes them (docs/exchange.md, "Rows"). What is this database's alone is left out: its ids,
  /// plans, what is on a device just now, and where sessions were taken over from.
  void for_each_line(const std::function<void(std::string_view)>& visit) const;
  /// Stores results of another tuner as a finished session, in one transaction; returns its id, nothing if a file of
  /// that content was imported before.
  std::optional<std::int64_t> add_results(const ImportedResults& results);

  /// Stores what a probe found, in one transaction; returns its id. Fills `probe.uuid` if it is empty.
  std::int64_t add_probe(Probe& probe, std::int64_t device_id, std::int64_t toolkit_id);
  /// Probes of a device with that identity (of all devices if nullptr), the one begun last first. Include
  /// db/stored_probe.hpp to call it.
  [[nodiscard]] std::vector<StoredProbe> probes(const DeviceRow* device) const;
  /// What is known by measurement of a device with that identity: empty if it was never probed.
  [[nodiscard]] MeasuredRates measured_rates(const DeviceRow& device) const;

  void add_telemetry(std::int64_t session_id, const TelemetryRow& row);
  /// In the order they were stored.
  [[nodiscard]] std::vector<TelemetryRow> telemetry(std::int64_t session_id) const;

  /// Trials in the order they were stored.
  [[nodiscard]] std::vector<StoredTrial> trials(const TrialFilter& filter) const;
  /// As `trials`, one at a time: for databases larger than memory.
  void for_each_trial(const TrialFilter& filter, const std::function<void(const StoredTrial&)>& visit) const;
  /// The best trial of each problem on each device for each target, all as of one moment, ordered by device,
  /// target and problem (devices and problems as they were first stored). Include db/best_trials.hpp to call it.
  [[nodiscard]] std::vector<BestTrial> best_trials(const BestFilter& filter) const;
  /// How many samples of a trial do not count, by reason.
  [[nodiscard]] std::vector<std::pair<SampleMark, int>> marked_samples(std::int64_t trial_id) const;
  [[nodiscard]] std::vector<DeviceRow> devices() const;
  /// Names of kernels that anything is stored of, sorted.
  [[nodiscard]] std::vector<std::string> kernel_names() const;
  /// Texts of a kernel's problems (Problem::text()) in the order they were stored.
  [[nodiscard]] std::vector<std::string> problem_texts(const std::string& kernel) const;
  /// Work of a stored problem (flops, bytes), if known.
  [[nodiscard]] std::optional<std::pair<double, double>> work(const std::string& problem_text) const;

  /// Calls `work`, whose calls of this store become one transaction that nobody else's writing comes between: what it
  /// stores follows from what it reads. Nothing of it stays if it throws, which passes, or if the end of the
  /// transaction throws. Calls that are a transaction themselves, as `add_trial`, fail there.
  void in_one_transaction(const std::function<void()>& work);

  /// Calls `work`, in which this store sees the database as it was at its first reading there, whoever writes to it
  /// meanwhile; nothing may be stored through it.
  void at_one_moment(const std::function<void()>& work) const;
  /// Trials of a kernel (empty: of every kernel) in the order they were stored: several times as fast as
  /// `for_each_trial`.
  void for_each_brief(const std::string& kernel, const std::function<void(const TrialBrief&)>& visit) const;
  /// Of the trials that have samples, in the order they were stored.
  void for_each_sample_count(const std::function<void(const SampleCounts&)>& visit) const;
  /// Where the time of trials went, of each session of a run (empty: of every session) that has such trials, in the
  /// order of their ids.
  [[nodiscard]] std::vector<TrialTimes> trial_times(const std::string& run_uuid = {}) const;
  /// What each session measured with, and how many trials: of those that have any, in the order of their ids.
  [[nodiscard]] std::vector<VersionTrials> trials_by_version() const;
  /// Throws StoreError if one of them is not there.
  [[nodiscard]] ContextRows rows_of(const ContextIds& context) const;

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pascaline
