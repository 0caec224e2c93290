-- Takes a database from version 4 of the schema to version 5; once shipped it is never changed.

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

-- One session may have a configuration on the device that several compilers built: the toolkit belongs to the key.
CREATE TABLE attempts_by_toolkit (
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
  tries INTEGER NOT NULL DEFAULT 1,
  boot_id TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (session_id, toolkit_id, kernel_id, problem_id, config_text)
) STRICT, WITHOUT ROWID;

INSERT INTO attempts_by_toolkit (session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, config_text,
  config, stage, is_default, started_unix_ms, tries, boot_id)
SELECT session_id, device_id, toolkit_id, kernel_id, space_id, problem_id, config_text, config, stage, is_default,
  started_unix_ms, tries, boot_id FROM attempts;

DROP TABLE attempts;
ALTER TABLE attempts_by_toolkit RENAME TO attempts;
