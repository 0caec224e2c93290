-- Takes a database from version 8 of the schema to version 9; once shipped it is never changed.

-- Which part of its space a run searches for a problem that several machines share; earlier ones searched all of it.
ALTER TABLE plan_problems ADD COLUMN parts INTEGER NOT NULL DEFAULT 1 CHECK (parts BETWEEN 1 AND 10000);
ALTER TABLE plan_problems ADD COLUMN part INTEGER NOT NULL DEFAULT 1 CHECK (part BETWEEN 1 AND parts);
