-- Takes a database from version 5 of the schema to version 6; once shipped it is never changed.

-- Where the time of a trial goes; not known of earlier ones.
ALTER TABLE trials ADD COLUMN load_ms REAL NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN warm_up_ms REAL NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN evict_ms REAL NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN sample_ms REAL NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN wait_ms REAL NOT NULL DEFAULT 0;

-- Configurations are dropped by a test instead of at a multiple of the best time: a plan that dropped none goes on so.
ALTER TABLE plans RENAME COLUMN abort_factor TO race_error;
UPDATE plans SET race_error = CASE WHEN race_error > 0 THEN 0.01 ELSE 0 END;
