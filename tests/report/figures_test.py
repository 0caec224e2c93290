#!/usr/bin/env python3
"""Recomputes the figures of `pascaline report --format json` from raw rows, by SQL of its own: of databases made here
and of a sweep on the emulated device.

    figures_test.py PROGRAM [unittest arguments]
"""
import pathlib
import sys
import tempfile

try:
    import unittest

    import jsonschema  # noqa: F401
    import sqlite3  # noqa: F401
except ImportError:
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import figures  # noqa: E402
import make_night  # noqa: E402

if len(sys.argv) > 1:
    figures.PROGRAM = sys.argv.pop(1)


class MadeNight(figures.Figures):
    def test_figures_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            database = pathlib.Path(folder) / "made.db"
            make_night.make(database, trials=1500, problems=20, samples=12, readings=4000)
            self.check(database)
            self.check_model()

    def test_two_cards_two_sources_and_another_tuner(self):
        with tempfile.TemporaryDirectory() as folder:
            database = pathlib.Path(folder) / "mixed.db"
            night = make_night.Night(database, seed=3)
            toolkits = [night.toolkit(), night.toolkit(version="11.8"),
                        night.toolkit("Kernel Tuner cache", "", "", "")]
            devices = [night.device(), night.device(name="<script>'x'\"</script>"),
                       night.device("foreign", "A100", "", 0)]
            kernels = [night.kernel("matmul"), night.kernel("matmul", "b" * 64), night.kernel("matvec")]
            for device, toolkit, kernel in ((0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (2, 2, 1), (0, 0, 2)):
                session = night.session(devices[device], toolkits[toolkit])
                problem = night.problem(kernels[kernel], {"M": 1, "N": 2048 * (device + 1), "K": 2048},
                                        {"STORAGE": "float32"}, 0 if device == 1 else 1e9, 1e8)
                night.search((session, devices[device], toolkits[toolkit]), kernels[kernel], problem, 60, 7,
                             finals=device != 2)
            night.session(devices[0], toolkits[0])
            night.close()
            self.check(database)
            self.assertEqual(len(self.document["contexts"]), 4)
            self.assertIsNone(self.document["sessions"][-1]["context"])
            self.check(database, "none")
            self.assertIsNone(self.document["contexts"][0]["workload"])

    def test_only_failures_and_nothing_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            database = pathlib.Path(folder) / "failures.db"
            night = make_night.Night(database)
            key = (night.session(night.device(), night.toolkit()), 1, 1)
            kernel = night.kernel("matmul")
            problem = make_night.matmul_problem(night, kernel, 512, 2048, 2048, "float32")
            for failure in make_night.FAILURES:
                night.trial(key, kernel, problem, night.config(kernel), 1, 0, failure=failure)
            night.close()
            self.check(database)
            empty = pathlib.Path(folder) / "empty.db"
            make_night.Night(empty).close()
            self.check(empty)
            self.assertEqual(self.document["contexts"], [])


class RealSweep(figures.Figures):
    def test_figures_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            database = pathlib.Path(folder) / "real.db"
            for seed in (1, 2):
                figures.run("sweep", "--db", database, "--device", "emulator", "--kernel", "elementwise", "--problem",
                    "COUNT=4096,OPERATION=1", "--problem", "COUNT=1000", "--trials", 6, "--searcher", "random",
                    "--seed", seed, "--warm-cache", "--min-samples", 5, "--max-samples", 20, "--rounds", 6, "--quiet")
            self.check(database)
            self.assertGreaterEqual(self.document["contexts"][0]["trials"], 12)
            self.assertEqual(len(self.document["contexts"][0]["kernels"][0]["problems"]), 2)
            self.assertIsNone(self.document["contexts"][0]["roofline"])


class BadInput(unittest.TestCase):
    def test_one_clear_error(self):
        with tempfile.TemporaryDirectory() as folder:
            database = pathlib.Path(folder) / "made.db"
            make_night.make(database, trials=20, problems=1, samples=3, readings=0)
            for arguments in ((), ("--output", "/nonexistent/report.json"), ("--workload", "/nonexistent.json"),
                              ("--workload", figures.ROOT / "README.md")):
                path = database if arguments else pathlib.Path(folder) / "none.db"
                result = figures.run("report", "--db", path, "--format", "json", *arguments, expect=1)
                self.assertEqual((result.stdout, result.stderr.count("\n")), ("", 1), result.stderr)
            for form in ("md", "csv"):
                result = figures.run("report", "--db", database, "--format", form, "--workload",
                                     figures.MODEL, expect=2)
                self.assertIn("--format html or json", result.stderr)
                figures.run("report", "--db", database, "--format", form, "--workload", "none")


if __name__ == "__main__":
    unittest.main()
