"""Files of results in the format of Kernel Tuner's cache."""

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from .._errors import ArgumentError
from .._words import Path, path_text
from ._functions import listed
from .util import ERRORS, NpEncoder, Result, RuntimeFailedConfig, WrongResultConfig

_TIMES = ("compile_time", "verification_time", "benchmark_time")


def key_of(config: Iterable[Any]) -> str:
    return ",".join(map(str, config))


def _sizes(problem_size: Any) -> str:
    """The sizes without ones at the end."""
    return "x".join(map(str, listed(problem_size))).removesuffix("x1").removesuffix("x1")


class Cache:
    """A file, and the results in it, by the values of their parameters."""

    def __init__(self, file: Path, kernel_name: str, problem_size: Any, tune_params: Mapping[str, Any], objective: str) -> None:
        path = path_text("cache", file)
        self.file = path if path.endswith(".json") else path + ".json"
        self._names = list(tune_params)
        self._head = {"kernel_name": kernel_name, "problem_size": "callable" if callable(problem_size) else problem_size,
                      "tune_params_keys": self._names,
                      "tune_params": {name: list(values) for name, values in tune_params.items()}, "objective": objective}
        self._results: dict[str, Result] = {}
        self.device_name = ""
        self.exists = os.path.isfile(self.file)
        if self.exists:
            self._read(kernel_name)

    def _read(self, kernel_name: str) -> None:
        with open(self.file, encoding="utf-8") as text:
            content = text.read().strip()
        try:
            try:
                document = json.loads(content)
            except ValueError:  # the end is missing where a run was interrupted
                document = json.loads(content.removesuffix(",") + "}\n}")
            entries, self.device_name = document["cache"], document["device_name"]
            names, kernel, size = document["tune_params_keys"], document["kernel_name"], document.get("problem_size", "callable")
            self._results = {key: {**entry} for key, entry in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ArgumentError(f"cache: {self.file} is not a cache of Kernel Tuner: {type(error).__name__}: {error}") from None
        if "callable" in (size, self._head["problem_size"]):
            size = self._head["problem_size"]
        for what, theirs, ours in (("the kernel", kernel, kernel_name), ("the parameters", names, self._names),
                                   ("the problem", _sizes(size), _sizes(self._head["problem_size"]))):
            if theirs != ours:
                raise ArgumentError(f"cache: {self.file} has results of {what} {theirs}, not {ours}; give another file")
        for entry in self._results.values():
            # An older file has it as the time.
            failed = next((value for value in entry.values() if isinstance(value, str) and value in ERRORS), None)
            if failed:
                entry.update({"__error__": ERRORS[failed](), "time": float("inf")})

    def require_device(self, name: str) -> None:
        if self.exists and self.device_name != name:
            raise ArgumentError(f"cache: {self.file} has results of the device {self.device_name}, not {name}; give another file")

    def known(self, values: Mapping[str, Any], conditions: Iterable[Any]) -> list[Result]:
        """Results of configurations that the search space has. They took no time now."""
        conditions = list(conditions)
        found = []
        for entry in self._results.values():
            config = {name: entry.get(name) for name in values}
            if all(config[name] in values[name] for name in values) and all(condition.holds(config)
                                                                            for condition in conditions):
                found.append({**entry, **config})
        return found

    def write(self, results: Iterable[Result], device_name: str) -> None:
        """Adds the results, and writes the file."""
        for result in results:
            entry = {name: value for name, value in result.items() if name not in ("time", "times")
                     or "__error__" not in result}
            if "__error__" in entry:  # a reader of the format knows no wrong results
                kind = RuntimeFailedConfig() if isinstance(entry["__error__"], WrongResultConfig) else entry["__error__"]
                entry["__error__"] = str(kind)
            self._results.setdefault(key_of(result[name] for name in self._names), {}).update(entry)
        entries = {key: {name: value for name, value in entry.items() if value != float("inf")}
                   for key, entry in self._results.items()}
        document = {"device_name": device_name, **self._head, "cache": entries}
        draft = self.file + ".draft"
        with open(draft, "w", encoding="utf-8") as out:
            out.write(json.dumps(document, cls=NpEncoder, indent=""))
        os.replace(draft, self.file)


def as_cached(result: Result) -> Result:
    """The result, which took no time to get."""
    return {**result, **dict.fromkeys(_TIMES, 0.0), "strategy_time": 0.0, "framework_time": 0.0}
