-- Takes a database from version 2 of the schema to version 3; once shipped it is never changed.

CREATE TABLE imports (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('merge', 'results')),
  source TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  imported_unix_ms INTEGER NOT NULL,
  program_version TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX imports_of_results ON imports (content_hash) WHERE kind = 'results';
ALTER TABLE sessions ADD COLUMN import_id INTEGER REFERENCES imports (id);

-- SQLite cannot change a check, so the table is made anew.
DROP VIEW trial_details;
CREATE TABLE renewed_devices (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('cuda', 'host', 'foreign')),
  name TEXT NOT NULL,
  compute_capability TEXT NOT NULL,
  sm_count INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  limits TEXT NOT NULL,
  UNIQUE (kind, name, compute_capability, sm_count)
) STRICT;
INSERT INTO renewed_devices SELECT id, kind, name, compute_capability, sm_count, memory_bytes, limits FROM devices;
DROP TABLE devices;
ALTER TABLE renewed_devices RENAME TO devices;

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
  t.compile_ms, t.verify_ms, t.measure_ms, t.started_unix_ms,
  t.canary_us, t.clock_scale, t.energy_mj, t.shared_trial_id
FROM trials t
JOIN devices d ON d.id = t.device_id
JOIN toolkits k ON k.id = t.toolkit_id
JOIN kernels n ON n.id = t.kernel_id
JOIN spaces s ON s.id = t.space_id
JOIN problems p ON p.id = t.problem_id;
