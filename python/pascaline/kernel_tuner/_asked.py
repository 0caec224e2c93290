"""Arguments of scripts that say how to search, as options of a sweep, and by what to sort."""

import difflib
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import ArgumentError
from . import strategies
from .util import Result, cost, get_objective_defaults

SWEEPS = ("time", "energy", "edp", "sustained")  # objectives of sweeps
OF_SWEEPS = {"nvml_energy": "energy"}  # by the names of results
_ALL = 1_000_000_000


def require_cuda(lang: Any) -> None:
    if lang is not None and str(lang).upper() not in ("CUDA", "CUPY", "NVCUDA"):
        host = "; code of the host is not run" if str(lang).upper() == "C" else ""
        raise ArgumentError(f"lang: kernels in {lang} cannot be run here, only CUDA{host}")


def require_no_textures(texmem_args: Any) -> None:
    if texmem_args:
        raise ArgumentError("texmem_args: texture references cannot be set, and CUDA 12 has none; pass the array as an argument, and read "
                            "it with __ldg, or write a search space with a texture object")


def goals_of(objective: Any, higher: Any, objectives: Any) -> list[tuple[str, bool]]:
    """The objectives, and whether more of each is better."""
    if objectives:
        if not isinstance(objectives, Mapping):
            raise TypeError(f"objectives: {type(objectives).__name__} is not a dict of objectives, and whether more of each is better")
        return [(str(name), bool(more)) for name, more in objectives.items()]
    names = [objective] if isinstance(objective, (str, type(None))) else list(objective)
    more = list(higher) if isinstance(higher, (list, tuple)) else [higher] * len(names)
    if len(names) != len(more):
        raise ArgumentError("objective_higher_is_better: it has not one entry for each objective")
    known = {"edp": False, "sustained": False}
    return [get_objective_defaults(name, known.get(str(name)) if one is None else one) for name, one in zip(names, more)]


def sort(results: list[Result], goals: Sequence[tuple[str, bool]]) -> None:
    name, more = goals[0]
    if name in ("edp", "sustained"):  # which finals decide, and results do not tell
        name, more = "time", False
    right = [result for result in results if "__error__" not in result]
    if right and all(math.isinf(cost(result, name, more)) for result in right):
        raise ArgumentError(f"objective: no result has a number as '{name}'; results have {', '.join(right[0])}")
    results.sort(key=lambda result: ("__error__" in result, cost(result, name, more), float(result.get("time", math.inf))))


def wanted_of(options: Mapping[str, Any], strategy: Any, strategy_options: Mapping[str, Any] | None, iterations: Any,
              seed: int | None, parallel: Any,
            objective: str) -> dict[str, Any]:
    """Options of the sweep."""
    older = ("parallel_runner", "use_noodles", "num_threads")
    samples = max(3, _number("iterations", iterations, int))
    wanted: dict[str, Any] = {"min_samples": samples, "max_samples": samples,
                              **{name: value for name, value in options.items() if name not in older}}
    name = _strategy(strategy)
    searcher = {"brute_force": "exhaustive", "random_sample": "random"}.get(name, "auto")
    wanted.setdefault("searcher", searcher)
    most, seconds = ((strategy_options or {}).get(one) for one in ("max_fevals", "time_limit"))
    wanted.setdefault("trials", _number("max_fevals", most, int) if most else _ALL if searcher == "exhaustive" else 100)
    if seconds is not None:
        wanted.setdefault("budget", f"{max(1, math.ceil(_number('time_limit', seconds, float)))}s")
    if seed is not None:
        wanted.setdefault("seed", seed)
    if isinstance(parallel, int) and not isinstance(parallel, bool) and parallel > 0:
        wanted.setdefault("jobs", parallel)
    of_sweep = OF_SWEEPS.get(objective, objective)
    wanted["objective"] = of_sweep if of_sweep in SWEEPS and of_sweep != "time" else None
    if objective not in (*SWEEPS, *OF_SWEEPS) and searcher != "exhaustive":
        warnings.warn(f"the search looks for the shortest time; results are sorted by {objective}", stacklevel=3)
    return wanted


def _strategy(strategy: Any) -> str:
    if strategy is None:
        return "brute_force"
    if not isinstance(strategy, str):
        raise ArgumentError(f"strategy: one's own ({getattr(strategy, '__name__', type(strategy).__name__)}) cannot be taken over; give the name of one, "
                            "or a `searcher` of Pascaline's")
    name = strategy.strip().lower().replace(" ", "_")
    if name not in strategies.KNOWN:
        near = difflib.get_close_matches(name, strategies.KNOWN, 1)
        raise ArgumentError(f"strategy: '{strategy}' is unknown" + (f"; did you mean '{near[0]}'?" if near
                                                                    else f"; known are {', '.join(strategies.KNOWN)}"))
    return name


def _number(name: str, value: Any, kind: type) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{name}: {type(value).__name__} is not a number")
    return value
