"""Files of results and of what they were measured on, in the T4 format, as Kernel Tuner's module of this name."""

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from .._commands import devices
from .._words import VERSION, Path, path_text
from .util import CompilationFailedConfig, InvalidConfig, NpEncoder, Result, WrongResultConfig

_VERSION = "1.0.0"
_TIMES = {"compilation": "compile_time", "benchmark": "benchmark_time", "framework": "framework_time",
          "search_algorithm": "strategy_time",
          "validation": "verification_time"}
_NO_MEASUREMENTS = {*_TIMES.values(), "timestamp", "times", "status", "reason", "__error__"}


def _validity(result: Result) -> str:
    kinds = {CompilationFailedConfig: "compile", InvalidConfig: "constraints", WrongResultConfig: "correctness"}
    return next((text for kind, text in kinds.items() if isinstance(result["__error__"], kind)),
                "runtime") if "__error__" in result else "correct"


def get_t4_results(results: Sequence[Result], tune_params: Mapping[str, Any], objective: str = "time") -> dict[str, Any]:
    """The results as T4 has them."""
    entries = []
    for result in results:
        measured = {name: value for name, value in result.items() if name not in tune_params and name not in _NO_MEASUREMENTS
                    and value != float("inf")}
        entries.append({
            "timestamp": result.get("timestamp", ""), "configuration": {name: result[name] for name in tune_params},
            "times": {**{name: result.get(ours, 0.0) for name, ours in _TIMES.items()}, "runtimes": result.get("times", [])},
            "invalidity": _validity(result), "correctness": int(not isinstance(result.get("__error__"), WrongResultConfig)),
            "measurements": [{"name": name, "value": value, "unit": "ms" if name.startswith("time") else ""}
                             for name, value in measured.items()],
            "objectives": [objective]})
    return {"results": entries, "schema_version": _VERSION, "metadata": {"timeunit": "milliseconds"}}


def store_output_file(output_filename: Path, results: Sequence[Result], tune_params: Mapping[str, Any],
                      objective: str = "time") -> None:
    """Writes the results of `tune_kernel`; the file's name gets `.json` if it lacks that."""
    _write(output_filename, get_t4_results(results, tune_params, objective))


def get_t4_metadata() -> dict[str, Any]:
    """The machine, its devices, and the versions of what measures on them, as T4 has them."""
    environment = {"device_query": {"pascaline": devices()}, "requirements": [f"pascaline=={VERSION}", *_installed()]}
    machine = {"machine": platform.machine(), "processor": platform.processor(), "cores": os.cpu_count()}
    return {"metadata": {"operating_system": platform.system(), "hardware": {"hardware_description": [machine]},
                         "environment": environment},
            "schema_version": _VERSION}


def store_metadata_file(metadata_filename: Path) -> None:
    """Writes what results are measured on; the file's name gets `.json` if it lacks that."""
    _write(metadata_filename, get_t4_metadata())


def _installed() -> list[str]:
    found = []
    for name in ("numpy", "cupy", "torch"):
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def _write(file: Path, document: Mapping[str, Any]) -> None:
    path = path_text("filename", file)
    path = path if path.endswith(".json") else path + ".json"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(json.dumps(document, cls=NpEncoder, indent=1))
