"""Scripts that were written for Kernel Tuner, with another import: `from pascaline import kernel_tuner`.

`tune_kernel` and `run_kernel` take its arguments: a kernel with macros, a dict of their values, restrictions, divisors of
the grid. The arguments become a search space and its kernel (docs/python.md says what becomes what), which `Kernel` tunes
and launches. What cannot be taken over raises ArgumentError, which names it.
"""

from . import observers, strategies, util
from .integration import create_device_targets, store_results
from .interface import run_kernel, tune_cache, tune_kernel
from .util import CompilationFailedConfig, ErrorConfig, InvalidConfig, RuntimeFailedConfig, WrongResultConfig

__all__ = ["CompilationFailedConfig", "ErrorConfig", "InvalidConfig", "RuntimeFailedConfig", "WrongResultConfig",
           "create_device_targets", "observers",
           "run_kernel", "store_results", "strategies", "tune_cache", "tune_kernel", "util"]
