"""Arguments of several precisions, and how far results are from the answer, as Kernel Tuner's module of this name."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy

from .._errors import ArgumentError
from ._arguments import Tunable, on_host
from .observers import OutputObserver

_TYPES: dict[str, Any] = {"half": numpy.float16, "float": numpy.float32, "double": numpy.float64}


class TunablePrecision(Tunable):
    """An array as several types, of which the parameter param_key names one.

    dtypes: names and NumPy's types, or a list of names; by default "half", "float" and "double"."""

    def __init__(self, param_key: Union[str, Callable[..., Any]], array: Any,
                 dtypes: Union[Mapping[str, Any], Sequence[str], None] = None) -> None:
        named = dtypes if isinstance(dtypes, Mapping) else {name: _TYPES.get(name, name) for name in dtypes or _TYPES}
        values = numpy.asarray(on_host(array)) if not isinstance(array, numpy.generic) else array
        super().__init__(param_key, {name: values.astype(dtype) for name, dtype in named.items()})


Metric = Callable[[Any, Any], Any]
_METRICS: dict[str, Callable[[Any, Any, float], Any]] = {
    "mse": lambda a, b, least: numpy.mean((a - b)**2),
    "rmse": lambda a, b, least: numpy.sqrt(numpy.mean((a - b)**2)),
    "nrmse": lambda a, b, least: numpy.sqrt(numpy.mean((a - b)**2) / numpy.mean(a**2)),
    "mae": lambda a, b, least: numpy.mean(numpy.abs(a - b)),
    "mre": lambda a, b, least: numpy.mean(numpy.abs(a - b) / numpy.maximum(numpy.abs(a), least)),
    "rmsre": lambda a, b, least: numpy.sqrt(numpy.mean(((a - b) / numpy.maximum(numpy.abs(a), least))**2)),
    "male": lambda a, b, least: numpy.mean(numpy.abs(numpy.log10(a + least) - numpy.log10(b + least))),
    "rmsle": lambda a, b, least: numpy.sqrt(numpy.mean((numpy.log10(a + least) - numpy.log10(b + least))**2)),
    "max": lambda a, b, least: numpy.max(numpy.abs(a - b)),
    "max rel": lambda a, b, least: numpy.max(numpy.abs(a - b) / numpy.maximum(numpy.abs(a), least))}
_LONG = {"mean squared": "mse", "root mean squared": "rmse", "normalized root mean squared": "nrmse", "absolute": "mae",
         "mean absolute": "mae",
         "relative": "mre", "mean relative": "mre", "root mean squared relative": "rmsre", "mean absolute logarithmic": "male",
         "root mean squared logarithmic": "rmsle", "maximum": "max", "maximum absolute": "max", "maximum relative": "max rel"}
_SHORT = {"average": "mean", "avg": "mean", "square": "squared", "sq": "squared", "max": "maximum", "rel": "relative",
          "abs": "absolute",
          "log": "logarithmic"}


def error_metric_from_name(user_key: str, EPS: float = 1e-8) -> Metric:
    """How far an array is from another by a measure's name: MSE, "root mean square error", "max rel" and so on."""
    key = re.sub(r"[\s_-]+", " ", user_key.lower().replace("error", " ")).strip()
    long = " ".join(_SHORT.get(word, word) for word in key.split())
    metric = _METRICS.get(key) or _METRICS.get(_LONG.get(long, ""))
    if metric is None:
        raise ArgumentError(f"metric: '{user_key}' is unknown; known are {', '.join(_METRICS)}")
    return lambda a, b: metric(numpy.asarray(a, numpy.float64), numpy.asarray(b, numpy.float64), EPS)


class AccuracyObserver(OutputObserver):
    """Gives results how far what they compute is from the answer, as `key`.

    metric: the name of a measure, or a function of answer and result; by default the root mean square. atol: by how much relative
        measures divide at least."""

    def __init__(self, metric: Union[str, Metric, None] = None, key: str = "error", *, atol: float = 1e-8) -> None:
        self.key = key
        self.metric: Metric = metric if callable(metric) else error_metric_from_name(metric or "rmse", atol)
        self.result: float | None = None

    def process_output(self, answer: Sequence[Any] | None, output: Sequence[Any]) -> None:
        if answer is None:
            raise ArgumentError("AccuracyObserver: it compares with the answer; give `answer`")
        self.result = max(float(self.metric(wanted, found)) for wanted, found in zip(answer, output) if wanted is not None)

    def get_results(self) -> dict[str, Any]:
        return {self.key: self.result}


__all__ = ["AccuracyObserver", "Tunable", "TunablePrecision", "error_metric_from_name"]
