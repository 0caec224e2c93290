"""Observers of Kernel Tuner's that cannot be served."""

from typing import Any

from ..._errors import ArgumentError
from . import BenchmarkObserver


def refused(name: str, by: str) -> type[BenchmarkObserver]:
    """A class of that name, which raises ArgumentError."""

    def __init__(self: Any, *_: Any, **__: Any) -> None:
        raise ArgumentError(f"{name}: a sweep does not measure by way of {by}; NVMLObserver gives what it does measure")

    return type(name, (BenchmarkObserver,),
                {"__init__": __init__, "__doc__": f"Raises ArgumentError: a sweep does not measure by way of {by}."})
