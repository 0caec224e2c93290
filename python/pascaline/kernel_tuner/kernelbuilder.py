"""A kernel as a Python function, as Kernel Tuner's module of this name."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import ArgumentError
from .._words import Path
from . import _arguments
from ._judge import launched
from ._space import Folder, Request, Space
from .integration import TuneResults
from ._asked import require_cuda
from ._sweeps import device_of, name_of
from .interface import Size, Source, Texts


class PythonKernel:
    """Compiles a kernel in one configuration; calls run it on copies of their arguments, and return the arrays of `outputs`.

    Arguments as for `run_kernel`. inputs, outputs: whether each argument is one, by default all. Arguments that are not inputs are
    those given here. results_file: a file of `store_results`, whose best configuration is taken."""

    def __init__(self, kernel_name: str, kernel_string: Source, problem_size: Size, arguments: Sequence[Any],
                 params: Mapping[str, Any] | None = None,
                 inputs: Sequence[bool] | None = None, outputs: Sequence[bool] | None = None, device: int | str | None = None,
                 platform: int = 0,
                 block_size_names: Sequence[str] | None = None, grid_div_x: Texts = None, grid_div_y: Texts = None,
                 grid_div_z: Texts = None,
                 verbose: bool = True, lang: str | None = None, results_file: Path | None = None) -> None:
        require_cuda(lang)
        self._device = device_of(device)
        self.params = dict(params or {})
        if results_file is not None:
            self.params.update(TuneResults(results_file).get_best_config(name_of(self._device), problem_size))
        self._arguments = [_arguments.on_host(one) for one in arguments]
        self._inputs, self._outputs = (list(one) if one else [True] * len(self._arguments) for one in (inputs, outputs))
        values = {name: [value] for name, value in self.params.items()} or {"kt_unused": [1]}
        self._space = Space(Request(kernel_name, kernel_string, problem_size, self._arguments, values,
                                    (grid_div_x, grid_div_y, grid_div_z), None, None,
                                    block_size_names))
        self._folder = Folder(None)
        folder = self._folder.__enter__()  # it is gone with this object
        self._kernel = self._space.kernel(folder, os.path.join(folder, "none.db"))

    def run_kernel(self, args: Sequence[Any]) -> list[Any]:
        """The arrays of `outputs` after a launch."""
        if len(args) != len(self._arguments):
            raise ArgumentError(f"args: {self._space.name} takes {len(self._arguments)}, not {len(args)}")
        given = [_arguments.on_host(one) if is_input else mine
                 for one, mine, is_input in zip(args, self._arguments, self._inputs)]
        for i, (one, mine) in enumerate(zip(given, self._arguments)):
            if not _arguments.is_array(mine) and one != mine:
                raise ArgumentError(f"args[{i}]: the scalar is {mine} in this kernel, which is compiled with it, not {one}; make another PythonKernel")
        after = launched(self._kernel, given, self._device)
        return [one for one, is_output in zip(after, self._outputs) if is_output and _arguments.is_array(one)]

    def __call__(self, *args: Any) -> list[Any]:
        return self.run_kernel(args)
