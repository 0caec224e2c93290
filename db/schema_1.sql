-- Version 1 of the schema, which with the steps after it says what a database of each version holds; never changed.
-- Times are microseconds unless the name says otherwise; `*_unix_ms` are milliseconds since 1970, UTC.

PRAGMA application_id = 1348563811;  -- "Pasc"
PRAGMA user_version = 1;

-- Identity of a device: two cards of one model share their measurements. The UUID is kept with the session.
CREATE TABLE devices (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('cuda', 'host')),
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

-- `dimensions` and `types` are JSON objects in the order of the search space.
CREATE TABLE problems (
  id INTEGER PRIMARY KEY,
  kernel TEXT NOT NULL,
  text TEXT NOT NULL UNIQUE,
  dimensions TEXT NOT NULL CHECK (json_valid(dimensions)),
  types TEXT NOT NULL CHECK (json_valid(types)),
  flops REAL NOT NULL,
  bytes REAL NOT NULL
) STRICT;

-- Runs of the tuner. Process id, its start and the boot together tell whether a session still runs.
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
  CHECK ((state = 'running') = (finished_unix_ms IS NULL))
) STRICT;

CREATE INDEX sessions_by_device ON sessions (device_id);

-- Configurations on the device right now. One that is still here after its session died took the session with it.
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
  PRIMARY KEY (session_id, kernel_id, problem_id, config_text)
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
  status TEXT NOT NULL CHECK (status IN ('ok', 'rejected', 'compile_failed', 'launch_failed', 'wrong_result',
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
  CHECK ((status = 'ok') = (median_us IS NOT NULL)),
  CHECK ((median_us IS NULL) = (low_us IS NULL)),
  CHECK ((median_us IS NULL) = (high_us IS NULL)),
  CHECK ((median_us IS NULL) = (sample_count IS NULL))
) STRICT;

-- The key of a measurement. The space is not part of it: a value more in the JSON changes nothing that was measured.
CREATE INDEX trials_by_measurement
  ON trials (device_id, toolkit_id, kernel_id, problem_id, stage, config_text);
CREATE INDEX trials_by_session ON trials (session_id);
CREATE INDEX trials_by_problem ON trials (problem_id, status);

CREATE TABLE samples (
  trial_id INTEGER NOT NULL REFERENCES trials (id),
  ordinal INTEGER NOT NULL,
  time_us REAL NOT NULL,
  counted INTEGER NOT NULL CHECK (counted IN (0, 1)),
  temperature_c REAL,
  sm_clock_mhz REAL,
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
  governor_state TEXT NOT NULL
) STRICT;

CREATE INDEX telemetry_by_session ON telemetry (session_id, unix_ms);

-- The decision for each key; the trial belongs to the same key.
CREATE TABLE winners (
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  kernel_id INTEGER NOT NULL REFERENCES kernels (id),
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  trial_id INTEGER NOT NULL REFERENCES trials (id),
  baseline_median_us REAL,
  baseline_low_us REAL,
  baseline_high_us REAL,
  baseline_count INTEGER,
  confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  decided_unix_ms INTEGER NOT NULL,
  PRIMARY KEY (device_id, toolkit_id, kernel_id, problem_id),
  CHECK ((baseline_median_us IS NULL) = (baseline_low_us IS NULL)),
  CHECK ((baseline_median_us IS NULL) = (baseline_high_us IS NULL)),
  CHECK ((baseline_median_us IS NULL) = (baseline_count IS NULL))
) STRICT, WITHOUT ROWID;

-- Trials with everything they hang on spelled out.
CREATE VIEW trial_details AS
SELECT
  t.id, t.session_id, t.device_id, t.toolkit_id, t.kernel_id, t.problem_id,
  d.kind AS device_kind, d.name AS device, d.compute_capability, d.sm_count, d.memory_bytes, d.limits,
  k.compiler, k.version AS compiler_version, k.target, k.driver_version,
  n.name AS kernel, n.source_hash, s.hash AS space_hash,
  p.text AS problem, p.dimensions, p.types,
  t.config, t.config_text, t.status, t.stage, t.is_default, t.reason,
  t.registers, t.static_shared_bytes, t.constant_bytes, t.local_bytes, t.local_loads, t.local_stores,
  t.instructions, t.ffma, t.occupancy, t.binary_hash, t.max_error,
  t.median_us, t.low_us, t.high_us, t.sample_count,
  t.compile_ms, t.verify_ms, t.measure_ms, t.started_unix_ms
FROM trials t
JOIN devices d ON d.id = t.device_id
JOIN toolkits k ON k.id = t.toolkit_id
JOIN kernels n ON n.id = t.kernel_id
JOIN spaces s ON s.id = t.space_id
JOIN problems p ON p.id = t.problem_id;
