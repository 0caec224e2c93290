-- Takes a database from version 3 of the schema to version 4; once shipped it is never changed.

-- Words to run a command with have no place in a file that may come from anybody.
ALTER TABLE sessions DROP COLUMN arguments;

-- What a run set out to do, to go on with it. Every value is checked as that of a command line before it is used. There
-- are no words of a command here and no paths to open. A run that was taken over from another file has no plan.
CREATE TABLE plans (
  run_uuid TEXT NOT NULL PRIMARY KEY,
  devices TEXT NOT NULL,  -- cuda:0,cuda:1
  target TEXT NOT NULL,  -- empty: the devices' own
  nvrtc TEXT NOT NULL,  -- a version; empty: not asked for
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
  abort_factor REAL NOT NULL,
  finalists INTEGER NOT NULL,
  rounds INTEGER NOT NULL,
  preheat_s REAL NOT NULL,
  max_temperature_c REAL,
  drift REAL NOT NULL,
  pause_limit_s REAL NOT NULL,
  tolerate_power INTEGER NOT NULL CHECK (tolerate_power IN (0, 1)),
  tolerate_thermal INTEGER NOT NULL CHECK (tolerate_thermal IN (0, 1))
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
  calls REAL NOT NULL CHECK (calls >= 0),  -- by the model, in all its phases
  label TEXT NOT NULL,
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

-- Paths that a run was begun with, to be shown: what is gone on with opens only what its own command line names.
CREATE TABLE plan_paths (
  run_uuid TEXT NOT NULL REFERENCES plans (run_uuid),
  option TEXT NOT NULL CHECK (option IN ('--kernels', '--spaces', '--nvrtc', '--cache', '--log', '--sensors')),
  value TEXT NOT NULL,
  PRIMARY KEY (run_uuid, option)
) STRICT, WITHOUT ROWID;

ALTER TABLE trials ADD COLUMN inputs_ms REAL NOT NULL DEFAULT 0;

-- With every column of a trial, whichever they are.
DROP VIEW trial_details;
CREATE VIEW trial_details AS
SELECT
  t.*,
  d.kind AS device_kind, d.name AS device, d.compute_capability, d.sm_count, d.memory_bytes, d.limits,
  k.compiler, k.version AS compiler_version, k.target, k.driver_version,
  n.name AS kernel, n.source_hash, s.hash AS space_hash,
  p.text AS problem, p.dimensions, p.types
FROM trials t
JOIN devices d ON d.id = t.device_id
JOIN toolkits k ON k.id = t.toolkit_id
JOIN kernels n ON n.id = t.kernel_id
JOIN spaces s ON s.id = t.space_id
JOIN problems p ON p.id = t.problem_id;
