"""Which shapes a program calls."""

import json
import os
import re
from types import TracebackType
from typing import Any

from . import _native
from ._errors import ArgumentError
from ._words import Path, path_text, write_text


class Capture:
    """Counts the shapes that operations are called with within a `with` statement, of all threads; see `capture`.

    problems: when it has ended, a dict each of `kernel`, `dimensions`, `types` and `count`, in the order of the first calls.
    """

    def __init__(self) -> None:
        self.problems: list[dict[str, Any]] = []
        self._number: int | None = None

    def __enter__(self) -> "Capture":
        if self._number is not None:
            raise ArgumentError("this capture has begun already; make another one")
        self._number = _native.begin_capture()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.problems = json.loads(_native.end_capture(self._number or 0))
        self._number = None

    def write(self, file: Path, description: str = "Captured from a program's calls.") -> None:
        """Writes a workload for `sweep(workload=file)`: what was counted is one pass of its one phase. The file's name is the
        workload's, and ends in .json."""
        name = path_text("file", file)
        stem = os.path.basename(name).removesuffix(".json")
        if not name.endswith(".json") or not re.fullmatch(r"[\w.-]+", stem, re.ASCII):
            raise ArgumentError(f"file: {name} is not a name of letters, digits, '_', '-' and '.' that ends in .json")
        if not self.problems:
            raise ArgumentError("there is nothing to write: no operation was called")
        entries = [{"kernel": problem["kernel"], "name": f"{problem['kernel']}_{number}", "phase": "pass",
                    "dimensions": problem["dimensions"], "types": problem["types"], "count": problem["count"]}
                   for number, problem in enumerate(self.problems, 1)]
        workload = {"schema": 1, "name": stem, "description": description, "source": "pascaline.capture", "types": {},
                    "phases": [{"name": "pass", "per": "captured pass", "symbols": {}}], "entries": entries}
        write_text("file", name, json.dumps(workload, indent=1) + "\n")


def capture() -> Capture:
    """Which shapes a program calls, for tuning them:

        with pascaline.capture() as shapes:
            model(inputs)
        shapes.write("mine.json")
        pascaline.sweep(workload="mine.json", budget="2h")

    Operations in host memory count, too, as what their kernels would be launched with.
    """
    return Capture()
