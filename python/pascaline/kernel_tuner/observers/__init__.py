"""Observers of scripts: what they measure of a launch gets its place in the result of the configuration.

They are called around one launch of each configuration on the script's own arrays, in its own process, after the sweep.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class BenchmarkObserver:
    """The base of all."""

    dev: Any = None

    def register_device(self, dev: Any) -> None:
        """Keeps the device, of which `name` and `env` are known."""
        self.dev = dev

    def register_configuration(self, params: Mapping[str, Any]) -> None:
        """Is called before the launch of a configuration."""

    def before_start(self) -> None:
        """Is called before the launch."""

    def after_start(self) -> None:
        """Is called after the launch, which has then ended."""

    def during(self) -> None:
        """Is called once, after `after_start`."""

    def after_finish(self) -> None:
        """Is called at the end."""

    def get_results(self) -> Mapping[str, Any]:
        """What becomes part of the result."""
        raise NotImplementedError(f"{type(self).__name__} needs a method get_results, which gives a dict")


class IterationObserver(BenchmarkObserver):
    """One that measures a launch."""


class OutputObserver(BenchmarkObserver):
    """One that is given what the kernel computed, with the answer."""

    def process_output(self, answer: Sequence[Any] | None, output: Sequence[Any]) -> None:
        """Is called with the script's `answer` and the arguments after the launch."""


class PrologueObserver(BenchmarkObserver):
    """One of which only `before_start` and `after_finish` are called."""


class ContinuousObserver(BenchmarkObserver):
    """One that measures while a kernel is launched again and again. It cannot be served."""


__all__ = ["BenchmarkObserver", "ContinuousObserver", "IterationObserver", "OutputObserver", "PrologueObserver"]
