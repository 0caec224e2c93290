#!/usr/bin/env python3
"""Runs all tests again and again under load, and tells which failed how often: those that depend on time or neighbours.

    tests/robustness/repeat_tests.py build/dev --times 10 --parallel 16 --load 16
    tests/robustness/repeat_tests.py dev --times 50 --only 'Sweep|CompilePool' --load 32

The first argument is a build folder, or a preset's name, which stands for build/NAME. What failing tests printed is kept
in a folder, a file for each failure. A test that could not be started failed, too; those that skipped themselves are
counted apart. The load is stress-ng's where it is installed, else busy loops. Exit code 0: tests ran and none failed; 1:
some did, or none ran.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUSY = "while True: pass"


class Load:
    """Processes that keep processors busy as long as this is open."""

    def __init__(self, processors):
        self.processes = []
        self.processors = processors

    def __enter__(self):
        if self.processors > 0:
            stress = shutil.which("stress-ng")
            commands = ([[stress, "--cpu", str(self.processors), "--quiet"]] if stress else
                        [[sys.executable, "-c", BUSY]] * self.processors)
            self.processes = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                              for words in commands]
            print(f"load: {self.processors} processors, by {'stress-ng' if stress else 'busy loops'}", flush=True)
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def build_folder(name):
    for folder in (name, os.path.join(SOURCE, "build", name)):
        if os.path.exists(os.path.join(folder, "CTestTestfile.cmake")):
            return os.path.abspath(folder)
    sys.exit(f"repeat_tests.py: {name} is neither a build folder with tests nor a preset that was built")


def file_name(test):
    return re.sub(r"[^A-Za-z0-9_.-]", "_", test)[:150]


def named(test, output):
    """What failed: the test, or where it runs many cases in one process, those of them that its output says failed."""
    cases = sorted(set(re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", output, re.M)))
    return [f"{test}: {case}" for case in cases if case != test] or [test]


def outcome_of(case):
    """How CTest says that a test ended: passed, failed, skipped or not started; and why."""
    status = case.get("status")
    if status == "run":
        return "passed", ""
    if status == "disabled":
        return "skipped", "disabled"
    reason = next((case.find(kind).get("message", "") for kind in ("failure", "skipped") if case.find(kind) is not None), "")
    if status == "fail":
        return "failed", reason
    # A test that skips itself ran and says so; one whose program is missing, or that needs another that failed, did not.
    return ("skipped" if reason.startswith("SKIP_") else "not started"), reason or f"CTest says '{status}'"


def run_once(options, folder, number, kept):
    """Returns how many tests ran and how many skipped themselves, and those that failed with why."""
    report = os.path.join(kept, f"run_{number}.xml")
    words = ["ctest", "--test-dir", folder, "-j", str(options.parallel), "--output-junit", report, "--quiet",
             "--test-output-size-failed", "1000000", "--schedule-random"]
    for option, value in (("-R", options.only), ("-E", options.without), ("-L", options.label), ("-LE", options.no_label)):
        words += [option, value] if value else []
    ended = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if not os.path.exists(report):
        sys.exit("repeat_tests.py: ctest wrote no report: " + ended.stderr.decode(errors="replace"))
    ran, skipped, failed = 0, 0, {}
    for case in xml.parse(report).getroot().iter("testcase"):
        name, (ended_as, reason) = case.get("name"), outcome_of(case)
        if ended_as == "skipped":
            skipped += 1
            continue
        ran += ended_as != "not started"
        if ended_as != "passed":
            output = case.findtext("system-out") or ""
            for culprit in named(name, output):
                failed[culprit] = reason
            with open(os.path.join(kept, f"{file_name(name)}.run_{number}.txt"), "w", encoding="utf-8") as file:
                file.write(f"{name}, run {number}, {case.get('time')} s\n{output}")
    if not failed:
        os.remove(report)
    return ran, skipped, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="a build folder, or a preset's name")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--parallel", type=int, default=os.cpu_count(), help="tests at once")
    parser.add_argument("--load", type=int, default=os.cpu_count(), help="busy processors beside them; 0: none")
    parser.add_argument("--only", help="tests whose name matches")
    parser.add_argument("--without", help="not the tests whose name matches")
    parser.add_argument("--label", help="tests with this label")
    parser.add_argument("--no-label", help="not the tests with this label")
    parser.add_argument("--keep", help="folder for what failing tests print; default: a new one")
    options = parser.parse_args()
    folder = build_folder(options.build)
    kept = options.keep or tempfile.mkdtemp(prefix="pascaline_tests_")
    os.makedirs(kept, exist_ok=True)
    failures = collections.defaultdict(list)
    total, passed_over = 0, 0
    with Load(options.load):
        for number in range(1, options.times + 1):
            begin = time.monotonic()
            ran, skipped, failed = run_once(options, folder, number, kept)
            total += ran
            passed_over += skipped
            for test, reason in failed.items():
                failures[test].append((number, reason))
            print(f"run {number} of {options.times}: {ran} tests, {len(failed)} failed, {skipped} skipped, {time.monotonic() - begin:.0f} s"
                  + "".join(f"\n  {test}: {reason}" for test, reason in failed.items()), flush=True)
    print(f"\n{total} tests in {options.times} runs, {sum(map(len, failures.values()))} failures of {len(failures)} tests, "
          f"{passed_over} skipped")
    for test, runs in sorted(failures.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(runs):4} of {options.times}  {test}  (runs {', '.join(str(number) for number, _ in runs)})")
    if failures:
        print(f"what they printed: {kept}")
    elif not options.keep:
        shutil.rmtree(kept, ignore_errors=True)
    if total == 0:
        print("no test ran: is it built, and do --only and the like name any?")
    return 1 if failures or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
