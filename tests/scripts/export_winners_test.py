"""Exports databases made here with the project's schema."""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import sqlite3
    import unittest
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Database:
    """Two devices, two toolkits and two sources (ids 1 and 2) of kernels 'a' and (3 and 4) 'b'."""

    def __init__(self, file):
        self.connection = sqlite3.connect(file)
        self.connection.executescript((ROOT / "db/schema.sql").read_text())
        for id_ in (1, 2):
            self.add("devices", id=id_, kind="cuda", name=f"card {id_}", compute_capability="6.1", sm_count=id_,
                     memory_bytes=1, limits="{}")
            self.add("toolkits", id=id_, compiler="nvrtc", version=f"11.{id_}", target="sm_61", driver_version="1")
            self.add("sessions", id=id_, uuid=str(id_), device_id=id_, toolkit_id=1, device_uuid="", process_id=1,
                     process_start=1, boot_id="", started_unix_ms=1, finished_unix_ms=2, state="finished",
                     searcher="random", seed=1, options="", command_line="", program_version="", run_uuid=str(id_), spent_ms=0)
        for id_ in (1, 2, 3, 4):
            self.add("kernels", id=id_, name="ab"[(id_ - 1) // 2], source_hash=f"{id_}" * 64)
        for id_, kernel in enumerate("ab", 1):
            self.add("spaces", id=id_, kernel=kernel, hash="", json="{}")

    def add(self, table, **values):
        marks = ", ".join("?" * len(values))
        return self.connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
                                       tuple(values.values())).lastrowid

    def add_trial(self, key, problem, config, is_default=0, stage="search", **values):
        zeros = dict.fromkeys(("registers", "static_shared_bytes", "constant_bytes", "local_bytes", "local_loads",
                               "local_stores", "instructions", "ffma", "occupancy", "compile_ms", "verify_ms",
                               "measure_ms", "inputs_ms", "load_ms", "warm_up_ms", "evict_ms", "sample_ms", "wait_ms",
                               "started_unix_ms"), 0)
        trial = {"session_id": key["device_id"], "space_id": (key["kernel_id"] + 1) // 2, "problem_id": problem,
                 "config_text": config, "config": "{}", "status": "ok", "stage": stage, "is_default": is_default,
                 "reason": "", "binary_hash": "", "clock_scale": 1, "median_us": 1, "low_us": 1, "high_us": 1, "sample_count": 1}
        return self.add("trials", **key, **{**zeros, **trial, **values})

    def decide(self, when, device, toolkit, kernel, problem, config):
        """The default and one more trial of a shape that is new, and the latter as its winner."""
        key = {"device_id": device, "toolkit_id": toolkit, "kernel_id": kernel}
        name = "ab"[(kernel - 1) // 2]
        problem = self.add("problems", kernel=name, text=f"{name} N={problem}", dimensions="{}", types="{}", flops=1,
                           bytes=1)
        self.add_trial(key, problem, f"D={kernel}", is_default=1)
        trial = self.add_trial(key, problem, config)
        self.add_trial(key, problem, config, stage="finals")
        self.add("winners", **key, problem_id=problem, objective="time", trial_id=trial, baseline_median_us=2, baseline_low_us=2,
                 baseline_high_us=2, baseline_count=1, confidence=1, decided_unix_ms=when)


class ExportWinnersTest(unittest.TestCase):
    def exported(self, *decisions, options=(), prepare=lambda database: None):
        with tempfile.TemporaryDirectory() as folder:
            file, output = pathlib.Path(folder) / "tuned.db", pathlib.Path(folder) / "winners.json"
            database = Database(file)
            for decision in decisions:
                database.decide(*decision)
            prepare(database)
            database.connection.commit()
            database.connection.close()
            subprocess.run([sys.executable, ROOT / "bench/export_winners.py", "--db", file, "--output", output,
                            *options], check=True)
            return json.loads(output.read_text())

    def test_newer_source_on_another_device_or_toolkit_hides_nothing(self):
        for device, toolkit in ((2, 1), (1, 2)):
            with self.subTest(device=device, toolkit=toolkit):
                content = self.exported((1, 1, 1, 1, 10, "C=1"), (2, device, toolkit, 2, 11, "C=2"),
                                        (3, 1, 1, 3, 12, "C=3"))
                self.assertEqual([winner["problem"] for winner in content["winners"]], ["a N=10", "b N=12"])
                self.assertEqual(content["device"]["name"], "card 1")
                self.assertEqual(content["compiler"], "nvrtc 11.1")

    def test_trials_are_those_of_the_device_and_toolkit(self):
        content = self.exported((1, 2, 1, 1, 10, "C=1"), (2, 1, 2, 1, 11, "C=2"), (3, 1, 1, 1, 12, "C=3"),
                                (4, 1, 1, 1, 13, "C=4"))
        self.assertEqual(content["kernels"]["a"]["shapes"], 2)
        self.assertEqual(content["kernels"]["a"]["trials"], 4)

    def test_kernels_have_the_newest_source_and_its_default(self):
        content = self.exported((1, 1, 1, 1, 10, "C=1"), (2, 1, 1, 2, 11, "C=2"))
        self.assertEqual([winner["config"] for winner in content["winners"]], ["C=2"])
        self.assertEqual(content["kernels"]["a"], {"source": "2" * 64, "default": "D=2", "shapes": 1, "trials": 2})

    def test_no_local_memory(self):
        def spill(database):
            database.connection.execute("UPDATE trials SET local_loads = 3 WHERE config_text = 'C=1'")
            key = {"device_id": 1, "toolkit_id": 1, "kernel_id": 1}
            database.add_trial(key, 1, "C=3", median_us=4)
            database.add_trial(key, 1, "C=2", median_us=3)

        winner, = self.exported((1, 1, 1, 1, 10, "C=1"), prepare=spill)["winners"]
        self.assertEqual((winner["config"], winner["local_accesses"]), ("C=1", 3))
        # The default, at 1 us, is the fastest of those without; with it gone it is C=2.
        option = ("--no-local-memory",)
        winner, = self.exported((1, 1, 1, 1, 10, "C=1"), options=option, prepare=spill)["winners"]
        self.assertEqual((winner["config"], winner["time_us"]), ("D=1", 1))

        def slow_default(database):
            spill(database)
            database.connection.execute("UPDATE trials SET median_us = 9 WHERE is_default = 1")
            key = {"device_id": 1, "toolkit_id": 1, "kernel_id": 1}
            database.add_trial(key, 1, "D=1", is_default=1, stage="finals", median_us=8)

        winner, = self.exported((1, 1, 1, 1, 10, "C=1"), options=option, prepare=slow_default)["winners"]
        self.assertEqual((winner["config"], winner["time_us"], winner["confidence"], winner["local_accesses"]),
                         ("C=2", 3, None, 0))

    def test_stack_without_accesses_counts_too(self):
        def stack(database):
            database.connection.execute("UPDATE trials SET local_bytes = 16 WHERE config_text = 'C=1'")

        winner, = self.exported((1, 1, 1, 1, 10, "C=1"), options=("--no-local-memory",), prepare=stack)["winners"]
        self.assertEqual(winner["config"], "D=1")

    def test_bad_files_give_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "text.db").write_text("no database" * 100)
            (folder / "empty.db").write_bytes(b"")
            good = folder / "good.db"
            database = Database(good)
            database.decide(1, 1, 1, 1, 10, "C=1")
            database.connection.commit()
            for db, output in ((folder / "text.db", "o"), (folder / "empty.db", "o"), (folder / "none.db", "o"),
                               (folder, "o"), (good, "missing/o")):
                result = subprocess.run([sys.executable, ROOT / "bench/export_winners.py", "--db", db, "--output",
                                         folder / output], capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)


if __name__ == "__main__":
    unittest.main()
