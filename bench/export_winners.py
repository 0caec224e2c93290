#!/usr/bin/env python3
"""Writes the winners of a tuned database as JSON, the form of bench/winners/.

  bench/export_winners.py --db tuned.db --output bench/winners/nvidia-h200-sm_61.json

Of one device and toolkit only, those of the last decision, and of the newest source of each kernel on them. `source`
is the hash of that source, `default` the default configuration (null if it was measured on no shape), `trials` counts
those of the search. With --no-local-memory the fastest configuration without any takes the place of a winner that has some; its
confidence, which was the winner's, is null.
"""
import argparse
import datetime
import json
import pathlib
import sqlite3
import sys

WINNERS = """
SELECT p.text AS problem, p.kernel, t.config_text AS config, t.median_us AS time_us, w.baseline_median_us AS default_us,
       w.confidence, t.registers, t.local_loads + t.local_stores AS local_accesses, t.local_bytes, t.instructions, t.ffma,
       n.source_hash, w.decided_unix_ms, w.problem_id, w.device_id, w.toolkit_id, w.kernel_id
FROM winners w JOIN trials t ON t.id = w.trial_id JOIN problems p ON p.id = w.problem_id
JOIN kernels n ON n.id = w.kernel_id ORDER BY w.decided_unix_ms
"""
# A configuration's finals, where it has any, are measured better than its trial of the search.
FASTEST_WITHOUT = """
SELECT config, time_us, registers, local_accesses, instructions, ffma FROM (
  SELECT config_text AS config, median_us AS time_us, registers, local_loads + local_stores AS local_accesses,
         instructions, ffma, row_number() OVER (PARTITION BY config_text ORDER BY stage = 'finals' DESC, id DESC) AS place
  FROM trials WHERE device_id = ? AND toolkit_id = ? AND kernel_id = ? AND problem_id = ? AND median_us IS NOT NULL
  AND local_loads + local_stores + local_bytes = 0)
WHERE place = 1 ORDER BY time_us LIMIT 1
"""
SHOWN = ("problem", "config", "time_us", "default_us", "confidence", "registers", "local_accesses",
         "instructions", "ffma")
KEY = "device_id = ? AND toolkit_id = ? AND kernel_id = ?"


def one_row(database, table, row):
    return dict(database.execute(f"SELECT * FROM {table} WHERE id = ?", (row,)).fetchone())


def newest(rows):
    """Those of the device and toolkit that decided last, and of the source of each kernel that did so on them."""
    device, toolkit = rows[-1]["device_id"], rows[-1]["toolkit_id"]
    rows = [row for row in rows if (row["device_id"], row["toolkit_id"]) == (device, toolkit)]
    source = {row["kernel"]: row["kernel_id"] for row in rows}
    return [row for row in rows if row["kernel_id"] == source[row["kernel"]]]


def kernels(database, rows):
    found = {}
    for row in rows:
        if row["kernel"] not in found:
            key = (row["device_id"], row["toolkit_id"], row["kernel_id"])
            trials = database.execute(f"SELECT count(*) FROM trials WHERE {KEY} AND stage = 'search'",
                                      key).fetchone()[0]
            default = database.execute(f"SELECT config_text FROM trials WHERE {KEY} AND is_default = 1 "
                                       "ORDER BY id DESC LIMIT 1", key).fetchone()
            found[row["kernel"]] = {"source": row["source_hash"], "default": default[0] if default else None,
                                    "shapes": 0, "trials": trials}
        found[row["kernel"]]["shapes"] += 1
    return found


def without_local_memory(database, row):
    if row["local_accesses"] + row["local_bytes"] == 0:
        return row
    key = (row["device_id"], row["toolkit_id"], row["kernel_id"], row["problem_id"])
    found = database.execute(FASTEST_WITHOUT, key).fetchone()
    if found is None:
        sys.exit(f"{row['problem']}: every variant that was measured touches local memory")
    return {**dict(row), **dict(found), "confidence": None}


def shortened(row):
    return {name: float(f"{row[name]:.4g}") if isinstance(row[name], float) else row[name] for name in SHOWN}


def export(options):
    database = sqlite3.connect(f"file:{options.db}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    rows = database.execute(WINNERS).fetchall()
    if not rows:
        sys.exit(f"{options.db}: no winners")
    rows = sorted(newest(rows), key=lambda row: row["problem"])
    if options.no_local_memory:
        rows = [without_local_memory(database, row) for row in rows]
    device = one_row(database, "devices", rows[0]["device_id"])
    toolkit = one_row(database, "toolkits", rows[0]["toolkit_id"])
    last = max(row["decided_unix_ms"] for row in rows)
    head = {"schema": 1,
            "device": {name: device[name] for name in ("name", "compute_capability", "sm_count")},
            "target": toolkit["target"], "compiler": f"{toolkit['compiler']} {toolkit['version']}",
            "driver": toolkit["driver_version"],
            "tuned": datetime.datetime.fromtimestamp(last / 1000, datetime.timezone.utc).date().isoformat(),
            "kernels": kernels(database, rows)}
    lines = ",\n".join("  " + json.dumps(shortened(row)) for row in rows)
    options.output.write_text(json.dumps(head, indent=1)[:-2] + ',\n "winners": [\n' + lines + "\n ]\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", required=True, type=pathlib.Path)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--no-local-memory", action="store_true", help="no winner that touches local memory")
    options = parser.parse_args()
    if not options.db.is_file():
        sys.exit(f"{options.db}: no such file")
    try:
        export(options)
    except sqlite3.Error as error:
        sys.exit(f"{options.db}: {error}")
    except OSError as error:
        sys.exit(f"{options.output}: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
