#!/usr/bin/env python3
"""Makes shards of a sweep as several machines would leave them, merges them, and prints how long that took.

  bench/merge_scale.py --program build/release/bin/pascaline --shards 64 --trials 200000 --folder /tmp/shards

Each shard is a database of one session on one card, with problems that all shards have in common (`--apart`: that no
other has). The trials are copies of what a real sweep of the emulated device stored, with other configurations, times
and numbers of samples: one in four failed and has none, the others have as many as `--samples`. The first shard is made
by SQL, the others are copies of it under other uuids. Prints one line of JSON: trials, samples, bytes, seconds for
making and for merging, the processor's seconds for merging, the largest resident memory, and trials per second.
"""

import argparse
import json
import pathlib
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/pascaline", help="the program to measure")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--trials", type=int, default=2000, help="of each shard")
    parser.add_argument("--samples", type=int, default=8, help="of each trial that did not fail")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--apart", action="store_true", help="no problem is in two shards")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for the databases; removed at the end")
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    return parser.parse_args()


def first_shard(options, path):
    """An empty database of the program's own making, filled by SQL: a sweep of so many trials would take days."""
    subprocess.run([options.program, "sweep", "--kernel", "softmax", "--device", "emulator", "--problem", "ROWS=8,WIDTH=64",
                    "--trials", "2", "--quiet", "--db", str(path)], check=True, stdout=subprocess.DEVNULL)
    database = sqlite3.connect(path)
    columns = [row[1] for row in database.execute("PRAGMA table_info(trials)")]
    changed = {"id": "i", "problem_id": f"1000 + i % {options.problems}", "shared_trial_id": "NULL", "is_default": "0",
               "config_text": "'BLOCK=' || (32 << i % 6) || ' ITEMS=' || i || ' UNROLL=' || (i % 2) || ' VECTOR=4'",
               "config": "'{\"BLOCK\":' || (32 << i % 6) || ',\"ITEMS\":' || i || ',\"UNROLL\":' || iif(i % 2, 'true',"
                         " 'false') || ',\"VECTOR\":4}'",
               "status": "iif(i % 4 = 3, 'compile_failed', 'ok')", "reason": "iif(i % 4 = 3, 'too many registers', '')",
               "median_us": "iif(i % 4 = 3, NULL, 100.5 + i % 997)", "low_us": "iif(i % 4 = 3, NULL, 99.5 + i % 997)",
               "high_us": "iif(i % 4 = 3, NULL, 101.5 + i % 997)",
               "sample_count": f"iif(i % 4 = 3, NULL, {options.samples})",
               "stage": "'search'", "started_unix_ms": "started_unix_ms + 40 * i", "binary_hash": "printf('%032x', i)"}
    values = ", ".join(changed.get(column, column) for column in columns)
    database.executescript(f"""
        PRAGMA synchronous = OFF;
        CREATE TEMP TABLE one AS SELECT * FROM trials WHERE status = 'ok' LIMIT 1;
        BEGIN;
        DELETE FROM winners; DELETE FROM decisions; DELETE FROM samples; DELETE FROM trials; DELETE FROM telemetry;
        INSERT INTO problems SELECT 1000 + value, kernel, 'softmax ROWS=' || (1000 + value) || ' WIDTH=64 STORAGE=float32',
          json_object('ROWS', 1000 + value, 'WIDTH', 64), types, flops, bytes FROM (SELECT * FROM problems LIMIT 1),
          (WITH RECURSIVE n(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < {options.problems - 1})
          SELECT value FROM n);
        COMMIT;
        """)
    database.executescript(f"""
        BEGIN;
        INSERT INTO trials SELECT {values} FROM one, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
          WHERE i < {options.trials}) SELECT i FROM n);
        INSERT INTO samples SELECT id, s, median_us + s, NULL, NULL, NULL, NULL FROM trials, (WITH RECURSIVE n(s) AS
          (SELECT 0 UNION ALL SELECT s + 1 FROM n WHERE s < {options.samples - 1}) SELECT s FROM n) WHERE status = 'ok';
        INSERT INTO decisions (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, decided_unix_ms,
          superseded, confidence) SELECT device_id, toolkit_id, kernel_id, problem_id, 'time', min(id), 1, 0, 1 FROM trials
          WHERE status = 'ok' GROUP BY problem_id;
        INSERT INTO winners (device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, confidence,
          decided_unix_ms) SELECT device_id, toolkit_id, kernel_id, problem_id, objective, trial_id, 1, 1 FROM decisions;
        COMMIT;
        """)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    samples = database.execute("SELECT count(*) FROM samples").fetchone()[0]
    database.close()
    return samples


def other_shard(options, first, path, number):
    shutil.copyfile(first, path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    database.execute("UPDATE sessions SET uuid = ?, run_uuid = ?", (str(uuid.uuid4()), str(uuid.uuid4())))
    if options.apart:
        # Dimensions of a problem are part of its text, which is unique.
        database.execute("UPDATE problems SET text = text || ?, dimensions = json_set(dimensions, '$.ROWS', 1000000 * ? + "
                         "json_extract(dimensions, '$.ROWS'))", (f"{number:03}", number))
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def main():
    options = read_options()
    options.folder.mkdir(parents=True)
    try:
        begin = time.monotonic()
        shards = [options.folder / f"shard{number:02}.db" for number in range(options.shards)]
        samples = first_shard(options, shards[0]) * options.shards
        for number in range(1, options.shards):
            other_shard(options, shards[0], shards[number], number)
        made = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        merged = options.folder / "all.db"
        command = [options.program, "merge", *map(str, shards), "--db", str(merged), "--json"]
        result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        seconds = time.monotonic() - made
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = sum(file["trials"]["new"] for file in result["merged"])
        if taken != options.shards * options.trials or sum(file["samples"] for file in result["merged"]) != samples:
            sys.exit(f"{taken} trials were merged instead of {options.shards * options.trials}")
        print(json.dumps({
            "shards": options.shards, "trials": taken, "samples": samples,
            "shard_bytes": sum(path.stat().st_size for path in shards), "merged_bytes": merged.stat().st_size,
            "made_s": round(made - begin, 1), "merged_s": round(seconds, 1),
            "processor_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
            "resident_mib": after.ru_maxrss // 1024,
            "trials_per_s": round(taken / seconds)}))
    finally:
        if not options.keep:
            shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
