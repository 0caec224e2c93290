#!/usr/bin/env python3
"""Writes the winners of a tuned database as JSON, the form of search_spaces/defaults/.

  scripts/export_winners.py --db tuned.db --output search_spaces/defaults/nvidia-h200-sm_61.json

One device, target and version of each kernel's source only: the newest where the database holds several.
"""
import argparse
import datetime
import json
import pathlib
import sqlite3
import sys

WINNERS = """
SELECT p.text AS problem, p.kernel, t.config_text AS config, t.median_us AS time_us, w.baseline_median_us AS default_us,
       w.confidence, t.registers, t.local_loads + t.local_stores AS local_accesses, t.instructions, t.ffma,
       n.source_hash, w.decided_unix_ms, w.device_id, w.toolkit_id, w.kernel_id
FROM winners w JOIN trials t ON t.id = w.trial_id JOIN problems p ON p.id = w.problem_id
JOIN kernels n ON n.id = w.kernel_id ORDER BY w.decided_unix_ms
"""
SHOWN = ("problem", "config", "time_us", "default_us", "confidence", "registers", "local_accesses", "instructions", "ffma")


def one_row(database, table, row):
    return dict(database.execute(f"SELECT * FROM {table} WHERE id = ?", (row,)).fetchone())


def newest(rows):
    """Those of the device, toolkit and kernel source that decided last."""
    device, toolkit = rows[-1]["device_id"], rows[-1]["toolkit_id"]
    source = {row["kernel"]: row["kernel_id"] for row in rows}
    return [row for row in rows
            if (row["device_id"], row["toolkit_id"], row["kernel_id"]) == (device, toolkit, source[row["kernel"]])]


def kernels(database, rows):
    found = {}
    for row in rows:
        entry = found.setdefault(row["kernel"], {"source": row["source_hash"][:8], "shapes": 0})
        entry["shapes"] += 1
        entry["trials"] = database.execute("SELECT count(*) FROM trials WHERE kernel_id = ? AND stage = 'search'",
                                           (row["kernel_id"],)).fetchone()[0]
    return found


def shortened(row):
    return {name: float(f"{row[name]:.4g}") if isinstance(row[name], float) else row[name] for name in SHOWN}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", required=True, type=pathlib.Path)
    parser.add_argument("--output", required=True, type=pathlib.Path)
    options = parser.parse_args()
    if not options.db.exists():
        sys.exit(f"{options.db}: no such file")
    database = sqlite3.connect(f"file:{options.db}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    rows = database.execute(WINNERS).fetchall()
    if not rows:
        sys.exit(f"{options.db}: no winners")
    rows = sorted(newest(rows), key=lambda row: row["problem"])
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
