"""The exceptions, which are the compiled module's; a type checker reads here what they are."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:

    class Error(Exception):
        code: int

    class ArgumentError(Error, ValueError): ...

    class CudaError(Error): ...

    class DeviceLostError(CudaError): ...

    class NvrtcError(Error):
        log: str

    class EmulatorError(Error): ...

    class OutOfMemoryError(Error, MemoryError):
        needed_bytes: int
        free_bytes: int

    class MissingCodeError(Error): ...

    class StoreError(Error): ...

    class StoreBusyError(StoreError): ...

    class SpaceError(Error, ValueError):
        file: str
        pointer: str

else:
    from ._native import (
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

__all__ = [
    "ArgumentError",
    "CudaError",
    "DeviceLostError",
    "EmulatorError",
    "Error",
    "MissingCodeError",
    "NvrtcError",
    "OutOfMemoryError",
    "SpaceError",
    "StoreBusyError",
    "StoreError",
]
