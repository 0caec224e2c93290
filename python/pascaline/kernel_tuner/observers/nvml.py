"""What a sweep measures of power, energy, clocks and temperature, under the names of Kernel Tuner's NVMLObserver."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..._errors import ArgumentError
from . import BenchmarkObserver

# By the names of results. Older scripts have other names of energy and power.
_KNOWN = {"nvml_energy": "energy", "nvml_power": "power", "energy": "energy", "power": "power", "temperature": "temperature",
          "core_freq": "core_freq"}


class NVMLObserver(BenchmarkObserver):
    """Gives results what the sweep measured.

    observables: "nvml_energy" (joules of a launch), "nvml_power" (watts), "temperature" (°C), "core_freq" (MHz). Where the device
        has no such sensor the value is not a number, of which a warning tells. The other arguments change nothing.
    """

    is_of_the_sweep = True

    def __init__(self, observables: Sequence[str], device: Any = None, save_all: bool = False, **_: Any) -> None:
        for name in observables:
            if name not in _KNOWN:
                raise ArgumentError(f"NVMLObserver: '{name}' is not measured; {', '.join(_KNOWN)} are")
        self.observables = list(observables)
        self._measured: Mapping[str, Any] = {}
        self._warned = False

    def take(self, measured: Mapping[str, Any]) -> None:
        """Is given the measurements of a result, of which `get_results` then tells."""
        self._measured = measured

    def get_results(self) -> dict[str, Any]:
        found = {name: self._measured.get(_KNOWN[name], math.nan) for name in self.observables}
        missing = [name for name, value in found.items() if math.isnan(value)]
        if missing and not self._warned:
            self._warned = True
            warnings.warn(f"the device does not measure {', '.join(missing)}, which are not a number in results", stacklevel=3)
        return found


def _refuse(*_: Any, **__: Any) -> Any:
    raise ArgumentError("clocks and power limits are not set by Pascaline, so they cannot be tuned; lock them (nvidia-smi -lgc) before a sweep")


get_nvml_gr_clocks = get_nvml_mem_clocks = get_nvml_pwr_limits = get_idle_power = nvml = _refuse
