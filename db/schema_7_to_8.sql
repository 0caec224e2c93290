-- Takes a database from version 7 of the schema to version 8; once shipped it is never changed.

-- All decisions, to choose the winner from when databases are merged; of the earlier ones only the winners are known.
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

INSERT INTO decisions (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, decided_unix_ms, superseded,
  baseline_median_us, baseline_low_us, baseline_high_us, baseline_count, baseline_score, confidence)
SELECT device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, decided_unix_ms, 0,
  baseline_median_us, baseline_low_us, baseline_high_us, baseline_count, baseline_score, confidence FROM winners;
