"""Kernel Tuner's NCUObserver, which cannot be served."""

from typing import Any

from ..._errors import ArgumentError
from . import BenchmarkObserver


class NCUObserver(BenchmarkObserver):
    """Raises ArgumentError: a sweep does not measure by way of NVIDIA's profiler."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentError("NCUObserver: a sweep does not measure by way of NVIDIA's profiler; NVMLObserver gives what it does measure")
