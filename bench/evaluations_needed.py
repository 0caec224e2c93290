#!/usr/bin/env python3
"""Trials that searches needed to come within some per cent of the best of random trials.

  bench/evaluations_needed.py --random random.db [random2.db ...] --searched auto1.db [auto2.db ...] [--within 3]

Each database is one that `pascaline sweep` wrote; each of --searched holds one search a problem. The best of a problem
is the fastest `ok` trial of the --random ones, over all of them. Trials are counted in the order they were stored,
the default configuration and failed ones included.
"""
import argparse
import sqlite3
import statistics
import sys

SELECT = "SELECT problem, status, median_us FROM trial_details WHERE stage = 'search' ORDER BY id"


def trials(file):
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    by_problem = {}
    for problem, status, median_us in connection.execute(SELECT):
        by_problem.setdefault(problem, []).append(median_us if status == "ok" else None)
    connection.close()
    return by_problem


def needed(times, limit):
    return next((i + 1 for i, time in enumerate(times) if time is not None and time <= limit), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", nargs="+", required=True)
    parser.add_argument("--searched", nargs="+", required=True)
    parser.add_argument("--within", type=float, default=3, help="per cent (default 3)")
    arguments = parser.parse_args()
    best, counts = {}, {}
    for file in arguments.random:
        for problem, times in trials(file).items():
            usable = [time for time in times if time is not None]
            if usable:
                best[problem] = min([best.get(problem, usable[0])] + usable)
            counts[problem] = counts.get(problem, 0) + len(times)
    rows, by_kernel = {}, {}
    for file in arguments.searched:
        for problem, times in trials(file).items():
            if problem not in best:
                sys.exit(f"{file}: no random trials of {problem}")
            count = needed(times, best[problem] * (1 + arguments.within / 100))
            found = min(time for time in times if time is not None) / best[problem]
            rows.setdefault(problem, []).append((count, len(times), found))
            by_kernel.setdefault(problem.split()[0], []).append(float("inf") if count is None else count)
    print(f"{'trials needed':28} {'best / best random':24} random  problem")
    for problem, runs in rows.items():
        counts_text = " ".join(str(count) if count else f">{made}" for count, made, _ in runs)
        found_text = " ".join(f"{found:.3f}" for _, _, found in runs)
        print(f"{counts_text:28} {found_text:24} {counts[problem]:6}  {problem}")
    for kernel, values in by_kernel.items():
        print(f"{kernel}: median {statistics.median(values):g}, most {max(values):g}, of {len(values)} searches")


if __name__ == "__main__":
    main()
