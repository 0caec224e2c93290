#!/usr/bin/env python3
"""Makes a database as a long night's sweep leaves it, from a seed: every status, finals, discarded samples, telemetry,
names with markup and quotes. For tests of reports and for measuring how long they take.

    make_night.py tuned.db --trials 200000 --problems 300 --samples 20
"""
import argparse
import json
import pathlib
import random
import sqlite3
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGAN_MS = 1_790_000_000_000
MARKS = ("thermal_throttle", "power_throttle", "clock_drift", "canary_drift")
FAILURES = (("rejected", "needs <b>more</b> shared memory than \"the card\" has"), ("rejected", "BLOCK_M % THREAD_M"),
            ("compile_failed", "ptxas: too many registers & spills"), ("launch_failed", "out of resources"),
            ("wrong_result", "error 0.5 at [3]"), ("timed_out", "longer than 2 s"), ("crashed", "signal 11"))
STATES = ("warming up", "measuring", "cooling", "settling")


class Night:
    """Fills a new database; every row is committed at the end."""

    def __init__(self, file, seed=1):
        self.random = random.Random(seed)
        self.connection = sqlite3.connect(file, isolation_level=None)
        self.connection.executescript((ROOT / "db/schema.sql").read_text(encoding="utf-8"))
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("BEGIN")
        self.trial_id = 0
        self.now_ms = BEGAN_MS
        self.samples, self.trials = [], []

    def add(self, table, **values):
        marks = ", ".join("?" * len(values))
        return self.connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
                                       tuple(values.values())).lastrowid

    def device(self, kind="cuda", name="NVIDIA GeForce GTX 1080 Ti", capability="6.1", sm_count=28):
        return self.add("devices", kind=kind, name=name, compute_capability=capability, sm_count=sm_count,
                        memory_bytes=11 << 30, limits="{}")

    def toolkit(self, compiler="nvrtc", version="12.9", target="sm_61", driver="12.4"):
        return self.add("toolkits", compiler=compiler, version=version, target=target, driver_version=driver)

    def kernel(self, name, source="a" * 64):
        space = json.loads((ROOT / f"search_spaces/{name}.json").read_text(encoding="utf-8"))
        return {"id": self.add("kernels", name=name, source_hash=source), "name": name,
                "space": self.add("spaces", kernel=name, hash=source, json=json.dumps(space)),
                "parameters": space["parameters"]}

    def session(self, device, toolkit, searcher="auto", **more):
        values = {"state": "finished", "finished_unix_ms": BEGAN_MS + 8 * 3_600_000, "spent_ms": 28_000_000, **more}
        number = self.connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        return self.add("sessions", uuid=f"session-{number}", device_id=device, toolkit_id=toolkit, device_uuid="GPU-1",
                        process_id=1, process_start=1, boot_id="", started_unix_ms=BEGAN_MS, searcher=searcher, seed=-1,
                        options="{}", command_line="pascaline sweep --name '<img onerror=alert(1)>'",
                        program_version="0.1.0", run_uuid="run", **values)

    def problem(self, kernel, dimensions, types, flops, bytes_):
        text = " ".join([kernel["name"], *(f"{k}={v}" for k, v in (dimensions | types).items())])
        known = self.connection.execute("SELECT id FROM problems WHERE text = ?", (text,)).fetchone()
        return known[0] if known else self.add(
            "problems", kernel=kernel["name"], text=text, dimensions=json.dumps(dimensions), types=json.dumps(types),
            flops=flops, bytes=bytes_)

    def config(self, kernel, default=False):
        return {p["name"]: p["default"] if default else self.random.choice(p["values"])
                for p in sorted(kernel["parameters"], key=lambda p: p["name"])}

    def trial(self, key, kernel, problem, config, time_us, samples, stage="search", default=False, failure=None):
        """A trial about that fast; returns its id, median, bounds and count (nothing of a failed one)."""
        draw = self.random
        self.trial_id += 1
        self.now_ms += draw.randrange(50, 150)
        scale = draw.choice((1.0, 1.0, 0.96875))
        counted = []
        for ordinal in range(0 if failure else samples):
            sample = round(time_us * (1 + 0.04 * draw.random()) / scale, 3)
            mark = draw.choice(MARKS) if draw.random() < 0.02 else None
            if mark is None:
                counted.append(sample * scale)
            self.samples.append((self.trial_id, ordinal, sample, round(60 + 20 * draw.random(), 1),
                                 1500 + draw.randrange(80), mark, round(150 + 80 * draw.random(), 1)))
        time = (statistics.median(counted), min(counted), max(counted), len(counted)) if counted else (None,) * 4
        status, reason = failure or ("ok", "")
        if not counted and not failure:
            status, reason = "timed_out", "no sample counted"
        if counted and stage == "search" and not default and self.trial_id % 3 == 0:
            status, reason = "dropped", "slower than the best so far"
        text = " ".join(f"{k}={v}" for k, v in config.items())
        regs = 0 if status == "rejected" else draw.randrange(32, 255)
        self.trials.append((
            self.trial_id, *key, kernel["id"], kernel["space"], problem, text, json.dumps(config), status, stage,
            int(default), reason, regs, 13312, 352, 16 if regs > 200 else 0, 3 if regs > 200 else 0, 2, 2000, 600,
            draw.random(), f"{self.trial_id:016x}", float("inf") if status == "wrong_result" else 1e-6, *time,
            400.0, 2.0, 20.0, self.now_ms, 20.5, scale, time_us / 10 if counted else None))
        if len(self.trials) >= 5000:
            self.flush()
        return (self.trial_id, *time) if counted else None

    def flush(self):
        self.connection.executemany(f"INSERT INTO trials (id, session_id, device_id, toolkit_id, kernel_id, space_id, "
                                    "problem_id, config_text, config, status, stage, is_default, reason, registers, "
                                    "static_shared_bytes, constant_bytes, local_bytes, local_loads, local_stores, "
                                    "instructions, ffma, occupancy, binary_hash, max_error, median_us, low_us, high_us, "
                                    "sample_count, compile_ms, verify_ms, measure_ms, started_unix_ms, canary_us, "
                                    "clock_scale, energy_mj, inputs_ms, load_ms, warm_up_ms, evict_ms, sample_ms, wait_ms) "
                                    f"VALUES ({', '.join('?' * 35)}{', 0' * 6})", self.trials)
        self.connection.executemany("INSERT INTO samples (trial_id, ordinal, time_us, temperature_c, sm_clock_mhz, "
                                    "mark, power_w) VALUES (?, ?, ?, ?, ?, ?, ?)", self.samples)
        self.trials, self.samples = [], []

    def search(self, key, kernel, problem, trials, samples, finals=True):
        """The default, random configurations around it, and the finals of the five fastest."""
        draw = self.random
        base_us = 50 + 1000 * draw.random()
        done = []
        for number in range(trials):
            default = number == 0
            config = self.config(kernel, default)
            failure = draw.choice(FAILURES) if not default and draw.random() < 0.15 else None
            time = base_us * (1 if default else 0.7 + draw.random() ** 2 * 5)
            result = self.trial(key, kernel, problem, config, time, samples, default=default, failure=failure)
            if result:
                done.append((result[1], result, config, default))
        done.sort(key=lambda entry: entry[0])
        if not finals or not done:
            return
        field = done[:5] + [entry for entry in done[5:] if entry[3]]
        results = [(self.trial(key, kernel, problem, config, median * 1.01, samples, "finals", default), default)
                   for median, _, config, default in field]
        results = [entry for entry in results if entry[0]]
        baseline = next((result for result, default in results if default), None)
        if results:
            self.flush()
            best = min((result for result, _ in results), key=lambda result: result[1])
            session, device, toolkit = key
            self.add("winners", device_id=device, toolkit_id=toolkit, kernel_id=kernel["id"], problem_id=problem,
                     objective="time", trial_id=best[0], confidence=round(0.5 + draw.random() / 2, 4), decided_unix_ms=self.now_ms,
                     **dict(zip(("baseline_median_us", "baseline_low_us", "baseline_high_us", "baseline_count"),
                                baseline[1:] if baseline else (None,) * 4)))

    def telemetry(self, session, readings):
        draw = self.random
        step = max(1, (self.now_ms - BEGAN_MS) // max(readings, 1))
        self.connection.executemany(
            "INSERT INTO telemetry (session_id, unix_ms, temperature_c, sm_clock_mhz, memory_clock_mhz, power_w, "
            "throttle_reasons, governor_state, canary_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(session, BEGAN_MS + i * step, 60 + 20 * draw.random(), 1500 + draw.randrange(80), 5505,
              150 + 80 * draw.random(), 0, STATES[i // 50 % len(STATES)],
              20 + draw.random() if i % 10 == 0 else None) for i in range(readings)])

    def close(self):
        self.flush()
        self.connection.execute("COMMIT")
        self.connection.close()


def matmul_problem(night, kernel, m, n, k, storage):
    dimensions = {"M": m, "N": n, "K": k, "EPILOGUE": 0, "NORM": 0, "HEAD_DIM": 0, "POSITIONS": 0}
    size = 4 if storage == "float32" else 2
    return night.problem(kernel, dimensions, {"STORAGE": storage, "WEIGHT": storage}, 2.0 * m * n * k,
                         size * (m * k + n * k + m * n))


def shapes(count):
    """Those of the model's prompts first, then others."""
    of_model = [(m, n, k) for m in (128, 512, 1024, 2048)
                for n, k in ((2048, 2048), (1024, 2048), (6144, 2048), (2048, 6144))]
    more = [(m, n, k) for m in range(1, 80) for n, k in ((2048, 2048), (6144, 2048), (1024, 4096), (3072, 1024))]
    return [(*shape, storage) for shape in of_model + more for storage in ("float32", "float16")][:count]


def make(file, trials, problems, samples, readings=30_000, seed=1):
    """One card under one toolkit: that many trials in all, of that many problems."""
    night = Night(file, seed)
    key = (0, night.device(), night.toolkit())
    sessions = [night.session(*key[1:], searcher=name) for name in ("auto", "random")]
    kernel = night.kernel("matmul")
    wanted = shapes(problems)
    for number, shape in enumerate(wanted):
        problem = matmul_problem(night, kernel, *shape)
        of_this = trials // len(wanted) + (number < trials % len(wanted))
        searched = max(1, of_this - 6)
        night.search((sessions[number % 2], *key[1:]), kernel, problem, searched, samples, finals=number % 10 != 9)
    for session in sessions:
        night.telemetry(session, readings)
    night.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="database to make; there must be none")
    parser.add_argument("--trials", type=int, default=200_000)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--readings", type=int, default=30_000, help="sensor readings of each of two sessions")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if pathlib.Path(options.file).exists():
        parser.error(f"{options.file} is there already")
    make(options.file, options.trials, options.problems, options.samples, options.readings, options.seed)


if __name__ == "__main__":
    main()
