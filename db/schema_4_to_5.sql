-- Takes a database from version 4 of the schema to version 5; once shipped it is never changed.

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
