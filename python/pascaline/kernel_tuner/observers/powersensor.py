"""Kernel Tuner's PowerSensorObserver, which cannot be served."""

from typing import Any

from ..._errors import ArgumentError
from . import BenchmarkObserver


class PowerSensorObserver(BenchmarkObserver):
    """Raises ArgumentError: a sweep does not measure by way of a PowerSensor."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ArgumentError("PowerSensorObserver: a sweep does not measure by way of a PowerSensor; NVMLObserver gives what it does measure")
