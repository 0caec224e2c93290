"""What the tests of fleets share: a kernel of which one configuration clearly wins, a fleet of it, and looks at databases."""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from pathlib import Path
from urllib.parse import quote

PROGRAM = os.environ["PASCALINE_PROGRAM"]
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SKIPPED = 77

# Every thread adds nothing REPEAT times: the fewer, the faster, on any machine and however busy it is, as the fewest are a
# twentieth of the next. So the winner of an exhaustive search is known beforehand, although no time is.
SOURCE = """// out[i] = 2 x[i], slowly
#ifndef REPEAT
#define REPEAT 8192
#endif
constexpr int kRepeat = REPEAT;

extern "C" __global__ void crawl(const float* x, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x) * 64 + static_cast<int>(threadIdx.x);
  if (i < n) {
    volatile float sum = 2.0f * x[i];
    for (int again = 0; again < kRepeat; ++again) {
      sum = sum + 0.0f;
    }
    out[i] = sum;
  }
}

#ifdef PASCALINE_REFERENCE
extern "C" __global__ void crawl_reference(const float* x, double* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    out[i] = 2.0 * x[i];
  }
}
#endif
"""
REPEATS = [8192, 7000, 6000, 5000, 4000, 200]
WINNER = {"REPEAT": 200}
SIZES = [64 * size for size in range(1, 9)]
SPACE = {
    "schema": 1,
    "kernel": "crawl",
    "description": "a kernel whose fastest configuration is known",
    "dimensions": [{"name": "N", "description": "elements", "example": 64}],
    "types": [],
    "parameters": [{"name": "REPEAT", "values": REPEATS, "default": 8192, "description": "additions of nothing"}],
    "constraints": [{"require": "REPEAT >= 1", "because": "something is done"}],
    "launch": {"function": "crawl", "block": [64], "grid": ["ceil_div(N, 64)"]},
    "arguments": [
        {"name": "x", "buffer": "float32", "access": "in", "extent": "N", "fill": "uniform"},
        {"name": "out", "buffer": "float32", "access": "out", "extent": "N"},
        {"name": "n", "scalar": "int32", "value": "N"},
    ],
    "reference": {"kernel": {"function": "crawl_reference", "block": [128], "grid": ["ceil_div(N, 128)"]}},
    "tolerance": {"float32": 1e-6},
    "work": {"flops": "N", "bytes": "8 * N"},
}
MEASURING = ["--device", "emulator", "--searcher", "exhaustive", "--min-gain", "0", "--warm-cache", "--min-samples", "5",
             "--max-samples", "8", "--rounds", "10", "--finalists", "2", "--seed", "7", "--preheat", "0", "--race-error", "0"]


def skip(why):
    """Ends the test as skipped, saying why."""
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def main():
    """Runs the tests; ends as skipped where one was."""
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)


class FleetTest(unittest.TestCase):
    """A folder with the kernel; commands run there and end with the test."""

    maxDiff = None
    sizes = SIZES
    alone = ()  # trials and winners of one machine's sweep, once some test has asked for them

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="pascaline-fleet-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.kernels = self.folder / "kernels"
        self.kernels.mkdir()
        (self.kernels / "crawl.cu").write_text(SOURCE)
        (self.kernels / "crawl.json").write_text(json.dumps(SPACE))
        self.environment = dict(os.environ)
        self.fleet = self.folder / "fleet"

    def run_program(self, *words, code=0, **options):
        result = subprocess.run([PROGRAM, *map(str, words)], cwd=self.folder, env=self.environment, capture_output=True,
                                text=True, timeout=120, check=False, **options)
        self.assertEqual(result.returncode, code, f"{words}\n{result.stdout}{result.stderr}")
        return result

    def own_paths(self):
        """Only whoever runs something says where its code lies."""
        return ["--kernels", self.kernels, "--spaces", self.kernels]

    def what_to_tune(self, sizes=None):
        words = [*self.own_paths(), "--kernel", "crawl", *MEASURING]
        for size in sizes or self.sizes:
            words += ["--problem", f"N={size}"]
        return words

    def plan(self, shards=4, *more):
        return self.run_program("fleet", "plan", self.fleet, "--shards", shards, "--jobs", "1", *self.what_to_tune(), *more)

    def status(self):
        result = subprocess.run([PROGRAM, "fleet", "status", str(self.fleet), "--json"], env=self.environment,
                                capture_output=True, text=True, timeout=60, check=False)
        return {shard["shard"]: shard for shard in json.loads(result.stdout)["shards"]}

    def wait_for(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                self.fail(f"{what} did not come about: {self.status() if self.fleet.exists() else ''}{self.outputs()}")
            time.sleep(0.1)

    def outputs(self):
        return "".join(f"\n{file}:\n{file.read_text()}" for file in sorted(self.fleet.glob("*.out")))

    @staticmethod
    def trials_so_far(database):
        """Of a database that is being written."""
        try:
            with sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True) as connection:
                return connection.execute("SELECT count(*) FROM trials").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    @staticmethod
    def searched(database):
        """(problem, configuration) of each trial of the search, sorted."""
        with sqlite3.connect(database) as connection:
            rows = connection.execute("SELECT p.text, t.config FROM trials t JOIN problems p ON p.id = t.problem_id "
                                      "WHERE t.stage = 'search' AND t.median_us > 0").fetchall()
        return sorted(rows)

    @staticmethod
    def winners(database):
        with sqlite3.connect(database) as connection:
            rows = connection.execute("SELECT p.text, t.config FROM winners w JOIN trials t ON t.id = w.trial_id "
                                      "JOIN problems p ON p.id = t.problem_id").fetchall()
        return {problem: json.loads(config) for problem, config in rows}

    def expect_whole(self, database):
        """Exactly the plan's trials, each once, sound, with the winners that one machine's sweep decides."""
        if not type(self).alone:
            alone = self.folder / "alone.db"
            self.run_program("sweep", "--db", alone, "--quiet", *self.what_to_tune())
            type(self).alone = (self.searched(alone), self.winners(alone))
            self.assertEqual(len(self.searched(alone)), len(self.sizes) * len(REPEATS))
        found, planned = Counter(self.searched(database)), Counter(type(self).alone[0])
        self.assertEqual(found - planned, Counter(), "tried more often than planned")
        self.assertEqual(planned - found, Counter(), "planned and not tried")
        with sqlite3.connect(database) as connection:
            self.assertEqual(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(connection.execute("PRAGMA foreign_key_check").fetchall(), [])
        self.assertEqual(self.winners(database), type(self).alone[1])
        self.assertEqual(list(self.winners(database).values()), [WINNER] * len(self.sizes))
