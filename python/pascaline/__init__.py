"""Pascaline: tunes CUDA kernels for NVIDIA Pascal GPUs, and runs the fastest of them on arrays.

What the command line does is here as functions: `sweep`, `resume`, `status`, `show`, `report` and others. `ops` has the
tuned operations for arrays of NumPy, PyTorch, CuPy and other libraries.
Whatever is refused raises `Error` or one of its kinds; a value that does not fit, `ArgumentError` (a ValueError, too); an
argument of a wrong type, TypeError.
"""

from . import _words  # finds the installation, before anything else
from . import ops, packed
from ._capture import Capture, capture
from ._commands import (
    Progress,
    devices,
    explain,
    kernels,
    probe,
    probes,
    report,
    resume,
    sessions,
    show,
    status,
    sweep,
    trials,
    winners,
    workload,
)
from ._errors import (
    ArgumentError,
    CudaError,
    DeviceLostError,
    EmulatorError,
    Error,
    MissingCodeError,
    NvrtcError,
    OutOfMemoryError,
    SpaceError,
    StoreBusyError,
    StoreError,
)
from ._frames import Page, frame, page
from ._kernel import Kernel
from ._model import Model
from ._words import Problem

__version__: str = _words.VERSION

__all__ = [
    "ArgumentError",
    "Capture",
    "CudaError",
    "DeviceLostError",
    "EmulatorError",
    "Error",
    "Kernel",
    "MissingCodeError",
    "Model",
    "NvrtcError",
    "OutOfMemoryError",
    "Page",
    "Problem",
    "Progress",
    "SpaceError",
    "StoreBusyError",
    "StoreError",
    "capture",
    "devices",
    "explain",
    "frame",
    "kernels",
    "ops",
    "packed",
    "page",
    "probe",
    "probes",
    "report",
    "resume",
    "sessions",
    "show",
    "status",
    "sweep",
    "trials",
    "winners",
    "workload",
]
