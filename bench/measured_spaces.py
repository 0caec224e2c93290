#!/usr/bin/env python3
"""Makes recorded spaces of what several sweeps measured of some problems, as tables that `transfer_between_cards` reads.

Each problem is FILE=TEXT, as matmul__f16w="matmul M=512 ... WEIGHT=float16": the name of the table to be made and the
problem's text in the databases. A configuration's time is the median over its usable search trials in all of them, whatever
compiled it. So the databases should be of one device.
"""

import argparse
import csv
import sqlite3
import statistics
from pathlib import Path

QUERY = """SELECT t.config_text, t.median_us FROM trials t JOIN problems p ON p.id = t.problem_id
           WHERE p.text = ? AND t.status = 'ok' AND t.stage = 'search'"""


def times_of(databases: list[Path], problem: str) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for file in databases:
        database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        for config, median_us in database.execute(QUERY, (problem,)):
            times.setdefault(config, []).append(median_us)
        database.close()
    return {config: statistics.median(of_config) for config, of_config in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("databases", nargs="+", type=Path, metavar="DB")
    parser.add_argument("--problem", action="append", required=True, metavar="FILE=TEXT")
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for wanted in arguments.problem:
        name, problem = wanted.split("=", 1)
        rows = []
        for config, time_us in sorted(times_of(arguments.databases, problem).items()):
            settings = dict(word.split("=", 1) for word in config.split())
            rows.append({**settings, "time_ms": f"{time_us / 1000:.9g}", "status": "ok", "eval_cost_ms": 1})
        if not rows:
            parser.error(f"no usable trial of '{problem}'")
        file = arguments.out / f"{name}.csv"
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"{file}: {len(rows)} configurations")


if __name__ == "__main__":
    main()
