"""Kernel Tuner's PMTObserver, which cannot be served."""

from typing import Any

from ..._errors import ArgumentError
from . import BenchmarkObserver


class PMTObserver(BenchmarkObserver):
    """Raises ArgumentError: a sweep does not measure by way of the Power Measurement Toolkit."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentError("PMTObserver: a sweep does not measure by way of the Power Measurement Toolkit; NVMLObserver gives what it does measure")
