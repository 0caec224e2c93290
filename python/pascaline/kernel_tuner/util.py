"""What Kernel Tuner's module of this name has for scripts: errors of configurations, objectives, metrics, texts."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from .._errors import ArgumentError

Result = dict[str, Any]
Metrics = Mapping[str, Union[str, Callable[..., Any]]]


class ErrorConfig(str):
    """The `__error__` of a configuration that failed; its text is the name of its class, as in Kernel Tuner."""

    def __new__(cls, *_: object) -> "ErrorConfig":
        return super().__new__(cls, cls.__name__)


class InvalidConfig(ErrorConfig):
    """It cannot be launched on this device."""


class CompilationFailedConfig(ErrorConfig):
    """It does not compile."""


class RuntimeFailedConfig(ErrorConfig):
    """Its launch failed, crashed or took too long."""


class WrongResultConfig(ErrorConfig):
    """It computes something else."""


ERRORS: dict[str, type[ErrorConfig]] = {
    kind.__name__: kind
    for kind in (ErrorConfig, InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig, WrongResultConfig)}

# True where more is better.
_MORE_IS_BETTER = {"time": False, "energy": False, "nvml_energy": False, "power": False, "nvml_power": False,
                   "temperature": False, "cost": False,
                   "loss": False, "error": False, "registers": False, "fitness": True, "GFLOP/s": True, "TFLOP/s": True,
                   "GB/s": True, "TB/s": True,
                   "GFLOPS/W": True, "TFLOPS/W": True, "GFLOP/J": True, "TFLOP/J": True}


class NpEncoder(json.JSONEncoder):
    """Writes NumPy's numbers and arrays as JSON."""

    def default(self, o: Any) -> Any:
        for method in ("item", "tolist"):
            if hasattr(o, method) and (method == "tolist" or not getattr(o, "shape", ())):
                return getattr(o, method)()
        return super().default(o)


def get_objective_defaults(objective: str | None, objective_higher_is_better: bool | None) -> tuple[str, bool]:
    """The objective, by default "time", and whether more of it is better."""
    objective = objective or "time"
    if objective_higher_is_better is None:
        if objective not in _MORE_IS_BETTER:
            raise ArgumentError(f"objective_higher_is_better: say whether more of the objective '{objective}' is better")
        objective_higher_is_better = _MORE_IS_BETTER[objective]
    return objective, bool(objective_higher_is_better)


def cost(result: Mapping[str, Any], objective: str, higher: bool) -> float:
    """A number that is smaller for better results; infinite for those that failed or have no value."""
    value = result.get(objective)
    if "__error__" in result or value is None or math.isnan(float(value)):
        return math.inf
    return -float(value) if higher else float(value)


def get_best_config(results: Iterable[Result], objective: str = "time", objective_higher_is_better: bool = False) -> Result:
    """The best result that did not fail."""
    return min(results, key=lambda result: cost(result, objective, objective_higher_is_better))


def get_pareto_results(results: Iterable[Result], objectives: Sequence[str],
                       objective_higher_is_better: Sequence[bool]) -> list[Result]:
    """The results to which no other is better in one objective and at least as good in all."""
    costs = [(tuple(cost(result, *one) for one in zip(objectives, objective_higher_is_better)), result)
             for result in results if "__error__" not in result]
    return [result for mine, result in costs
            if not any(all(a <= b for a, b in zip(other, mine)) and other != mine for other, _ in costs)]


def get_config_string(params: Mapping[str, Any], keys: Iterable[str] | None = None,
                      units: Mapping[str, str] | None = None) -> str:
    """The entries as `a=1, time=0.123`."""
    wanted = set(params if keys is None else keys)
    return ", ".join(f"{name}={format(value, '.3f') if isinstance(value, float) else value}{(units or {}).get(name, '')}"
                     for name, value in params.items() if name in wanted)


def get_instance_string(params: Mapping[str, Any]) -> str:
    """The values with underscores between."""
    return "_".join(str(value) for value in params.values())


def process_metrics(params: Result, metrics: Metrics | None) -> Result:
    """Adds each metric to a result: what a function makes of the result, or the value of an expression of its entries."""
    for name, metric in (metrics or {}).items():
        try:
            if callable(metric):
                params[name] = metric(params)
            elif isinstance(metric, str):
                # The caller's own code, as a function would be. A name such as GB/s cannot be used.
                params[name] = eval(metric, {"__builtins__": {"min": min, "max": max, "abs": abs, "round": round, "int": int,
                                                              "float": float}}, params)
            else:
                raise TypeError(f"metrics: {name}: {type(metric).__name__} is neither a function nor a text")
        except (NameError, SyntaxError) as error:
            raise ArgumentError(f"metrics: {name}: {error}") from None
        except KeyError as error:
            raise ArgumentError(f"metrics: {name}: a result has no {error}; it has {', '.join(params)}") from None
    return params
