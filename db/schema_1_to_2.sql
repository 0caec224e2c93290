-- Takes a database from version 1 of the schema to version 2; once shipped it is never changed.

ALTER TABLE sessions ADD COLUMN run_uuid TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN arguments TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(arguments));
ALTER TABLE sessions ADD COLUMN spent_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN progress TEXT CHECK (progress IS NULL OR json_valid(progress));
UPDATE sessions SET run_uuid = uuid;
CREATE INDEX sessions_by_run ON sessions (run_uuid);

ALTER TABLE attempts ADD COLUMN tries INTEGER NOT NULL DEFAULT 1;
ALTER TABLE attempts ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';

DROP VIEW trial_details;
ALTER TABLE trials ADD COLUMN canary_us REAL;
ALTER TABLE trials ADD COLUMN clock_scale REAL NOT NULL DEFAULT 1;
ALTER TABLE trials ADD COLUMN energy_mj REAL;
ALTER TABLE trials ADD COLUMN shared_trial_id INTEGER REFERENCES trials (id);

-- Version 1 did not say why a sample did not count; its only reason was a clock off the usual.
ALTER TABLE samples ADD COLUMN mark TEXT
  CHECK (mark IN ('thermal_throttle', 'power_throttle', 'clock_drift', 'canary_drift'));
ALTER TABLE samples ADD COLUMN power_w REAL;
UPDATE samples SET mark = 'clock_drift' WHERE counted = 0;
ALTER TABLE samples DROP COLUMN counted;

ALTER TABLE telemetry ADD COLUMN canary_us REAL;

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
