"""Report documents for the browser tests, as docs/reference/report.md describes them: one with everything, in plain
names or with markup in every text, and the poor ones. Numbers are made by a seeded generator, so each run is alike."""

import math
import random


def counts(trials, dropped=0, finals=0):
    return {"trials": trials, "ok": max(0, trials - 264), "dropped": dropped, "duplicates": trials // 10,
            "rejected": 0, "finals": finals}


COUNTS = [{"name": name, "title": title, "one": one, "many": many, "meaning": f"{title}."} for name, title, one, many in [
    ("trials", "Trials", "trial", "trials"), ("ok", "Usable", "usable", "usable"),
    ("dropped", "Dropped early", "dropped early", "dropped early"),
    ("duplicates", "Duplicates", "duplicate", "duplicates"), ("rejected", "Rejected", "rejected", "rejected"),
    ("finals", "In finals", "measurement in finals", "measurements in finals")]]


STATUSES = ["ok", "dropped", "rejected", "compile_failed", "launch_failed", "wrong_result", "timed_out", "crashed"]
START = 1_772_400_000_000
MARKUP = ['<img src=x onerror="document.title=\'injected\'">', "</script><script>document.title='injected'</script>",
          "\"'><b id=injected>bold</b>", "<!--<script>", "&lt;i&gt; \u2028 \u2029 `${1}`"]
PARAMETERS = {"TILE_M": [16, 32, 64, 128], "TILE_N": [16, 32, 64], "TILE_K": [8, 16], "VECTOR": [1, 2, 4],
              "LAYOUT": ["row", "swizzled"], "UNROLL": [4]}


def empty(**changes):
    """The document of a database without a trial."""
    document = {
        "format": "pascaline-report", "version": 1, "title": "Pascaline tuning report", "generated_unix_ms": START,
        "program_version": "0.1.0", "database": {"file": "tuned.db", **counts(0), "sessions": 0},
        "kernel_filter": None, "device_filter": None, "live": False, "counts": COUNTS, "contexts": [], "compilers": [], "devices": [], "sessions": [], "comparison": None}
    document.update(changes)
    return document


class Maker:
    """Makes one document; `mark` spoils every text of it with markup."""

    def __init__(self, markup, seed=7):
        self.random = random.Random(seed)
        self.markup = markup
        self.marked = 0
        self.trial = 0
        self.problem = 0

    def mark(self, text):
        if not self.markup:
            return text
        self.marked += 1
        return f"{text} {MARKUP[self.marked % len(MARKUP)]}"

    def summary(self, median, count=60, spread=0.01):
        return {"median_us": median, "low_us": median * (1 - spread), "high_us": median * (1 + spread), "count": count}

    def time_of(self, values, scale):
        effect = {16: 1.6, 32: 1.2, 64: 1.0, 128: 1.3}[values[0]] * {16: 1.3, 32: 1.0, 64: 1.1}[values[1]]
        return scale * effect * {8: 1.05, 16: 1.0}[values[2]] * {1: 1.25, 2: 1.05, 4: 1.0}[values[3]] * (
            1.1 if values[4].startswith("row") else 1.0) * self.random.uniform(1, 1.04)

    def row(self, values, scale, session, ok=True):
        self.trial += 1
        base = {"trial": self.trial, "values": values, "status": "ok", "stage": "search", "default": False, "best": False,
                "registers": 32 + 8 * self.random.randrange(12), "shared_bytes": 1024 * self.random.randrange(1, 40),
                "local_bytes": self.random.choice([0, 0, 0, 64]), "local_loads": 0, "local_stores": 0,
                "instructions": self.random.randrange(700, 4000), "ffma": self.random.randrange(128, 1024),
                "occupancy": self.random.choice([0.125, 0.25, 0.5, 0.75]), "max_error": 1e-6, "reason": "",
                "session": session}
        if not ok:
            base.update({"status": self.random.choice(STATUSES[2:]), "reason": self.mark("too many registers"),
                         **{name: None for name in ("median_us", "low_us", "high_us", "samples_counted", "samples_us",
                                                    "temperature_c", "sm_clock_mhz", "power_w", "energy_mj",
                                                    "max_error")}})
            return base
        median = self.time_of(values, scale)
        samples = [median * self.random.gauss(1, 0.006) for _ in range(60)]
        base.update({"median_us": median, "low_us": median * 0.995, "high_us": median * 1.005, "samples_counted": 60,
                     "temperature_c": self.random.uniform(60, 74), "sm_clock_mhz": 1708.0,
                     "power_w": self.random.uniform(90, 140), "energy_mj": median * (0.08 + 0.01 * (self.trial * 7 % 9)), "samples_us": samples})
        return base

    def rows(self, names, count, scale, session):
        values = [PARAMETERS[name] for name in PARAMETERS]
        rows = []
        for i in range(count):
            chosen = [self.random.choice(options) for options in values]
            if self.markup:
                chosen[4] = chosen[4] + " " + MARKUP[0]
            rows.append(self.row(chosen, scale, session, ok=i < 2 or self.random.random() > 0.2))
        timed = sorted((row for row in rows if row["status"] == "ok"), key=lambda row: row["median_us"])
        timed[-1].update({"status": "dropped", "reason": self.mark("slower than the best so far")})
        timed[0].update({"best": True, "stage": "finals"})
        timed[len(timed) // 2].update({"default": True, "stage": "finals"})
        return rows

    def parameter_effects(self, names, rows):
        effects = []
        for at, name in enumerate(names):
            values = sorted({row["values"][at] for row in rows}, key=lambda value: (isinstance(value, str), value))
            times = {value: sorted(row["median_us"] for row in rows if row["values"][at] == value and row["median_us"])
                     for value in values}
            best = [times[value][0] if times[value] else None for value in values]
            known = [value for value in best if value is not None]
            effects.append({
                "name": name, "values": values, "trials": [sum(row["values"][at] == value for row in rows) for value in values],
                "ok": [len(times[value]) for value in values], "best_us": best,
                "median_us": [times[value][len(times[value]) // 2] if times[value] else None for value in values],
                "effect": max(known) / min(known) if len(known) > 1 else None})
        return effects

    def heat(self, effects, rows):
        shown = sorted((one for one in effects if one["effect"]), key=lambda one: -one["effect"])[:4]
        place = [effects.index(one) for one in shown]
        pairs = []
        for x in range(len(shown)):
            for y in range(x + 1, len(shown)):
                grid = []
                for down in shown[y]["values"]:
                    line = []
                    for across in shown[x]["values"]:
                        times = [row["median_us"] for row in rows if row["median_us"] and
                                 row["values"][place[x]] == across and row["values"][place[y]] == down]
                        line.append(min(times) if times else None)
                    grid.append(line)
                pairs.append({"x": x, "y": y, "best_us": grid})
        return {"parameters": [one["name"] for one in shown], "pairs": pairs} if pairs else None

    def search(self, session, searcher, total, start, best):
        trials, elapsed, times = [1], [0.4], [start]
        while trials[-1] < total * 0.7:
            trials.append(trials[-1] + self.random.randrange(2, 12))
            elapsed.append(trials[-1] * self.random.uniform(0.9, 1.0))
            times.append(max(best, times[-1] * self.random.uniform(0.86, 0.98)))
        times[-1] = best
        return {"session": session, "searcher": searcher, "seed": 1, "trials": trials + [total],
                "elapsed_s": elapsed + [total * 1.01], "best_us": times + [best], "total": total}

    def make_problem(self, kernel, dimensions, count, rows=40, sessions=((1, "auto"), (2, "random"))):
        names = [self.mark(name) for name in PARAMETERS]
        flops = 2.0 * dimensions["M"] * dimensions["N"] * dimensions["K"]
        size = 4.0 * (dimensions["M"] * dimensions["K"] + dimensions["K"] * dimensions["N"] + dimensions["M"] * dimensions["N"])
        held = self.rows(names, rows, max(flops / 6.5e6, size / 2.0e5), sessions[0][0])
        best = next(row for row in held if row["best"])
        default = next(row for row in held if row["default"])
        effects = self.parameter_effects(names, held)
        bound = max(flops / 8.87e6, size / 3.2e5)
        speedup = default["median_us"] / best["median_us"]
        statuses = {status: sum(row["status"] == status for row in held) for status in STATUSES}
        self.problem += 1
        return {
            "id": self.problem - 1, "text": f"{kernel} " + " ".join(f"{k}={v}" for k, v in dimensions.items()) + " STORAGE=float32",
            "dimensions": dimensions, "types": {"STORAGE": "float32"}, "count": count, "flops": flops, "bytes": size,
            "default": self.summary(default["median_us"]), "baseline_config": None, "baseline_why": None,
            "best": self.summary(best["median_us"]),
            "best_config": dict(zip(names, best["values"])), "best_trial": best["trial"],
            "speedup": {"value": speedup, "low": speedup * 0.98, "high": speedup * 1.02}, "decided": True, "provisional": False,
            "confidence": 0.9991,
            "gflops": flops / best["median_us"] / 1e3, "gbs": size / best["median_us"] / 1e3, "roofline_us": bound,
            "roofline_share": bound / best["median_us"], "energy_mj": best["energy_mj"],
            "statuses": {status: n for status, n in statuses.items() if n}, **counts(rows * 4, finals=rows),
            "pareto": self.pareto(names, held),
            "searches": [self.search(session, self.mark(searcher), 200, default["median_us"] * 1.2, best["median_us"] * (1 + 0.03 * i))
                         for i, (session, searcher) in enumerate(sessions)],
            "parameters": effects, "heat": self.heat(effects, held),
            "configurations": {"shown": rows, "of": rows * 5, "columns": names, "rows": held},
            "limits": [self.limit("winner", dict(zip(names, best["values"])), best["median_us"]),
                       {"role": "default", "config": dict(zip(names, default["values"])), "missing": True,
                        "text": "No estimate: its code is not in the cache."}]}

    def pareto(self, names, held):
        rows = sorted((row for row in held if row["median_us"]), key=lambda row: (row["median_us"], row["energy_mj"]))
        least, points = float("inf"), []
        for row in rows:
            points.append({"trial": row["trial"], "config": dict(zip(names, row["values"])), "median_us": row["median_us"],
                           "energy_mj": row["energy_mj"], "default": row["default"], "front": row["energy_mj"] < least})
            least = min(least, row["energy_mj"])
        return {"summary": self.mark("The winner by energy uses 20.0 % less energy at 4.5 % more time than the winner by time."),
                "time_winner": next(row["trial"] for row in held if row["best"]),
                "energy_winner": min(points, key=lambda point: point["energy_mj"])["trial"], "edp_winner": None,
                "points": points}

    def limit(self, role, config, time):
        return {"role": role, "config": config, "missing": False, "compiler": "nvrtc 12.9 for sm_61",
                "text": self.mark("Hottest loop, an iteration: 512 FFMA of 574 instructions (89 %)."),
                "instructions": 574, "ffma": 512, "dp4a": 0, "conflicts_per_arithmetic": 0.03, "registers": 128,
                "threads": 256, "resident_blocks": 2, "resident_blocks_limit": "registers", "waves": 1.5,
                "least": {"time_us": time, "limit": "issue"}, "most": {"time_us": time * 1.2, "limit": "bank conflicts"}}

    def bare_problem(self, kernel):
        """A problem of which every trial failed."""
        made = self.make_problem(kernel, {"M": 7, "N": 2048, "K": 2048}, None, rows=6)
        for row in made["configurations"]["rows"]:
            row.update(self.row(row["values"], 1, 1, ok=False), best=False, default=False)
        made.update({name: None for name in ("default", "best", "best_config", "best_trial", "speedup", "confidence", "gflops",
                                             "gbs", "roofline_us", "roofline_share", "energy_mj", "heat")})
        del made["pareto"]
        made.update(decided=False, searches=[], statuses={"crashed": 6})
        for one in made["parameters"]:
            one.update(ok=[0] * len(one["values"]), best_us=[None] * len(one["values"]),
                       median_us=[None] * len(one["values"]), effect=None)
        return made

    def telemetry(self, start, points=1500, hours=8):
        step = hours * 3_600_000 // points
        log = {name: [] for name in ("unix_ms", "temperature_c", "sm_clock_mhz", "memory_clock_mhz", "power_w", "canary_us")}
        states = []
        for i in range(points):
            at = start + i * step
            cooling = i % 300 > 280
            state = "preheating" if i < 20 else "cooling" if cooling else "settling" if i % 300 > 270 else "measuring"
            if states and states[-1]["state"] == self.state_name(state):
                states[-1]["to_unix_ms"] = at + step
            else:
                states.append({"from_unix_ms": at, "to_unix_ms": at + step, "state": self.state_name(state)})
            log["unix_ms"].append(at)
            log["temperature_c"].append(45 + 25 * (1 - math.exp(-i / 15)) + 3 * math.sin(i / 40) - (6 if cooling else 0))
            log["sm_clock_mhz"].append(1708 if not cooling else 1480 + self.random.randrange(100))
            log["memory_clock_mhz"].append(4513)
            log["power_w"].append(120 + self.random.uniform(-15, 15) - (60 if cooling else 0))
            log["canary_us"].append(None if i % 5 else 51 + self.random.uniform(-0.2, 0.2))
        discarded = [{"from_unix_ms": start + i * step, "to_unix_ms": start + (i + 5) * step, "count": 3 + i % 17}
                     for i in range(280, points, 300)]
        return {**log, "states": states, "discarded": discarded, "readings": points * 20}

    def state_name(self, state):
        return state + (" " + MARKUP[0] if self.markup else "")

    def session(self, number, device, searcher, telemetry=True, **changes):
        start = START + (number - 1) * 9 * 3_600_000
        made = {
            "id": number, "uuid": f"uuid-{number}", "run_uuid": f"run-{number}", "context": 0, "device": device,
            "started_unix_ms": start, "finished_unix_ms": start + 8 * 3_600_000, "state": "finished", "alive": False,
            "spent_ms": 8 * 3_600_000 - 40_000, "searcher": self.mark(searcher), "seed": number,
            "command_line": self.mark("pascaline sweep --workload qwen3-vl-2b.json --until 07:00"), "program_version": "0.1.0",
            "imported_from": None, **counts(1200, dropped=310, finals=41), "samples": 96_000, "discarded": {"thermal_throttle": 61, "clock_drift": 12},
            "telemetry": self.telemetry(start) if telemetry else None}
        made.update(changes)
        return made

    def failures(self):
        return [{"status": status, "reason": self.mark(reason), "count": count, "kernels": [self.mark("matmul")],
                 "problem": self.mark("matmul M=512 N=2048 K=2048"), "config": self.mark("TILE_M=128 TILE_N=64")}
                for status, reason, count in (
                    ("rejected", "shared memory of 65536 bytes is more than the device's 49152", 210),
                    ("compile_failed", "static assertion failed: TILE_M must divide by the warps", 44),
                    ("wrong_result", "element 17: 3.5 instead of 3.25 (error 0.25, tolerance 0.001)", 7),
                    ("timed_out", "no result after 10 s", 2), ("crashed", "an illegal address was touched", 1))]

    def context(self, number, device, kernels, roofline=True, workload=True):
        trials = sum(problem["trials"] for kernel in kernels for problem in kernel["problems"])
        phase = {"per": "prompt", "default_us": 812_345.0, "best_us": 521_234.0, "speedup": 1.558, "speedup_low": 1.53,
                 "speedup_high": 1.59, "confidence": 0.993, "problems": 31, "tuned": 28,
                 "types": {}, "untuned_more": 0}
        untuned = [{"kernel": self.mark("softmax"), "problem": self.mark("softmax ROWS=8192 N=512"), "count": 28}]
        return {
            "id": number, "device": {"kind": "cuda", "name": self.mark(device), "compute_capability": "6.1", "sm_count": 20,
                                     "memory_bytes": 8 << 30},
            "toolkit": {"compiler": "nvrtc", "version": self.mark("12.9"), "target": "sm_61", "driver_version": "12.4"},
            "roofline": {"peak_gflops": 8873.0, "memory_gbps": 320.3,
                         "source": self.mark("20 multiprocessors at 1733 MHz; 256 bits at 5005 MHz.")} if roofline else None,
            "first_unix_ms": START, "last_unix_ms": START + 17 * 3_600_000, "spent_ms": 16 * 3_600_000, **counts(trials, finals=41), "mean_speedup": 1.64,
            "statuses": {"ok": trials - 274, "dropped": 10, "rejected": 210, "compile_failed": 44, "launch_failed": 0, "wrong_result": 7,
                         "timed_out": 2, "crashed": 1},
            "workload": {"name": self.mark("qwen3-vl-2b"), "totals": [
                {**{name: phase[name] for name in ("default_us", "best_us", "speedup", "speedup_low", "speedup_high", "confidence",
                                                   "problems", "tuned")}, "types": {"STORAGE": "float32"}}],
                         "curve": [{"elapsed_s": at, "model_us": us, "default_us": 812_345.0} for at, us in
                                   ((0, 812_345.0), (900, 700_000.0), (7_200, 521_234.0), (57_600, 521_234.0))],
                         "phases": [
                {"phase": self.mark("prompt"), "symbols": {"S": 512}, "types": {"STORAGE": "float32"}, "untuned": untuned * 3,
                 **{name: value for name, value in phase.items() if name != "types"}},
                {**phase, "phase": "decode", "per": "token", "symbols": {"T": 1024}, "default_us": 41_000.0, "best_us": 39_500.0,
                 "speedup": 1.038, "speedup_low": 1.01, "speedup_high": 1.06, "confidence": 0.97, "untuned": [], "tuned": 31},
                {**phase, "phase": "image", "per": "image", "symbols": {}, "tuned": 0, "default_us": 0, "best_us": 0,
                 "speedup": None, "speedup_low": None, "speedup_high": None, "confidence": None, "untuned": untuned}]} if workload else None,
            "kernels": kernels, "failures": self.failures(), "failures_more": 13}

    def kernel(self, name, count, current=True, bare=False):
        marked = self.mark(name)
        shapes = [{"M": 2 ** (3 + i % 8), "N": 2048 * (1 + i % 3), "K": 2048} for i in range(count)]
        problems = [self.make_problem(marked, shape, 28 + i if i % 3 else None) for i, shape in enumerate(shapes)]
        for problem in problems[1::4]:
            problem.update(decided=False, confidence=None)
        if bare:
            problems.append(self.bare_problem(marked))
        return {"name": marked, "source_hash": f"{name}-0123456789abcdef", "current": current, "problems": problems}

    def comparison(self):
        config = {"TILE_M": 64, "TILE_N": 32}
        other = {"TILE_M": 128, "TILE_N": 32, "VECTOR": 4}
        rows = []
        for i, verdict in enumerate(["faster", "slower", "same", "unclear", "new", "vanished"] * 5):
            ratio = {"faster": 1.1 + i / 50, "slower": 0.92 - i / 200, "same": 1.002, "unclear": 1.03}.get(verdict)
            side = lambda median, chosen: {"best": self.summary(median), "default": None, "config": chosen,
                                           "source_hash": "abc", "toolkit": self.mark("nvrtc 11.8, driver 12.4"), "decided": True,
                                           "trial": 1, "sm_clock_mhz": 1708.0 - median % 7}
            rows.append({
                "device": self.mark("GeForce GTX 1080"), "target": "sm_61", "kernel": self.mark("matmul"),
                "problem": self.mark(f"matmul M={8 + i} N=2048 K=2048"), "verdict": verdict,
                "a": None if verdict == "vanished" else side(100.0 + i, config),
                "b": None if verdict == "new" else side((100.0 + i) * (ratio or 1), other if i % 2 else config),
                "ratio": {"value": ratio, "low": ratio * 0.99, "high": ratio * 1.01} if ratio else None,
                "p_value": 0.0004 if verdict in ("faster", "slower") else 0.4 if ratio else None,
                "same_config": (i % 2 == 0) if ratio else None, "same_source": True if ratio else None,
                "same_toolkit": False if ratio else None,
                "same_clock": (i % 3 > 0) if ratio else None})
        return {"a": {"label": self.mark("tuned.db"), "sessions": [1, 2]}, "b": {"label": self.mark("earlier.db"), "sessions": [1]},
                "rows": rows, "summary": {"faster": 5, "slower": 5, "same": 5, "unclear": 5, "new": 5, "vanished": 5,
                                          "changed_winner": 10, "geometric_mean_ratio": 1.043}}


def full(markup=False, **changes):
    """Everything that the contract knows: two devices, several kernels, failures, telemetry, a comparison."""
    make = Maker(markup)
    card = [make.kernel("matmul", 12, bare=True), make.kernel("matvec", 4), make.kernel("rmsnorm", 3),
            make.kernel("matmul", 2, current=False)]
    contexts = [make.context(0, "GeForce GTX 1080", card),
                make.context(1, "Intel Xeon", [make.kernel("matmul", 2)], roofline=False, workload=False)]
    sessions = [make.session(1, contexts[0]["device"]["name"], "auto"), make.session(2, contexts[0]["device"]["name"], "random"),
                make.session(3, contexts[1]["device"]["name"], "auto", telemetry=False, context=1, discarded={}, state="running",
                             alive=True, finished_unix_ms=None, imported_from=make.mark("other.db"))]
    timed = lambda median: {"median_us": median, "low_us": 0.9 * median, "high_us": 1.1 * median, "count": 30}
    compilers = [{"device": contexts[0]["device"]["name"], "target": "sm_61", "driver_version": make.mark("12.9"),
                  "compilers": [{"name": make.mark("nvrtc 12.9"), "fastest_of": 1, "gain": 1.1},
                                {"name": make.mark("nvrtc 11.8"), "fastest_of": 1, "gain": 1.25}],
                  "rows": [{"problem": make.mark("matmul M=1"), "best": [timed(80), timed(100)], "fastest": 0, "speedup": 1.25},
                           {"problem": make.mark("matmul M=2"), "best": [None, timed(90)], "fastest": 1, "speedup": 1}]}]
    best = lambda median, tile: {"best": timed(median), "default": timed(2 * median), "speedup": 2, "config": {make.mark("TILE"): tile}}
    devices = [{"kind": "cuda", "devices": [{"name": make.mark("Tesla P40"), "compute_capability": "6.1", "sm_count": 30, "problems": 1},
                                            {"name": make.mark("MX330"), "compute_capability": "6.1", "sm_count": 3, "problems": 2},
                                            {"name": make.mark("GTX 1080"), "compute_capability": "6.1", "sm_count": 20, "problems": 2}],
                "same_config": 1,
                "rows": [{"kernel": "matmul", "problem": make.mark("matmul M=1"), "devices": [best(80, 4), best(700, 8), best(90, 4)],
                          "same_config": False},
                         {"kernel": "matmul", "problem": make.mark("matmul M=2"), "devices": [None, best(900, 8), best(100, 8)],
                          "same_config": True}]}]
    document = empty(title=make.mark("Night of the card"), contexts=contexts, compilers=compilers, devices=devices, sessions=sessions, comparison=make.comparison(),
                     database={"file": make.mark("tuned.db"), **counts(4321), "sessions": 3})
    document.update(changes)
    return document


def only_failures():
    """A database in which nothing worked."""
    make = Maker(False)
    kernel = {"name": "matmul", "source_hash": "abcdef", "current": True, "problems": [make.bare_problem("matmul")]}
    context = make.context(0, "GeForce GTX 1080", [kernel], roofline=False, workload=False)
    context.update(trials=6, statuses={**{status: 0 for status in STATUSES}, "crashed": 6}, failures_more=0)
    session = make.session(1, "GeForce GTX 1080", "auto", telemetry=False, samples=0, discarded={}, trials=6)
    return empty(contexts=[context], sessions=[session], database={"file": "tuned.db", **counts(6), "sessions": 1})


def large(megabytes):
    """A document of at least so many megabytes: many problems with many configurations."""
    make = Maker(False)
    kernels = [make.kernel(f"kernel_{i}", 40) for i in range(8)]
    context = make.context(0, "GeForce GTX 1080", kernels)
    session = make.session(1, "GeForce GTX 1080", "auto")
    size = sum(len(str(kernel)) for kernel in kernels)
    number = 8
    while size < megabytes * 1_000_000:
        kernels.append(make.kernel(f"kernel_{number}", 40))
        size += len(str(kernels[-1]))
        number += 1
    return empty(contexts=[context], sessions=[session], database={"file": "tuned.db", **counts(200_000), "sessions": 1})
