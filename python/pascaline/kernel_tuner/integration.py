"""Files of the best configurations, and headers made of them, as Kernel Tuner's module of this name."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import ArgumentError
from .._words import Path, path_text
from ._functions import listed
from ._source import is_file
from .util import NpEncoder, Result, cost, get_objective_defaults

_KEYS = ("version_number", "kernel_name", "tunable_parameters", "objective", "data")


def _size_text(problem_size: Any) -> str:
    return problem_size if isinstance(problem_size, str) else "x".join(str(size) for size in listed(problem_size))


def _identifier(device: str) -> str:
    return re.sub("[^0-9a-zA-Z]+", "_", device.strip())


class TuneResults:
    """The results in a file of `store_results`."""

    def __init__(self, results_filename: Path) -> None:
        file = path_text("results_filename", results_filename)
        if not os.path.isfile(file):
            raise ArgumentError(f"results_filename: the file {file} does not exist")
        with open(file, encoding="utf-8") as text:
            try:
                self.meta: dict[str, Any] = json.load(text)
                self.data: list[dict[str, Any]] = self.meta["data"]
                missing = [key for key in _KEYS if key not in self.meta]
                missing += [key for one in self.data
                            for key in ("device_name", "problem_size", "tunable_parameters", self.meta["objective"])
                            if key not in one]
            except (ValueError, KeyError, TypeError) as error:
                raise ArgumentError(f"results_filename: {file} has no results of store_results: {error}") from None
        if missing or self.meta["version_number"] != "1.0":
            raise ArgumentError(f"results_filename: {file} has no results of store_results in version 1.0" + (f": '{missing[0]}' is missing" if missing else ""))
        self.objective: str = self.meta["objective"]
        self.objective_higher_is_better = bool(self.meta.get("objective_higher_is_better", False))

    def get_best_config(self, gpu_name: str = "default", problem_size: Any = None) -> dict[str, Any]:
        """The best for a problem on a GPU; where that is not known, the one that is among the best most often."""
        on_it = [one for one in self.data if one["device_name"] == _identifier(gpu_name)]
        of_size = [one for one in on_it if problem_size and one["problem_size"] == _size_text(problem_size)]
        sign = -1 if self.objective_higher_is_better else 1
        if of_size:
            return dict(min(of_size, key=lambda one: sign * float(one[self.objective]))["tunable_parameters"])
        if not self.data:
            raise ArgumentError("results_filename: the file has no results")
        groups: dict[str, list[dict[str, Any]]] = {}
        for one in on_it or self.data:
            groups.setdefault(json.dumps(one["tunable_parameters"], sort_keys=True), []).append(one)
        best = min(groups.values(), key=lambda group: (-len(group), sign * sum(float(one[self.objective]) for one in group)))
        return dict(best[0]["tunable_parameters"])


def store_results(results_filename: Path, kernel_name: str, kernel_string: Any, tune_params: Mapping[str, Any],
                  problem_size: Any, results: Sequence[Result],
                  env: Mapping[str, Any], top: float = 3, objective: str | None = None,
                  objective_higher_is_better: bool | None = None) -> None:
    """Writes those results that are within `top` percent of the best, beside those of other devices and problems in the file."""
    objective, higher = get_objective_defaults(objective, objective_higher_is_better)
    right = [one for one in results if objective in one and "__error__" not in one]
    if not right:
        raise ArgumentError(f"results: none has '{objective}'")
    best = min(cost(one, objective, higher) for one in right)
    chosen = [one for one in right if cost(one, objective, higher) <= best + abs(best) * top / 100]
    file = path_text("results_filename", results_filename)
    if os.path.isfile(file):
        meta = TuneResults(file).meta
        for what, ours, theirs in (("kernel", kernel_name, meta["kernel_name"]), ("objective", objective, meta["objective"]),
                                   ("parameters", sorted(tune_params), sorted(meta["tunable_parameters"]))):
            if ours != theirs:
                raise ArgumentError(f"results_filename: {file} is of the {what} {theirs}, not {ours}; give another file")
    else:
        meta = {"version_number": "1.0", "kernel_name": kernel_name, "objective": objective,
                "objective_higher_is_better": higher,
                "tunable_parameters": list(tune_params), "data": []}
        if isinstance(kernel_string, (str, os.PathLike)):
            meta["kernel_string"] = _text(kernel_string)
    device, size = _identifier(str(env["device_name"])), _size_text(problem_size)
    kept = [one for one in meta["data"] if (one["device_name"], one["problem_size"]) != (device, size)]
    meta["data"] = kept + [{"device_name": device, "problem_size": size,
                            "tunable_parameters": {name: one[name] for name in tune_params},
                            objective: one[objective]} for one in chosen]
    with open(file, "w", encoding="utf-8") as out:
        out.write(json.dumps(meta, cls=NpEncoder, indent=1))


def _text(kernel: Any) -> str:
    if isinstance(kernel, str) and not (is_file(kernel) and os.path.isfile(kernel)):
        return kernel
    with open(kernel, encoding="utf-8", errors="replace") as code:
        return code.read()


def create_device_targets(header_filename: Path, results_filename: Path, objective: str | None = None,
                          objective_higher_is_better: bool | None = None) -> None:
    """Writes a header with the best configuration for each device of a file of `store_results`, as macros that are defined where
    `TARGET_<device>` is, and one for all others. While tuning it defines nothing."""
    found = TuneResults(results_filename)
    if objective is not None:
        found.objective, found.objective_higher_is_better = get_objective_defaults(objective, objective_higher_is_better)

    def macros(config: Mapping[str, Any]) -> str:
        return "".join(f"#define {name} {int(value) if isinstance(value, bool) else value}\n" for name, value in config.items())

    targets = list(dict.fromkeys(str(one["device_name"]) for one in found.data))
    lines = "".join(f"#{'elif' if i else 'if'} defined(TARGET_{name})\n{macros(found.get_best_config(name))}"
                    for i, name in enumerate(targets))
    with open(path_text("header_filename", header_filename), "w", encoding="utf-8") as out:
        out.write("// Written by pascaline.kernel_tuner: the best configurations of "
                  f"{found.meta['kernel_name']}.\n#pragma once\n#ifndef kernel_tuner\n{lines}#else\n{macros(found.get_best_config())}#endif\n#endif\n")
