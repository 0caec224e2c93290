#!/usr/bin/env python3
"""Tries to break the program: kills, damaged files, hostile databases, full disks, abuse of the live report.

    tests/robustness/campaign.py --program build/dev/bin/pascaline               # an hour or so
    tests/robustness/campaign.py --program build/dev/bin/pascaline --only kills --count 1000
    tests/robustness/campaign.py --program … --only files --seed 7 --first 123 --count 1     # one case again

A case depends on the seed, the part and its number only. Exit code 0: something was tried and no fault found; 1: faults;
77: nothing could be tried here. Cases that cannot be tried are counted apart. The folder of a case that failed is kept and
named.
"""

import argparse
import concurrent.futures
import os
import platform
import sys
import tempfile
import threading
import time
import traceback

try:
    import sqlite3  # noqa: F401, Debian's python3-minimal lacks it
except ImportError:
    print("skipped: this Python has no sqlite3")
    sys.exit(77)

from files import Files
from full_disk import FullDisk
from hostile import Hostile
from http_abuse import HttpAbuse
from kills import Kills
from workbench import Failure, Settings, Skipped, Workbench, random_of, remove_folder, temporary_folder

PARTS = (Kills, Files, Hostile, FullDisk, HttpAbuse)


class Result:
    """What came of a part."""

    def __init__(self, part):
        self.part = part
        self.tried = 0
        self.skips = 0
        self.failures = []
        self.skipped = ""
        self.seconds = 0.0
        self.counts = {}
        self.lock = threading.Lock()

    def tally(self, what, number):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + number

    def skip(self, reason):
        with self.lock:
            self.skipped = str(reason)
            self.skips += 1

    def fail(self, number, text, rest=""):
        with self.lock:
            self.failures.append((number, text))
            place = ", before the first case" if number < 0 else f" {number}"
            print(f"FAILED {self.part.name}{place}: {text}{rest}", flush=True)


def run_case(part, settings, options, result, number):
    folder = temporary_folder(options.folder)
    bench = Workbench(settings, folder, number)
    failed = skipped = False
    try:
        bench.random = random_of(options.seed, part.name, number)
        part.case(bench, bench.random, result.tally)
    except Skipped as reason:
        skipped = True
        result.skip(reason)
    except Failure as failure:
        failed = True
        result.fail(number, str(failure), f"\n      again: --only {part.name} --seed {options.seed} --first {number} "
                                          f"--count 1; its folder: {folder}")
    except Exception:  # of the campaign itself: told like a fault, with where it was
        failed = True
        result.fail(number, traceback.format_exc())
    finally:
        bench.kill_all()
        with result.lock:
            result.tried += not skipped
        if not failed:
            remove_folder(folder)


def run_part(part, settings, options):
    result = Result(part)
    begin = time.monotonic()
    count = options.count if options.count is not None else part.counts["short" if options.short else "long"]
    folder = temporary_folder(options.folder)
    try:
        part.prepare(Workbench(settings, folder))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(run_case, part, settings, options, result, number)
                         for number in range(options.first, options.first + count)]:
                done.result()
    except Skipped as reason:
        result.skipped = str(reason)
    except Failure as failure:
        result.fail(-1, str(failure))
    except Exception:  # as above: the other parts go on, and what was found until then is shown
        result.fail(-1, traceback.format_exc())
    finally:
        remove_folder(folder)
    result.seconds = time.monotonic() - begin
    return result


def print_table(results):
    print(f"\n{platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}\n")
    print("| part | tried | failed | skipped | minutes | of it |\n|---|---:|---:|---:|---:|---|")
    for result in results:
        counts = ", ".join(f"{what} {number}" for what, number in sorted(result.counts.items()))
        note = "; ".join(text for text in (counts, result.skipped and f"skipped: {result.skipped}") if text)
        print(f"| {result.part.title} | {result.tried} | {len(result.failures)} | {result.skips} | "
              f"{result.seconds / 60:.1f} | {note} |")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the pascaline to try")
    parser.add_argument("--seed", default=str(int(time.time())), help="of all that is random; default: the time")
    parser.add_argument("--only", default="", help="parts, divided by commas: " + ", ".join(p.name for p in PARTS))
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, help="cases of each part; default: hundreds or thousands")
    parser.add_argument("--short", action="store_true", help="few cases, for every change")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="cases at once")
    parser.add_argument("--seconds", type=float, default=60, help="after which a command hangs")
    parser.add_argument("--memory", type=int, default=2048, help="MiB that no command may need")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where cases have their folders")
    parser.add_argument("--cache", help="folder of compiled kernels; default: a new one")
    options = parser.parse_args()
    known = {part.name for part in PARTS}
    options.only = [name for name in options.only.split(",") if name] or [part.name for part in PARTS]
    if unknown := set(options.only) - known:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    return options


def exit_code(results):
    if any(result.failures for result in results):
        return 1
    return 0 if any(result.tried for result in results) else 77


def main():
    options = read_options()
    print(f"seed {options.seed}", flush=True)
    own_cache = options.cache or temporary_folder(options.folder)
    settings = Settings(options.program, own_cache, options.seconds, options.memory)
    results = []
    try:
        for part in PARTS:
            if part.name in options.only:
                results.append(run_part(part(), settings, options))
    finally:
        if not options.cache:
            remove_folder(own_cache)
    print_table(results)
    return exit_code(results)


if __name__ == "__main__":
    sys.exit(main())
