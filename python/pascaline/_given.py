"""Contents of buffers that sweeps measure with."""

import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from ._errors import ArgumentError
from ._words import path_text


def on_host(value: Any) -> Any:
    """Returns the array as a NumPy array in host memory."""
    if hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):
        return value.get()
    if type(value).__module__.partition(".")[0] == "torch":
        return value.detach().cpu().numpy()
    return value


class Given:
    """Buffers by name, each a file or an array. Arrays are copied once, into memory that the measuring process maps.

    `words`: NAME=FILE of each, valid inside the `with` block.
    """

    def __init__(self, name: str, contents: Mapping[str, Any] | None) -> None:
        if contents is not None and not isinstance(contents, Mapping):
            raise TypeError(f"{name}: expected a dict from buffer names to arrays or files, not {type(contents).__name__}")
        self._name, self._contents = name, contents or {}
        self._files: list[BinaryIO] = []
        self.words: list[str] = []

    def __enter__(self) -> "Given":
        self.words = [f"{buffer}={self._file(buffer, value)}" for buffer, value in self._contents.items()]
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def _file(self, buffer: str, value: Any) -> str:
        where = f"{self._name}['{buffer}']"
        if isinstance(value, (str, os.PathLike)):
            return path_text(where, value)
        array = on_host(value)
        if not hasattr(array, "__array_interface__"):
            raise TypeError(f"{where}: {type(value).__name__} is neither an array nor a file")
        import numpy

        file = open(os.memfd_create(f"pascaline-{buffer}"), "wb")
        self._files.append(file)
        try:
            numpy.save(file, numpy.ascontiguousarray(array), allow_pickle=False)
            file.flush()
        except ValueError as error:
            raise ArgumentError(f"{where}: {error}") from None
        return f"/proc/{os.getpid()}/fd/{file.fileno()}"
