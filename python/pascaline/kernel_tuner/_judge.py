"""Launches of configurations on the script's own arrays, in its own process: answers and observers."""

import inspect
import math
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._errors import ArgumentError, Error
from .._kernel import Kernel
from . import _arguments
from ._space import Folder, Space
from .observers import BenchmarkObserver, ContinuousObserver, OutputObserver, PrologueObserver


def launched(kernel: Kernel, arguments: Sequence[Any], device: str | None, constants: Sequence[Any] = (),
             around: Callable[[Callable[[], None]], None] | None = None) -> list[Any]:
    """Copies of the arguments after a launch, or after those that `around` does. constants: arrays of constant memory, launched after them."""
    after = [_arguments.copied(value) for value in arguments]
    arrays = [_arguments.flat(value) for value in [*after, *constants] if _arguments.is_array(value)]

    def run() -> None:
        kernel.run(*arrays, device=device)

    (around or (lambda launch: launch()))(run)
    return after


def observers_of(given: Sequence[Any] | None) -> list[Any]:
    """The observers, of which some may be functions that make them."""
    found = [one if hasattr(one, "get_results") and not isinstance(one, type) else one() for one in given or ()
             if one is not None]
    for one in found:
        name = type(one).__name__
        if not hasattr(one, "get_results"):
            raise TypeError(f"observers: {name} is not a BenchmarkObserver")
        if isinstance(one, ContinuousObserver) or hasattr(one, "continuous_observer"):
            raise ArgumentError(f"observers: {name} measures while a kernel runs again and again, which a sweep does in another process; "
                                "NVMLObserver gives what the sweep measures")
    return found


class Judge:
    """Whether configurations compute the answer on the script's own arrays, and what observers make of a launch."""

    def __init__(self, answer: Any, arguments: Sequence[Any], atol: float, verify: Callable[..., Any] | None,
                 observers: Sequence[Any]) -> None:
        if answer is not None:
            if isinstance(answer, str) or not isinstance(answer, Sequence):
                raise TypeError(f"answer: {type(answer).__name__} is not a list with an entry for each argument")
            if len(answer) != len(arguments):
                raise ArgumentError(f"answer: it has {len(answer)} entries for {len(arguments)} arguments")
            answer = [_arguments.on_host(one) for one in answer]
        self._answer, self._arguments, self._atol, self._verify = answer, arguments, atol, verify
        self._observers = [one for one in observers if not getattr(one, "is_of_the_sweep", False)]
        self._right: set[str] = set()
        self.decides = answer is not None or verify is not None
        self.is_wanted = self.decides or bool(self._observers)
        self.reasons: dict[str, str] = {}  # of those that are wrong
        self.raised: Exception | None = None  # by verify, the last time
        self.observed: dict[str, dict[str, Any]] = {}

    def __contains__(self, config: Mapping[str, Any]) -> bool:
        return repr(config) in self.reasons

    def register(self, name: Callable[[], str]) -> None:
        """Shows the observers the device."""
        for one in self._observers:
            if hasattr(one, "register_device"):
                device = name()
                one.register_device(types.SimpleNamespace(name=device, env={"device_name": device}, max_threads=1024))

    def ask(self, space: Space, device: str | None, config: Mapping[str, Any]) -> str | None:
        """Why the configuration is wrong, None if it is right."""
        key = repr(config)
        if key not in self._right and key not in self.reasons:
            try:
                with Folder(None) as folder:
                    reason = self._reason(launched(space.single(config, folder), self._arguments, device, space.constants, self._around(config)))
                if self._observers:
                    self.observed[key] = {name: value for one in self._observers
                                          for name, value in (one.get_results() or {}).items()}
            except ArgumentError:
                raise
            except Error as error:
                reason = f"on the arrays given: {error}"
            if reason is None:
                self._right.add(key)
            else:
                self.reasons[key] = reason
        return self.reasons.get(key)

    def complaint(self) -> str:
        config, reason = next(iter(self.reasons.items()))
        return f"answer: none of {len(self.reasons)} configurations computes it: {reason} ({config})"

    def _around(self, config: Mapping[str, Any]) -> Callable[[Callable[[], None]], None]:
        def around(launch: Callable[[], None]) -> None:
            for one in self._observers:
                one.register_configuration(dict(config))
            for moment in ("before_start", "", "after_start", "during", "after_finish"):
                if not moment:
                    launch()
                for one in self._observers:
                    if moment and not (isinstance(one, PrologueObserver) and moment in ("after_start", "during")):
                        getattr(one, moment)()

        return around

    def _reason(self, result: list[Any]) -> str | None:
        if self._answer is not None:  # of arguments without an answer nothing is shown, as in Kernel Tuner
            result = [found if wanted is not None else None for wanted, found in zip(self._answer, result)]
        writers = [one for one in self._observers if isinstance(one, OutputObserver) or hasattr(one, "process_output")]
        for one in writers:
            one.process_output(self._answer, result)
        if self._verify is not None:
            taken = inspect.signature(self._verify).parameters
            named = {"atol": self._atol} if "atol" in taken else {}
            rest = () if named or len(taken) < 3 else (self._atol,)
            given = list(self._answer) if self._answer is not None else None
            try:
                return None if self._verify(given, result, *rest, **named) else "verify refuses what it computes"
            except Exception as error:  # what the sweep measured is not lost for it
                self.raised = error
                return f"verify raised {type(error).__name__}: {error}"
        if self._answer is None or writers:  # an observer that looks at results decides in place of a comparison, as in Kernel Tuner
            return None
        import numpy

        for index, (wanted, found) in enumerate(zip(self._answer, result)):
            if wanted is None:
                continue
            if numpy.size(wanted) != numpy.size(found):
                raise ArgumentError(f"answer: the one of arguments[{index}] is {list(numpy.shape(wanted))}, not "
                                    f"{list(numpy.shape(found))}")
            if numpy.asarray(wanted).dtype.names != numpy.asarray(found).dtype.names:
                raise ArgumentError(f"answer: the one of arguments[{index}] has not the members {numpy.asarray(found).dtype.names}")
            for right, own in zip(_arguments.parts(numpy.ravel(wanted)), _arguments.parts(numpy.ravel(found))):
                if not numpy.allclose(right, own, atol=self._atol):
                    kind = complex if numpy.iscomplexobj(own) else float
                    with numpy.errstate(all="ignore"):
                        apart = numpy.abs(numpy.asarray(right, kind) - numpy.asarray(own, kind))
                    worst = float(numpy.nanmax(apart)) if numpy.isfinite(apart).any() else math.nan
                    return f"what it computes differs in arguments[{index}], by up to {worst:g}"
        return None
