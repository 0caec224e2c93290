"""Kernel Tuner's TegraObserver, which cannot be served."""

from typing import Any

from ..._errors import ArgumentError
from . import BenchmarkObserver


class TegraObserver(BenchmarkObserver):
    """Raises ArgumentError: a sweep does not measure by way of a Jetson's own sensors."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentError("TegraObserver: a sweep does not measure by way of a Jetson's own sensors; NVMLObserver gives what it does measure")
