"""Kernels of the caller's own."""

import os
from collections.abc import Iterable
from typing import Any, Union

from . import _native
from ._commands import Progress, explain, kernels, sweep, winners
from ._errors import ArgumentError
from ._words import Path, Problem, path_text, problem_text, text_of


class Kernel:
    """A CUDA kernel of your own, tuned and launched: `k.cu` with a search space `k.json` beside it.

    source: the kernel's file; space: its search space (docs/search_spaces.md), by default that of the same name in the
        same folder. Both have the same stem, which is the kernel's name.
    db: where winners are stored and looked up; default: the user's database.

    Raises ArgumentError for names that do not fit, SpaceError for a search space that is wrong, Error for files that are
    not there.
    """

    def __init__(self, source: Path, space: Path | None = None, *, db: Path | None = None) -> None:
        self._source = path_text("source", source)
        if not self._source.endswith(".cu"):
            raise ArgumentError(f"source: {self._source} does not end in .cu")
        self._space = path_text("space", space) or self._source[:-3] + ".json"
        self.name = os.path.basename(self._source)[:-3]
        if os.path.basename(self._space) != self.name + ".json":
            raise ArgumentError(f"space: {self._space} must be called {self.name}.json, as the kernel is {self.name}.cu")
        for name, file in (("source", self._source), ("space", self._space)):
            if not os.path.isfile(file):
                raise ArgumentError(f"{name}: there is no file {file}")
        self._kernels = os.path.dirname(self._source) or "."
        self._spaces = os.path.dirname(self._space) or "."
        self._db = path_text("db", db)
        self._native = _native.OwnKernel(self.name, self._kernels, self._spaces)

    def __repr__(self) -> str:
        return f"Kernel({self._source!r}: {', '.join(self.arrays)})"

    @property
    def arrays(self) -> list[str]:
        """Names of the arrays that a launch takes, in their order."""
        names: list[str] = self._native.arrays()
        return names

    @property
    def space(self) -> dict[str, Any]:
        """Dimensions, types, parameters with their values, and constraints, as `pascaline.kernels(name)`."""
        found: dict[str, Any] = kernels(self.name, kernels=self._kernels, spaces=self._spaces)
        return found

    def tune(
        self, problems: Union[Problem, Iterable[Problem], None] = None, *, progress: Progress = None, **options: Any
    ) -> dict[str, Any]:
        """Finds the fastest configuration of each problem, as `pascaline.sweep` with its options; launches use it from
        then on. Returns the summary."""
        for name in ("kernel", "kernels", "spaces", "db", "model", "workload"):
            if name in options:
                raise TypeError(f"{name} is not an argument of Kernel.tune: the kernel has its own")
        try:
            return sweep(problems, kernel=self.name, kernels=self._kernels, spaces=self._spaces, db=self._db or None,
                         progress=progress, **options)
        finally:
            self._native.reload(self._db)

    def launch(self, *arrays: Any, device: str | None = None, stream: Any = None, **problem: Union[int, str]) -> None:
        """Runs the fastest configuration known of a problem. On a GPU it returns when the kernel is queued, on the stream that
        operations would take (see `pascaline.ops`), and can be captured into a CUDA graph if the problem was launched before;
        on the emulated device it waits.

        arrays: of any library with DLPack or `__cuda_array_interface__`, in the order of `arrays`, used where they lie,
            without a copy; contiguous, at addresses that are multiples of 16 bytes, of the types and numbers of elements
            that the search space says. Results are written into those that the kernel writes.
        stream: one of PyTorch, CuPy or another library in place of the current one, or a handle; of a GPU.
        device: "emulator" or nothing for arrays in host memory, which are computed by the emulated device.
        problem: its dimensions and types, N=1000; those with a default may be left out.
        """
        self._native.launch(problem_text("problem", problem), arrays, text_of("device", device), stream, self._db)

    __call__ = launch

    def run(self, *arrays: Any, device: str | None = None, **problem: Union[int, str]) -> None:
        """As `launch`, on copies: arrays in host memory are copied to the device (default: the first GPU, or the emulated
        device where there is none), and what the kernel writes is copied back."""
        self._native.run(problem_text("problem", problem), arrays, text_of("device", device), self._db)

    def explain(
        self, problems: Union[Problem, Iterable[Problem], None] = None, *, device: str | None = None
    ) -> list[dict[str, Any]]:
        """Which configuration a launch of each problem takes, and why: a dict each."""
        return explain(problems, kernel=self.name, kernels=self._kernels, spaces=self._spaces,
                       db=self._db if self._db and os.path.exists(self._db) else None, device=device)

    def winners(self, problem: Problem | None = None) -> list[dict[str, Any]]:
        """The configurations chosen so far, newest first, a dict each."""
        if not os.path.exists(self._db or _native.default_database()):
            return []
        return winners(self._db or None, kernel=self.name, problem=problem)
