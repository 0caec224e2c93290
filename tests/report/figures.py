"""What a report of a database must say, from its raw rows."""
import bisect
import collections
import itertools
import json
import math
import pathlib
import sqlite3
import statistics
import subprocess
import unittest

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "pascaline"
MODEL = ROOT / "tests/report/qwen3-vl-2b.json"  # a workload with symbols, element types and alternatives
REASON = "CASE t.stage WHEN 'finals' THEN 'in the finals: ' || t.reason ELSE t.reason END"
KEY = "t.device_id = :device AND t.toolkit_id = :toolkit AND t.kernel_id = :kernel AND t.problem_id = :problem"


def run(*arguments, expect=0):
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != expect:
        raise AssertionError(f"{arguments}: {result.returncode}: {result.stderr}")
    return result


def report(database, workload):
    return json.loads(run("report", "--db", database, "--format", "json", "--workload", workload).stdout)


class Figures(unittest.TestCase):
    """What the tests of one database share; `rows` asks it."""

    def close(self, shown, computed, what, tolerance=1e-8):
        if shown is None or computed is None:
            self.assertEqual(shown, computed, what)
        else:
            self.assertTrue(math.isclose(shown, computed, rel_tol=tolerance, abs_tol=1e-12), (what, shown, computed))

    def rows(self, sql, **values):
        cursor = self.connection.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor]

    def one(self, sql, **values):
        return next(iter(self.rows(sql, **values)), None)

    def check(self, database, workload=MODEL):
        self.connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        self.addCleanup(self.connection.close)
        self.document = report(database, workload)
        schema = json.loads(run("reference", "report.schema").stdout)
        jsonschema.Draft202012Validator(schema).validate(self.document)
        self.check_contexts()
        for context in self.document["contexts"]:
            self.check_failures(context)
            for kernel in context["kernels"]:
                for problem in kernel["problems"]:
                    with self.subTest(problem=problem["text"], context=context["id"]):
                        key = self.key(context, kernel, problem)
                        self.check_times(context, problem, key)
                        self.check_searches(problem, key)
                        self.check_parameters(problem, key)
                        self.check_configurations(problem, key)
        self.check_sessions()

    def context_key(self, context):
        device, toolkit = context["device"], context["toolkit"]
        return self.one(
            "SELECT d.id AS device, k.id AS toolkit FROM devices d, toolkits k WHERE d.kind = :kind AND d.name = :name "
            "AND d.compute_capability = :compute_capability AND d.sm_count = :sm_count AND k.compiler = :compiler AND "
            "k.version = :version AND k.target = :target AND k.driver_version = :driver_version", **device, **toolkit)

    def key(self, context, kernel, problem):
        return self.context_key(context) | self.one(
            "SELECT n.id AS kernel, p.id AS problem FROM kernels n, problems p WHERE n.name = :name AND "
            "n.source_hash = :hash AND p.text = :text", name=kernel["name"], hash=kernel["source_hash"],
            text=problem["text"])

    def check_counts(self, shown, condition, **values):
        """All that counts trials counts them by the same rule."""
        counts = self.one(
            "SELECT sum(stage = 'search') AS trials, sum(stage = 'search' AND median_us > 0) AS ok, sum(stage = 'search' "
            "AND status = 'dropped' AND shared_trial_id IS NULL) AS dropped, sum(stage = "
            "'search' AND shared_trial_id IS NOT NULL) AS duplicates, sum(stage = 'finals') AS finals FROM trials t "
            f"WHERE {condition}", **values)
        self.assertEqual({name: shown[name] for name in counts}, {name: count or 0 for name, count in counts.items()})

    def check_contexts(self):
        self.check_counts(self.document["database"], "1")
        self.assertEqual(self.document["database"]["sessions"], self.one("SELECT count(*) AS n FROM sessions")["n"])
        expected = self.rows("SELECT device_id AS device, toolkit_id AS toolkit FROM trials GROUP BY 1, 2 "
                             "ORDER BY min(id)")
        self.assertEqual([self.context_key(context) for context in self.document["contexts"]], expected)
        for context in self.document["contexts"]:
            key = self.context_key(context)
            counts = dict.fromkeys(context["statuses"], 0) | {row["status"]: row["n"] for row in self.rows(
                "SELECT status, count(*) AS n FROM trials WHERE device_id = :device AND toolkit_id = :toolkit "
                "AND stage = 'search' GROUP BY status", **key)}
            self.assertEqual(context["statuses"], counts)
            self.check_counts(context, "device_id = :device AND toolkit_id = :toolkit", **key)
            times = self.one("SELECT min(started_unix_ms) AS first, max(started_unix_ms) AS last FROM trials "
                             "WHERE device_id = :device AND toolkit_id = :toolkit", **key)
            self.assertEqual((context["first_unix_ms"], context["last_unix_ms"]), (times["first"], times["last"]))
            self.assertEqual((self.document["contexts"][context["id"]], context["failures_more"]), (context, 0))
            spent = self.one("SELECT sum(spent_ms) AS ms, (SELECT memory_bytes FROM devices WHERE id = :device) AS memory "
                             "FROM sessions WHERE id IN (SELECT session_id FROM trials WHERE device_id = :device AND "
                             "toolkit_id = :toolkit)", **key)
            self.assertEqual((context["spent_ms"], context["device"]["memory_bytes"]), (spent["ms"], spent["memory"]))
            keys = self.rows("SELECT DISTINCT n.name, n.source_hash, p.text FROM trials t JOIN kernels n ON n.id = "
                             "t.kernel_id JOIN problems p ON p.id = t.problem_id WHERE device_id = :device AND "
                             "toolkit_id = :toolkit", **key)
            shown = [{"name": kernel["name"], "source_hash": kernel["source_hash"], "text": problem["text"]}
                     for kernel in context["kernels"] for problem in kernel["problems"]]
            self.assertCountEqual(shown, keys)
            for kernel in context["kernels"]:
                latest = self.one("SELECT n.source_hash FROM trials t JOIN kernels n ON n.id = t.kernel_id WHERE "
                                  "device_id = :device AND toolkit_id = :toolkit AND n.name = :name ORDER BY t.id DESC",
                                  **key, name=kernel["name"])
                self.assertEqual(kernel["current"], latest["source_hash"] == kernel["source_hash"])

    def check_times(self, context, problem, key):
        winner = self.one(
            "SELECT t.id, t.median_us, t.low_us, t.high_us, t.sample_count, t.config, t.energy_mj, "
            "w.baseline_median_us, w.baseline_low_us, w.baseline_high_us, w.baseline_count, w.confidence FROM winners w "
            "JOIN trials t ON t.id = w.trial_id WHERE w.objective = 'time' AND " + KEY.replace("t.", "w."), **key)
        default = winner and [winner[f"baseline_{name}"] for name in ("median_us", "low_us", "high_us", "count")]
        if not winner:
            row = self.one(f"SELECT median_us, low_us, high_us, sample_count FROM trials t WHERE {KEY} AND is_default "
                           "AND median_us > 0 ORDER BY id DESC", **key)
            default = row and list(row.values())
        best = winner or self.one(f"SELECT * FROM trials t WHERE {KEY} AND median_us > 0 ORDER BY median_us, id", **key)
        self.assertEqual(problem["decided"], winner is not None)
        self.close(problem["confidence"], winner and winner["confidence"], "confidence")
        self.assertEqual(problem["best_trial"], best and best["id"])
        self.assertEqual(problem["best_config"], best and json.loads(best["config"]))
        self.close(problem["energy_mj"], best and best["energy_mj"], "energy")
        default = default if default and default[0] is not None else None
        best_time = best and [best[name] for name in ("median_us", "low_us", "high_us", "sample_count")]
        for name, time in (("default", default), ("best", best_time)):
            self.assertEqual(problem[name] is None, time is None, name)
            for part, value in zip(("median_us", "low_us", "high_us", "count"), time or ()):
                self.close(problem[name][part], value, (name, part))
        speedup = default and best and {"value": default[0] / best_time[0], "low": default[1] / best_time[2],
                                     "high": default[2] / best_time[1]}
        self.assertEqual(problem["speedup"] is None, not speedup)
        for part in speedup or ():
            self.close(problem["speedup"][part], speedup[part], ("speedup", part))
        self.check_rates(context["roofline"], problem, key, best)
        self.assertEqual(problem["statuses"], {row["status"]: row["n"] for row in self.rows(
            f"SELECT status, count(*) AS n FROM trials t WHERE {KEY} AND stage = 'search' GROUP BY status", **key)})
        self.check_counts(problem, KEY, **key)

    def check_rates(self, roofline, problem, key, best):
        work = self.one("SELECT flops, bytes, flops / 1e3 AS f, bytes / 1e3 AS b FROM problems WHERE id = :problem",
                        **{"problem": key["problem"]})
        self.assertEqual({"dimensions": problem["dimensions"], "types": problem["types"]}, {
            name: json.loads(text) for name, text in self.one("SELECT dimensions, types FROM problems WHERE id = :problem",
                                                              problem=key["problem"]).items()})
        self.close(problem["flops"], work["flops"], "flops")
        self.close(problem["bytes"], work["bytes"], "bytes")
        self.close(problem["gflops"], work["f"] / best["median_us"] if best and work["f"] else None, "GFLOP/s")
        self.close(problem["gbs"], work["b"] / best["median_us"] if best and work["b"] else None, "GB/s")
        least = roofline and max(work["f"] / roofline["peak_gflops"], work["b"] / roofline["memory_gbps"])
        self.close(problem["roofline_us"], least, "roofline")
        self.close(problem["roofline_share"], least / best["median_us"] if best and least else None, "share")

    def check_searches(self, problem, key):
        sessions = self.rows(f"SELECT DISTINCT t.session_id AS id, s.searcher FROM trials t JOIN sessions s ON "
                             f"s.id = t.session_id WHERE {KEY} AND stage = 'search' ORDER BY 1", **key)
        self.assertEqual([(search["session"], search["searcher"]) for search in problem["searches"]],
                         [(session["id"], session["searcher"]) for session in sessions])
        for search in problem["searches"]:
            trials = self.rows(
                "SELECT number, best, ended FROM (SELECT row_number() OVER trial AS number, min(median_us) OVER trial "
                "AS best, (max(ended) OVER trial - first_value(started) "
                "OVER trial) / 1e3 AS ended FROM (SELECT id, median_us, started_unix_ms AS started, started_unix_ms + "
                "round(verify_ms + measure_ms) AS ended FROM trials t "
                f"WHERE {KEY} AND session_id = :session AND stage = 'search') WINDOW trial AS (ORDER BY id)) "
                "WHERE best IS NOT NULL ORDER BY number", **key, session=search["session"])
            total = self.one(f"SELECT count(*) AS n FROM trials t WHERE {KEY} AND session_id = :session AND "
                             "stage = 'search'", **key, session=search["session"])["n"]
            self.assertEqual(search["total"], total)
            falls = [trial for before, trial in zip([{"best": None}] + trials, trials) if trial["best"] != before["best"]
                     or trial["number"] == total]
            self.assertEqual(search["trials"], [trial["number"] for trial in falls])
            for at, trial in enumerate(falls):
                self.close(search["best_us"][at], trial["best"], "best so far", 1e-5)
                self.close(search["elapsed_s"][at], trial["ended"], "elapsed", 1e-5)

    def check_parameters(self, problem, key):
        names = {row["name"] for row in self.rows(f"SELECT DISTINCT j.key AS name FROM trials t, json_each(t.config) j "
                                                  f"WHERE {KEY}", **key)}
        self.assertEqual({parameter["name"] for parameter in problem["parameters"]}, names)
        times = collections.defaultdict(lambda: collections.defaultdict(list))
        for row in self.rows(f"SELECT j.key AS name, j.value, t.median_us FROM trials t, json_each(t.config) j "
                             f"WHERE {KEY} AND stage = 'search'", **key):
            times[row["name"]][row["value"]].append(row["median_us"])
        for parameter in problem["parameters"]:
            of_value = times[parameter["name"]]
            self.assertEqual(parameter["values"], sorted(of_value))
            for at, value in enumerate(parameter["values"]):
                ok = [time for time in of_value[value] if time is not None]
                self.assertEqual((parameter["trials"][at], parameter["ok"][at]), (len(of_value[value]), len(ok)))
                self.close(parameter["best_us"][at], min(ok, default=None), parameter["name"], 1e-5)
                self.close(parameter["median_us"][at], statistics.median(ok) if ok else None, parameter["name"], 1e-5)
            bests = [time for time in parameter["best_us"] if time is not None]
            self.close(parameter["effect"], max(bests) / min(bests) if len(bests) > 1 else None, "effect", 1e-4)
        self.check_heat(problem, key)

    def check_heat(self, problem, key):
        heat = problem["heat"] or {"parameters": [], "pairs": []}
        values = {parameter["name"]: parameter["values"] for parameter in problem["parameters"]}
        self.assertEqual([(pair["x"], pair["y"]) for pair in heat["pairs"]],
                         list(itertools.combinations(range(len(heat["parameters"])), 2)))
        for pair in heat["pairs"]:
            x, y = heat["parameters"][pair["x"]], heat["parameters"][pair["y"]]
            best = {(row["x"], row["y"]): row["best"] for row in self.rows(
                "SELECT json_extract(config, '$.' || :x) AS x, json_extract(config, '$.' || :y) AS y, min(median_us) "
                f"AS best FROM trials t WHERE {KEY} AND stage = 'search' GROUP BY 1, 2", **key, **{"x": x, "y": y})}
            self.assertEqual((len(pair["best_us"]), len(pair["best_us"][0])), (len(values[y]), len(values[x])))
            for row, of_y in zip(pair["best_us"], values[y]):
                for shown, of_x in zip(row, values[x]):
                    self.close(shown, best.get((of_x, of_y)), (x, y), 1e-5)

    def check_configurations(self, problem, key):
        table = problem["configurations"]
        self.assertEqual((table["shown"], table["of"]), (len(table["rows"]), problem["trials"] + problem["finals"]))
        self.assertEqual(table["columns"], [parameter["name"] for parameter in problem["parameters"]])
        self.assertEqual([row["trial"] for row in table["rows"] if row["best"]],
                         [problem["best_trial"]] if problem["best_trial"] else [])
        for row in table["rows"]:
            trial = self.one(f"SELECT * FROM trials t WHERE {KEY} AND id = :id", **key, id=row["trial"])
            config = json.loads(trial["config"])
            self.assertEqual(row["values"], [config.get(name) for name in table["columns"]])
            for name in ("status", "stage", "reason"):
                self.assertEqual(row[name], trial[name], name)
            for name, of_any_code in (("registers", "registers"), ("local_bytes", "registers"),
                                      ("local_loads", "instructions"), ("local_stores", "instructions"),
                                      ("instructions", "instructions"), ("ffma", "instructions")):
                self.assertEqual(row[name], trial[name] if trial[of_any_code] else None, name)
            self.assertEqual(row["default"], bool(trial["is_default"]))
            self.assertEqual((row["session"], row["shared_bytes"], row["samples_counted"]),
                             (trial["session_id"], trial["static_shared_bytes"], trial["sample_count"]))
            for name in ("median_us", "low_us", "high_us"):
                self.close(row[name], trial[name], name)
            self.close(row["occupancy"], trial["occupancy"] or None, "occupancy", 1e-5)
            self.close(row["energy_mj"], trial["energy_mj"], "energy")
            finite = trial["max_error"] is not None and math.isfinite(trial["max_error"])
            self.close(row["max_error"], trial["max_error"] if finite else None, "error")
            means = self.one("SELECT avg(temperature_c) AS temperature_c, avg(sm_clock_mhz) AS sm_clock_mhz, "
                             "avg(power_w) AS power_w, count(*) AS n FROM samples WHERE trial_id = :id AND mark IS NULL",
                             id=trial["shared_trial_id"] or row["trial"])
            for name in ("temperature_c", "sm_clock_mhz", "power_w"):
                self.close(row[name], means[name], name, 1e-5)
            samples = [sample["us"] for sample in self.rows(
                "SELECT time_us * :scale AS us FROM samples WHERE trial_id = :id AND mark IS NULL ORDER BY ordinal",
                id=trial["shared_trial_id"] or row["trial"], scale=trial["clock_scale"])]
            if len(samples) <= len(row["samples_us"] or []):
                for shown, sample in zip(row["samples_us"] or [], samples):
                    self.close(shown, sample, "sample", 1e-5)
            else:
                self.assertTrue(all(any(math.isclose(shown, sample, rel_tol=1e-5) for sample in samples)
                                    for shown in row["samples_us"]))

    def check_failures(self, context):
        expected = self.rows(
            f"SELECT t.status, {REASON} AS reason, count(*) AS count, group_concat(DISTINCT n.name) AS kernels FROM trials t JOIN "
            "kernels n ON n.id = t.kernel_id WHERE t.median_us IS NULL AND device_id = :device AND toolkit_id = :toolkit "
            "GROUP BY 1, 2", **self.context_key(context))
        shown = [{name: failure[name] for name in ("status", "reason", "count")} |
                 {"kernels": sorted(failure["kernels"])} for failure in context["failures"]]
        for failure in expected:
            failure["kernels"] = sorted(failure["kernels"].split(","))
        self.assertCountEqual(shown, expected)
        for failure in context["failures"]:
            first = self.one("SELECT t.config_text, p.text FROM trials t JOIN problems p ON p.id = t.problem_id WHERE "
                             f"t.status = :status AND {REASON} = :reason AND device_id = :device AND toolkit_id = :toolkit "
                             "ORDER BY t.id", **self.context_key(context), status=failure["status"],
                             reason=failure["reason"])
            self.assertEqual((failure["config"], failure["problem"]), (first["config_text"], first["text"]))
        self.assertEqual([failure["count"] for failure in shown],
                         sorted((failure["count"] for failure in shown), reverse=True))

    def check_sessions(self):
        self.assertEqual([session["id"] for session in self.document["sessions"]],
                         [row["id"] for row in self.rows("SELECT id FROM sessions ORDER BY id")])
        for session in self.document["sessions"]:
            row = self.one("SELECT s.*, d.name AS device FROM sessions s JOIN devices d ON d.id = s.device_id WHERE "
                           "s.id = :id", id=session["id"])
            for name in ("uuid", "run_uuid", "device", "started_unix_ms", "finished_unix_ms", "state", "spent_ms",
                         "searcher", "command_line", "program_version"):
                self.assertEqual(session[name], row[name], name)
            self.assertEqual((session["seed"], session["alive"]), (row["seed"] % (1 << 64), False))
            first = self.one("SELECT device_id AS device, toolkit_id AS toolkit FROM trials WHERE session_id = :id "
                             "ORDER BY id", id=session["id"])
            shown = session["context"]
            self.assertEqual(shown if shown is None else self.context_key(self.document["contexts"][shown]), first)
            self.check_counts(session, "session_id = :id", id=session["id"])
            counts = self.one("SELECT count(*) AS samples FROM samples s JOIN trials t ON t.id = s.trial_id WHERE "
                              "t.session_id = :id", id=session["id"])
            self.assertEqual(session["samples"], counts["samples"])
            marks = {row["mark"]: row["n"] for row in self.rows(
                "SELECT mark, count(*) AS n FROM samples s JOIN trials t ON t.id = s.trial_id WHERE t.session_id = :id "
                "AND mark IS NOT NULL GROUP BY mark", id=session["id"])}
            self.assertEqual(session["discarded"], marks)
            if session["telemetry"]:
                self.check_telemetry(session, sum(marks.values()))

    def check_telemetry(self, session, discarded):
        telemetry = session["telemetry"]
        extremes = self.one(
            "SELECT count(*) AS readings, min(unix_ms) AS first, max(unix_ms) AS last, min(temperature_c) AS coldest, "
            "max(temperature_c) AS hottest, min(sm_clock_mhz) AS slowest, max(power_w) AS most FROM telemetry WHERE "
            "session_id = :id", id=session["id"])
        self.assertEqual(telemetry["readings"], extremes["readings"])
        self.assertLessEqual(len(telemetry["unix_ms"]), 1500)
        self.assertEqual(sum(stretch["count"] for stretch in telemetry["discarded"]), discarded)
        if telemetry["unix_ms"]:
            self.assertEqual((min(telemetry["unix_ms"]), max(telemetry["unix_ms"])),
                             (extremes["first"], extremes["last"]))
        self.check_readings(session["id"], telemetry)
        for name, pick, value in (("temperature_c", min, "coldest"), ("temperature_c", max, "hottest"),
                                  ("sm_clock_mhz", min, "slowest"), ("power_w", max, "most")):
            known = [reading for reading in telemetry[name] if reading is not None]
            self.close(pick(known, default=None), extremes[value], name, 1e-5)

    def check_readings(self, session, telemetry):
        """Every point is a reading, and every reading was taken in the state that is shown at its time."""
        names = ("temperature_c", "sm_clock_mhz", "memory_clock_mhz", "power_w", "canary_us")
        readings = {row["unix_ms"]: row for row in self.rows("SELECT * FROM telemetry WHERE session_id = :id",
                                                             id=session)}
        for at, moment in enumerate(telemetry["unix_ms"]):
            for name in names:
                self.close(telemetry[name][at], readings[moment][name], name, 1e-5)
        spans = telemetry["states"]
        for before, after in zip(spans, spans[1:]):
            self.assertEqual(before["to_unix_ms"], after["from_unix_ms"])
            self.assertNotEqual(before["state"], after["state"])
        ends = [span["from_unix_ms"] for span in spans] + [spans[-1]["to_unix_ms"] + 1] if spans else []
        self.assertEqual(ends[-1:], [max(readings) + 1] if readings else [])
        for moment, reading in readings.items():
            self.assertEqual(spans[bisect.bisect(ends, moment) - 1]["state"], reading["governor_state"])
        for stretch in telemetry["discarded"]:
            trials = self.one("SELECT count(*) AS n FROM samples s JOIN trials t ON t.id = s.trial_id WHERE t.session_id = "
                              ":id AND mark IS NOT NULL AND started_unix_ms >= :begin AND started_unix_ms + "
                              "round(verify_ms + measure_ms) <= :end", id=session, begin=stretch["from_unix_ms"],
                              end=stretch["to_unix_ms"])
            self.assertEqual(stretch["count"], trials["n"])

    def model_problems(self, workload, scope):
        """Calls of matmul problems by text, from the workload's file: one phase at one value of its symbols."""
        calls = collections.Counter()
        for entry in workload["entries"]:
            if entry["kernel"] != "matmul" or entry["phase"] != scope["phase"] or "alternative_of" in entry:
                continue
            sizes = {name: eval(str(value).replace("/", "//"), {}, dict(scope["symbols"]))
                     for name, value in (dict.fromkeys(("EPILOGUE", "NORM", "HEAD_DIM", "POSITIONS"), 0)
                                         | entry["dimensions"]).items()}
            storage = scope["types"]["STORAGE"]
            calls[f"matmul M={sizes['M']} N={sizes['N']} K={sizes['K']} EPILOGUE={sizes['EPILOGUE']} "
                  f"NORM={sizes['NORM']} HEAD_DIM={sizes['HEAD_DIM']} POSITIONS={sizes['POSITIONS']} "
                  f"STORAGE={storage} WEIGHT={storage}"] += entry["count"]
        return calls

    def check_model(self):
        workload = json.loads(MODEL.read_text(encoding="utf-8"))
        phases = self.document["contexts"][0]["workload"]["phases"]
        self.assertTrue(phases)
        self.check_calls(workload)
        totals = collections.defaultdict(list)
        for phase in phases:
            sums = collections.Counter()
            confidences, tuned = [], 0
            for text, count in self.model_problems(workload, phase).items():
                row = self.one("SELECT w.*, t.is_default, t.median_us, t.low_us, t.high_us FROM winners w JOIN trials t ON t.id = "
                               "w.trial_id JOIN problems p ON p.id = w.problem_id WHERE p.text = :text", text=text)
                tuned += bool(row)
                if row and not row["is_default"]:
                    confidences.append(row["confidence"])
                # A problem without a winner stays at its default.
                row = row or self.one(
                    "SELECT d.median_us AS baseline_median_us, d.low_us AS baseline_low_us, d.high_us AS baseline_high_us, "
                    "d.median_us, d.low_us, d.high_us FROM trials d JOIN problems p ON p.id = d.problem_id WHERE p.text = :text "
                    "AND d.is_default AND d.median_us > 0 ORDER BY d.id DESC", text=text)
                if not row:
                    continue
                for name in ("baseline_median_us", "baseline_low_us", "baseline_high_us", "median_us", "low_us",
                             "high_us"):
                    sums[name] += count * row[name]
            self.assertEqual(phase["tuned"], tuned)
            self.assertEqual(len(phase["untuned"]) + phase["untuned_more"], phase["problems"] - tuned)
            calls = self.model_problems(workload, phase)
            tuned_texts = {row["text"] for row in self.rows("SELECT p.text FROM problems p JOIN winners w ON w.problem_id = p.id")}
            self.assertEqual({entry["problem"]: entry["count"] for entry in phase["untuned"]
                              if entry["kernel"] == "matmul"},
                             {text: count for text, count in calls.items() if text not in tuned_texts})
            self.check_model_times(phase, sums, confidences)
            tuned_here = {text for text in calls if text in tuned_texts}
            totals[json.dumps(phase["types"])].append((phase, sums, confidences, tuned_here))
        self.check_totals(totals)

    def check_model_times(self, entry, sums, confidences):
        self.close(entry["default_us"], sums["baseline_median_us"], "default of the model")
        self.close(entry["best_us"], sums["median_us"], "best of the model")
        self.close(entry["speedup"], sums["baseline_median_us"] / sums["median_us"], "speedup of the model")
        self.assertLessEqual(entry["speedup_low"], entry["speedup"])
        self.assertLessEqual(entry["speedup"], entry["speedup_high"])
        self.close(entry["confidence"], min(confidences, default=0.5), "confidence")

    def check_totals(self, totals):
        """Of all phases with the same element types together."""
        listed = self.document["contexts"][0]["workload"]["totals"]
        self.assertEqual([json.dumps(total["types"]) for total in listed], list(totals))
        for total, parts in zip(listed, totals.values()):
            sums = sum((one for _, one, _, _ in parts), collections.Counter())
            confidences = [value for _, _, values, _ in parts for value in values]
            self.check_model_times(total, sums, confidences)
            tuned = set().union(*(texts for _, _, _, texts in parts))
            self.assertEqual(total["tuned"], len(tuned))
            self.assertEqual(sum(phase["untuned_more"] for phase, _, _, _ in parts), 0)
            untuned = {entry["problem"] for phase, _, _, _ in parts for entry in phase["untuned"]}
            self.assertGreaterEqual(total["problems"], len(tuned | untuned), "phases that are not listed count, too")

    def check_calls(self, workload):
        """Calls of each problem over all phases, and the card's rates, as NVIDIA's data sheet has them."""
        calls = collections.Counter()
        for phase in workload["phases"]:
            for values in itertools.product(*phase["symbols"].values()):
                for storage in workload["types"]["STORAGE"]:
                    calls += self.model_problems(workload, {"phase": phase["name"], "types": {"STORAGE": storage},
                                                            "symbols": dict(zip(phase["symbols"], values))})
        for problem in self.document["contexts"][0]["kernels"][0]["problems"]:
            self.assertEqual(problem["count"], calls.get(problem["text"]))
        roofline = self.document["contexts"][0]["roofline"]
        self.close(roofline["peak_gflops"], 2 * 3584 * 1.582, "peak", 1e-6)
        self.assertEqual(roofline["memory_gbps"], 484)
