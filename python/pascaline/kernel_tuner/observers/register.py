"""Kernel Tuner's observer of registers, which a sweep knows."""

import math
from collections.abc import Mapping
from typing import Any

from . import BenchmarkObserver


class RegisterObserver(BenchmarkObserver):
    """Gives results their registers of a thread as `num_regs`; not a number on the emulated device."""

    is_of_the_sweep = True

    def __init__(self) -> None:
        self._measured: Mapping[str, Any] = {}

    def take(self, measured: Mapping[str, Any]) -> None:
        """Is given the measurements of a result."""
        self._measured = measured

    def get_results(self) -> dict[str, Any]:
        return {"num_regs": self._measured.get("registers", math.nan)}
