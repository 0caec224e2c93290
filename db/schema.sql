-- Everything Pascaline measures. `trial_details` at the end is the view to query by hand.
-- Times are microseconds unless the name says otherwise; `*_unix_ms` are milliseconds since 1970, UTC.

PRAGMA application_id = 1349739372;  -- "Pscl"
PRAGMA user_version = 1;

-- Identity of a device: two cards of one model share their measurements. The UUID is kept with the session. 'foreign'
-- is what another tuner measured on: no sweep and no dispatcher is ever on such a device.
CREATE TABLE devices (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('cuda', 'host', 'foreign')),
  name TEXT NOT NULL,
  compute_capability TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  limits TEXT NOT NULL,
  UNIQUE (kind, name, compute_capability, sm_count)
) STRICT;

-- What built and ran the code.
CREATE TABLE toolkits (
  id INTEGER PRIMARY KEY,
  compiler TEXT NOT NULL,
  version TEXT NOT NULL,
  target TEXT NOT NULL,
  driver_version TEXT NOT NULL,
  UNIQUE (compiler, version, target, driver_version)
) STRICT;

-- Versions of kernel sources, headers included.
CREATE TABLE kernels (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  source_hash TEXT NOT NULL,
  UNIQUE (name, source_hash)
) STRICT;

CREATE TABLE spaces (
  id INTEGER PRIMARY KEY,
  kernel TEXT NOT NULL,
  hash TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json)),
  UNIQUE (kernel, hash)
) STRICT;

-- `dimensions` and `types` are JSON objects in the order of the search space; `data` is the hash of the contents of
-- buffers, where they were given; else they are drawn.
CREATE TABLE problems (
  id INTEGER PRIMARY KEY,
  kernel TEXT NOT NULL,
  text TEXT NOT NULL UNIQUE,
  dimensions TEXT NOT NULL CHECK (json_valid(dimensions)),
  types TEXT NOT NULL CHECK (json_valid(types)),
  data TEXT NOT NULL DEFAULT '',
  flops REAL NOT NULL,
  bytes REAL NOT NULL
) STRICT;

-- Files from which sessions were taken over: another database ('merge') or results of another tuner ('results'). The
-- hash is of what the file held: a database's sessions and how far each had come, or all bytes of a file of results.
CREATE TABLE imports (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('merge', 'results')),
  source TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  imported_unix_ms INTEGER NOT NULL,
  program_version TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX imports_of_results ON imports (content_hash) WHERE kind = 'results';

-- Runs of the tuner on one device. Process id, its start and the boot together tell whether a session still runs.
-- Sessions of one `pascaline sweep`, one for each GPU, share `run_uuid`, and with it a row of `plans`. `options` and
-- `command_line` are for the record only. `spent_ms` is what was spent in the session over all its processes,
-- `progress` what is shown of it while it runs. `import_id` says what it was taken over from, NULL for one of this
-- database's own; one that ran there still is 'interrupted' here. A sweep that chooses among compilers stores trials
-- under each one's toolkit; `toolkit_id` is that of its first compiler.
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  device_uuid TEXT NOT NULL,
  process_id INTEGER NOT NULL,
  process_start INTEGER NOT NULL,  -- clock ticks after boot
  boot_id TEXT NOT NULL,
  started_unix_ms INTEGER NOT NULL,
  finished_unix_ms INTEGER,
  state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted', 'failed')),
  searcher TEXT NOT NULL,
  seed INTEGER NOT NULL,  -- 64 bits, reinterpreted as signed
  options TEXT NOT NULL,
  command_line TEXT NOT NULL,
  program_version TEXT NOT NULL,
  run_uuid TEXT NOT NULL,
  spent_ms INTEGER NOT NULL,
  progress TEXT CHECK (progress IS NULL OR json_valid(progress)),
  import_id INTEGER REFERENCES imports (id),
  CHECK ((state = 'running') = (finished_unix_ms IS NULL))
) STRICT;

CREATE INDEX sessions_by_device ON sessions (device_id);
CREATE INDEX sessions_by_run ON sessions (run_uuid);

-- What a run set out to do, to go on with it. Every value is checked as that of a command line before it is used. There
-- are no words of a command here and no paths to open. A run that was taken over from another file has no plan.
CREATE TABLE plans (
  run_uuid TEXT NOT NULL PRIMARY KEY,
  devices TEXT NOT NULL,  -- cuda:0,cuda:1
  target TEXT NOT NULL,  -- empty: the devices' own
  nvrtc TEXT NOT NULL,  -- a version, several (11.8,12.9) or all; empty: not asked for
  searcher TEXT NOT NULL,
  seed INTEGER NOT NULL,  -- 64 bits, reinterpreted as signed
  trials INTEGER CHECK (trials > 0),  -- of each problem; NULL: not asked for
  budget_s REAL CHECK (budget_s > 0),
  until_unix_s INTEGER CHECK (until_unix_s > 0),
  retry_failed INTEGER NOT NULL CHECK (retry_failed IN (0, 1)),
  jobs INTEGER NOT NULL CHECK (jobs > 0),
  compile_timeout_s REAL NOT NULL CHECK (compile_timeout_s > 0),
  compile_memory_mib INTEGER NOT NULL CHECK (compile_memory_mib >= 0),
  kernel_timeout_s REAL NOT NULL CHECK (kernel_timeout_s > 0),
  cold_cache INTEGER NOT NULL CHECK (cold_cache IN (0, 1)),
  min_samples INTEGER NOT NULL CHECK (min_samples > 0),
  max_samples INTEGER NOT NULL CHECK (max_samples > 0),
  half_width REAL NOT NULL,
  sample_budget_ms REAL NOT NULL,
  race_error REAL NOT NULL,
  finalists INTEGER NOT NULL,
  rounds INTEGER NOT NULL,
  preheat_s REAL NOT NULL,
  max_temperature_c REAL,
  drift REAL NOT NULL,
  pause_limit_s REAL NOT NULL,
  tolerate_power INTEGER NOT NULL CHECK (tolerate_power IN (0, 1)),
  tolerate_thermal INTEGER NOT NULL CHECK (tolerate_thermal IN (0, 1)),
  objective TEXT NOT NULL CHECK (objective IN ('time', 'energy', 'edp', 'sustained')),
  polite INTEGER NOT NULL CHECK (polite IN (0, 1)),
  min_gain REAL NOT NULL,
  deepen INTEGER NOT NULL CHECK (deepen IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE plan_kernels (
  run_uuid TEXT NOT NULL REFERENCES plans (run_uuid),
  kernel TEXT NOT NULL,
  source_hash TEXT NOT NULL,
  space_hash TEXT NOT NULL,
  PRIMARY KEY (run_uuid, kernel)
) STRICT, WITHOUT ROWID;

CREATE TABLE plan_problems (
  run_uuid TEXT NOT NULL REFERENCES plans (run_uuid),
  ordinal INTEGER NOT NULL,
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  calls REAL NOT NULL CHECK (calls >= 0),  -- by the model, in all its phases; 0: a shape between others
  label TEXT NOT NULL,
  parts INTEGER NOT NULL CHECK (parts BETWEEN 1 AND 10000),  -- that its space is divided into, of which
  part INTEGER NOT NULL CHECK (part BETWEEN 1 AND parts),    -- this one is searched
  PRIMARY KEY (run_uuid, ordinal)
) STRICT, WITHOUT ROWID;

-- How a problem's calls are shared out among the phases of a model (prompt, token, image); none where there are no
-- phases.
CREATE TABLE plan_calls (
  run_uuid TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  phase TEXT NOT NULL,
  calls REAL NOT NULL CHECK (calls >= 0),
  PRIMARY KEY (run_uuid, ordinal, phase),
  FOREIGN KEY (run_uuid, ordinal) REFERENCES plan_problems (run_uuid, ordinal)
) STRICT, WITHOUT ROWID;

-- Paths that a run was begun with, to be shown: a resumed run opens only paths that its own command line names.
CREATE TABLE plan_paths (
  run_uuid TEXT NOT NULL REFERENCES plans (run_uuid),
  option TEXT NOT NULL CHECK (option IN ('--kernels', '--spaces', '--nvrtc', '--cache', '--log', '--sensors')),
  value TEXT NOT NULL,
  PRIMARY KEY (run_uuid, option)
) STRICT, WITHOUT ROWID;

-- Configurations on the device right now. One that is still here after its session died is measured again. `tries` is
-- one, and one more for each time that the machine went down (`boot_id` is not the present one) while it was here: it
-- may have been the cause. A sweep that was only killed says nothing, as kernels run in a process of their own.
CREATE TABLE attempts (
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  kernel_id INTEGER NOT NULL REFERENCES kernels (id),
  space_id INTEGER NOT NULL REFERENCES spaces (id),
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  config_text TEXT NOT NULL,
  config TEXT NOT NULL CHECK (json_valid(config)),
  stage TEXT NOT NULL CHECK (stage IN ('search', 'finals')),
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  started_unix_ms INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  boot_id TEXT NOT NULL,
  PRIMARY KEY (session_id, toolkit_id, kernel_id, problem_id, config_text)
) STRICT, WITHOUT ROWID;

CREATE TABLE trials (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  kernel_id INTEGER NOT NULL REFERENCES kernels (id),
  space_id INTEGER NOT NULL REFERENCES spaces (id),
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  config_text TEXT NOT NULL,  -- canonical `A=1 B=2`
  config TEXT NOT NULL CHECK (json_valid(config)),
  status TEXT NOT NULL CHECK (status IN ('ok', 'dropped', 'rejected', 'compile_failed', 'launch_failed', 'wrong_result',
                                         'timed_out', 'crashed')),
  stage TEXT NOT NULL CHECK (stage IN ('search', 'finals')),
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  reason TEXT NOT NULL,
  registers INTEGER NOT NULL,
  static_shared_bytes INTEGER NOT NULL,
  constant_bytes INTEGER NOT NULL,
  local_bytes INTEGER NOT NULL,
  local_loads INTEGER NOT NULL,
  local_stores INTEGER NOT NULL,
  instructions INTEGER NOT NULL,
  ffma INTEGER NOT NULL,
  occupancy REAL NOT NULL,
  binary_hash TEXT NOT NULL,
  max_error REAL,  -- infinity stands for not a number
  median_us REAL,
  low_us REAL,
  high_us REAL,
  sample_count INTEGER,
  compile_ms REAL NOT NULL,
  verify_ms REAL NOT NULL,
  measure_ms REAL NOT NULL,
  started_unix_ms INTEGER NOT NULL,
  canary_us REAL,  -- median of the canary kernel around the samples
  clock_scale REAL NOT NULL,  -- median_us, low_us, high_us are the samples' times this
  energy_mj REAL,  -- a launch
  shared_trial_id INTEGER REFERENCES trials (id),  -- the trial of an identical binary whose result this is
  inputs_ms REAL NOT NULL,  -- of verify_ms, for inputs and what the result must be
  load_ms REAL NOT NULL,  -- of verify_ms, for bringing the code to the device
  warm_up_ms REAL NOT NULL,  -- of measure_ms, for launches before the first sample
  evict_ms REAL NOT NULL,  -- of measure_ms, for evicting caches
  sample_ms REAL NOT NULL,  -- of measure_ms, for launches that are timed
  wait_ms REAL NOT NULL,  -- of measure_ms, for the card to be fit to be measured on
  sustained_us REAL,  -- a launch of back-to-back work in the thermal steady state
  CHECK ((status IN ('ok', 'dropped')) = (median_us IS NOT NULL)),
  CHECK ((median_us IS NULL) = (low_us IS NULL)),
  CHECK ((median_us IS NULL) = (high_us IS NULL)),
  CHECK ((median_us IS NULL) = (sample_count IS NULL))
) STRICT;

-- The key of a measurement. The space is not part of it: a value more in the JSON changes nothing that was measured.
CREATE INDEX trials_by_measurement
  ON trials (device_id, toolkit_id, kernel_id, problem_id, stage, config_text);
CREATE INDEX trials_by_session ON trials (session_id);
CREATE INDEX trials_by_problem ON trials (problem_id, status);

-- `mark` says why a sample does not count; NULL: it counts.
CREATE TABLE samples (
  trial_id INTEGER NOT NULL REFERENCES trials (id),
  ordinal INTEGER NOT NULL,
  time_us REAL NOT NULL,
  temperature_c REAL,
  sm_clock_mhz REAL,
  mark TEXT CHECK (mark IN ('thermal_throttle', 'power_throttle', 'clock_drift', 'canary_drift')),
  power_w REAL,
  PRIMARY KEY (trial_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE telemetry (
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions (id),
  unix_ms INTEGER NOT NULL,
  temperature_c REAL,
  sm_clock_mhz REAL,
  memory_clock_mhz REAL,
  power_w REAL,
  throttle_reasons INTEGER,
  governor_state TEXT NOT NULL,
  canary_us REAL
) STRICT;

CREATE INDEX telemetry_by_session ON telemetry (session_id, unix_ms);

-- The decision for each key and objective; the trial belongs to the same key. Of several toolkits of one device, kernel
-- and problem the one decided last is that of the best in the last finals. `baseline_score` is the objective's value
-- of the baseline (millijoules, millijoules times microseconds, microseconds of sustained work), NULL for 'time'.
CREATE TABLE winners (
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  kernel_id INTEGER NOT NULL REFERENCES kernels (id),
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  objective TEXT NOT NULL CHECK (objective IN ('time', 'energy', 'edp', 'sustained')),
  trial_id INTEGER NOT NULL REFERENCES trials (id),
  baseline_median_us REAL,
  baseline_low_us REAL,
  baseline_high_us REAL,
  baseline_count INTEGER,
  baseline_score REAL,
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  decided_unix_ms INTEGER NOT NULL,
  PRIMARY KEY (device_id, toolkit_id, kernel_id, problem_id, objective),
  CHECK ((baseline_median_us IS NULL) = (baseline_low_us IS NULL)),
  CHECK ((baseline_median_us IS NULL) = (baseline_high_us IS NULL)),
  CHECK ((baseline_median_us IS NULL) = (baseline_count IS NULL)),
  CHECK (baseline_score IS NULL OR objective <> 'time')
) STRICT, WITHOUT ROWID;

-- All decisions, also those that do not count any more. A sweep's decision supersedes the earlier ones of its key and
-- objective that the database had then, as what they were made of was known to it. Those of databases that were merged
-- stand beside each other: `winners` has the best founded of them. Rows are never removed, so that whatever is merged
-- with whatever gives the same winner.
CREATE TABLE decisions (
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  kernel_id INTEGER NOT NULL REFERENCES kernels (id),
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  objective TEXT NOT NULL CHECK (objective IN ('time', 'energy', 'edp', 'sustained')),
  trial_id INTEGER NOT NULL REFERENCES trials (id),
  decided_unix_ms INTEGER NOT NULL,
  superseded INTEGER NOT NULL CHECK (superseded IN (0, 1)),
  baseline_median_us REAL,
  baseline_low_us REAL,
  baseline_high_us REAL,
  baseline_count INTEGER,
  baseline_score REAL,
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  PRIMARY KEY (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, decided_unix_ms),
  CHECK ((baseline_median_us IS NULL) = (baseline_low_us IS NULL)),
  CHECK ((baseline_median_us IS NULL) = (baseline_high_us IS NULL)),
  CHECK ((baseline_median_us IS NULL) = (baseline_count IS NULL)),
  CHECK (baseline_score IS NULL OR objective <> 'time')
) STRICT, WITHOUT ROWID;

-- What `pascaline probe` measured of a device. `left_out` is a JSON array of [part, reason].
CREATE TABLE probes (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  device_uuid TEXT NOT NULL,
  program_version TEXT NOT NULL,
  started_unix_ms INTEGER NOT NULL,
  finished_unix_ms INTEGER NOT NULL,
  temperature_c REAL,
  throttled INTEGER NOT NULL CHECK (throttled IN (0, 1)),
  left_out TEXT NOT NULL CHECK (json_valid(left_out))
) STRICT;

CREATE INDEX probes_by_device ON probes (device_id, started_unix_ms);

-- The unit is part of the quantity's name or told by the program; `spread` is relative.
CREATE TABLE probe_values (
  probe_id INTEGER NOT NULL REFERENCES probes (id),
  quantity TEXT NOT NULL,
  median REAL NOT NULL,
  low REAL NOT NULL,
  high REAL NOT NULL,
  spread REAL NOT NULL,
  samples INTEGER NOT NULL,
  steady INTEGER NOT NULL CHECK (steady IN (0, 1)),
  PRIMARY KEY (probe_id, quantity)
) STRICT, WITHOUT ROWID;

-- Loops of FFMA with known register bank conflicts, from which the cost of a conflict follows.
CREATE TABLE probe_chains (
  probe_id INTEGER NOT NULL REFERENCES probes (id),
  ordinal INTEGER NOT NULL,
  variant TEXT NOT NULL,
  conflicts REAL NOT NULL,  -- of each FFMA
  slots REAL NOT NULL,  -- clocks of a scheduler for each FFMA of a warp
  low REAL NOT NULL,
  high REAL NOT NULL,
  samples INTEGER NOT NULL,
  PRIMARY KEY (probe_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Trials with everything they hang on spelled out.
CREATE VIEW trial_details AS
SELECT
  t.*,
  d.kind AS device_kind, d.name AS device, d.compute_capability, d.sm_count, d.memory_bytes, d.limits,
  k.compiler, k.version AS compiler_version, k.target, k.driver_version,
  n.name AS kernel, n.source_hash, s.hash AS space_hash,
  p.text AS problem, p.dimensions, p.types, p.data
FROM trials t
JOIN devices d ON d.id = t.device_id
JOIN toolkits k ON k.id = t.toolkit_id
JOIN kernels n ON n.id = t.kernel_id
JOIN spaces s ON s.id = t.space_id
JOIN problems p ON p.id = t.problem_id;
