-- Takes a database from version 6 of the schema to version 7; once shipped it is never changed.

-- Time of a launch once the card is as warm as back-to-back work makes it; not known of earlier trials.
ALTER TABLE trials ADD COLUMN sustained_us REAL;

-- What a run tunes for beside time; earlier ones tuned for time.
ALTER TABLE plans ADD COLUMN objective TEXT NOT NULL DEFAULT 'time' CHECK (objective IN ('time', 'energy', 'edp', 'sustained'));

-- Whether a run makes way for who uses the machine; earlier ones did not.
ALTER TABLE plans ADD COLUMN polite INTEGER NOT NULL DEFAULT 0 CHECK (polite IN (0, 1));

-- By what share of the best a trial must be expected to be faster for a search to go on; earlier ones went on.
ALTER TABLE plans ADD COLUMN min_gain REAL NOT NULL DEFAULT 0;

-- Whether time that a run's searches leave goes to finals again, neighbours of winners and shapes in between; earlier
-- runs used it for none of these.
ALTER TABLE plans ADD COLUMN deepen INTEGER NOT NULL DEFAULT 0 CHECK (deepen IN (0, 1));

-- A problem may have a winner by each objective: the objective belongs to the key. Earlier ones are by time.
CREATE TABLE winners_by_objective (
  device_id INTEGER NOT NULL REFERENCES devices (id),
  toolkit_id INTEGER NOT NULL REFERENCES toolkits (id),
  kernel_id INTEGER NOT NULL REFERENCES kernels (id),
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  objective TEXT NOT NULL DEFAULT 'time' CHECK (objective IN ('time', 'energy', 'edp', 'sustained')),
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

INSERT INTO winners_by_objective (device_id, toolkit_id, kernel_id, problem_id, trial_id, baseline_median_us,
  baseline_low_us, baseline_high_us, baseline_count, confidence, decided_unix_ms)
SELECT device_id, toolkit_id, kernel_id, problem_id, trial_id, baseline_median_us,
  baseline_low_us, baseline_high_us, baseline_count, confidence, decided_unix_ms FROM winners;

DROP TABLE winners;
ALTER TABLE winners_by_objective RENAME TO winners;
