"""What a sweep found out about each configuration, as Kernel Tuner's results."""

import datetime
import json
import math
import statistics
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from .._errors import Error
from .._words import PROGRAM
from ._space import Space
from .util import CompilationFailedConfig, ErrorConfig, InvalidConfig, Result, RuntimeFailedConfig, WrongResultConfig

_FAILURES: dict[str, type[ErrorConfig]] = {
    "rejected": InvalidConfig, "compile_failed": CompilationFailedConfig, "wrong_result": WrongResultConfig}


class Trials:
    """The trials of a problem on the device of the database's last sweep; without one, of the kernel's last problem."""

    def __init__(self, db: str, kernel: str, problem: str | None = None) -> None:
        done = subprocess.run([PROGRAM, "export", "--format", "rows", "--db", db], capture_output=True, text=True)
        if done.returncode:
            raise Error(done.stderr.strip())
        # Its problem has no dimensions, so that its text is the kernel's name, and the hash of its arrays.
        trials = [row for row in map(json.loads, done.stdout.splitlines()) if row["row"] == "trial"
                  and (row["problem"] == problem if problem else row["problem"].partition(" ")[0] == kernel)]
        last = max(trials, key=lambda row: int(row["started_unix_ms"])) if trials else {"device": "", "problem": ""}
        self._stages: dict[str, dict[str, dict[str, Any]]] = {}
        # The last trial of a configuration counts, and one that ran before one that did not.
        for row in sorted(trials, key=lambda row: ("median_us" in row, int(row["started_unix_ms"]))):
            if (row["device"], row["problem"]) == (last["device"], last["problem"]):
                self._stages.setdefault(row["config_text"], {})[row["stage"]] = row

    def __len__(self) -> int:
        return len(self._stages)

    def results(self, space: Space) -> list[Result]:
        """Those that ran by their time, then those that failed."""
        found = [_result(space.parameters.config(next(iter(stages.values()))["config"]), stages)
                 for stages in self._stages.values()]
        return sorted(found, key=lambda result: float(result["time"]))

    @property
    def environment(self) -> dict[str, Any]:
        row = next(iter(next(iter(self._stages.values())).values()))
        return {"device_name": row["device"], "compiler": f"{row['compiler']} {row['compiler_version']}",
                "target": "emulator" if row["target"] == "host" else row["target"]}


def _result(config: Mapping[str, Any], stages: Mapping[str, dict[str, Any]]) -> Result:
    """Of finals and the search before them, the times of the finals are what counts."""
    search = stages.get("search", {})
    finals = stages.get("finals", {})
    counts = finals if "median_us" in finals or not search else search
    if "median_us" in search and "median_us" not in counts:
        counts = search
    times = [sample[1] / 1000 * counts["clock_scale"] for sample in counts.get("samples", ()) if not sample[4]]
    time = counts["median_us"] / 1000 if "median_us" in counts else math.inf
    started = datetime.datetime.fromtimestamp(counts["started_unix_ms"] / 1000, datetime.timezone.utc)
    result: Result = {
        **config, "time": time, "times": times or [time] * math.isfinite(time),
        "compile_time": counts["compile_ms"], "verification_time": max(search.get("verify_ms", 0), counts["verify_ms"]),
        "benchmark_time": max(search.get("measure_ms", 0), counts["measure_ms"]), "strategy_time": 0.0, "framework_time": 0.0,
        "timestamp": str(started), "status": counts["status"], "reason": counts["reason"]}
    if "median_us" not in counts:
        result.update({"__error__": _FAILURES.get(counts["status"], RuntimeFailedConfig)(),
                       "reason": f"{counts['status']}: {counts['reason']}"})
    return {**result, **_measured(counts), **config}  # a parameter may have one of these names


def _measured(row: Mapping[str, Any]) -> dict[str, Any]:
    """Measurements that not every device has."""
    found: dict[str, Any] = {}
    if row["registers"]:
        found.update({"registers": row["registers"], "shared_bytes": row["static_shared_bytes"],
                      "local_bytes": row["local_bytes"],
                      "occupancy": row["occupancy"]})
    samples = row.get("samples", ())
    for name, column in (("temperature", 2), ("core_freq", 3), ("power", 5)):
        values = [sample[column] for sample in samples if sample[column] is not None]
        if values:
            found[name] = statistics.fmean(values)
    if row.get("energy_mj") is not None:
        found["energy"] = row["energy_mj"] / 1000
        found.setdefault("power", row["energy_mj"] * 1000 / row["median_us"])
    elif "power" in found and "median_us" in row:
        found["energy"] = found["power"] * row["median_us"] / 1e6
    return found


def totals(results: Iterable[Result]) -> dict[str, float]:
    """The times that the results took together, in milliseconds."""
    parts = ("framework_time", "strategy_time", "compile_time", "verification_time", "benchmark_time")
    listed = list(results)
    return {"total_" + part: math.fsum(float(result.get(part, 0)) for result in listed) for part in parts}
