"""Sweeps over the search spaces of a script, and the replay of a cache."""

import math
import os
import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .._commands import Progress, devices
from .._errors import ArgumentError, Error
from .._kernel import Kernel
from .._words import Path, path_text
from . import _arguments
from ._cache import Cache, as_cached
from ._functions import Reading, listed, rows
from ._judge import Judge
from ._results import Trials
from ._space import Folder, NothingLeft, Request, Space
from .util import Result, WrongResultConfig

_REPEATS = 10  # of finals, where a winner turns out to be wrong
_MOST_KNOWN = 4096  # configurations of a cache that a search space leaves out


class _NoneAgrees(Error):
    """No configuration computes the same as the default, and the script has no answer."""


class Sweeps:
    """Sweeps over the search spaces of a script, on one device."""

    def __init__(self, place: str | None, wanted: dict[str, Any], progress: Progress, into: Path | None, db: Path | None,
                 cache: Cache | None) -> None:
        self._place, self._wanted, self._progress, self._into, self._db, self._cache = place, wanted, progress, into, db, cache

    def run(self, request: Request, judge: Judge) -> tuple[list[Result], dict[str, Any]]:
        """The results of the configurations, fastest first, and what they ran on."""
        known: list[Result] = []
        space: Space
        try:
            space = Space(request, judge.decides)
            if self._cache is not None:
                known = [as_cached(one) for one in self._cache.known(space.parameters.values, space.conditions)]
            if known:
                if len(known) > _MOST_KNOWN:
                    raise ArgumentError(f"cache: {len(known)} results are more than the {_MOST_KNOWN} that a search space can leave out; "
                                        "give simulation_mode=True to replay them, or `into` in place of cache")
                space = Space(request, judge.decides, known)
        except NothingLeft:
            if not known or self._cache is None:
                raise
            return known, {"device_name": self._cache.device_name}
        with Folder(self._into) as folder:
            try:
                found, environment = self._swept(space, folder, judge)
            except _NoneAgrees:
                warnings.warn(f"no two configurations of {space.name} compute the same: none is compared; give `answer` to have them "
                              "compared", stacklevel=3)
                found, environment = self._swept(Space(request, True, known), folder, judge)
        return found + known, environment

    def _swept(self, space: Space, folder: str, judge: Judge) -> tuple[list[Result], dict[str, Any]]:
        store = path_text("db", self._db) or os.path.join(folder, "tuned.db")
        kernel = space.kernel(folder, store)
        if judge.is_wanted:
            judge.register(lambda: name_of(self._place))
            wrong = judge.ask(space, self._place, space.default)
            if wrong and space.is_single:
                return [{**space.default, "time": math.inf, "__error__": WrongResultConfig(),
                         "reason": wrong}], {"device_name": name_of(self._place)}
        for _ in range(_REPEATS):
            try:
                summary = kernel.tune(device=self._place, progress=self._progress, inputs=space.inputs, **self._wanted)
            except KeyboardInterrupt:
                self._keep(Trials(store, kernel.name), space, judge)
                raise
            results, environment = self._judged(kernel, store, judge, space, summary)
            # A winner in a database that is kept would be launched; the next finals are without it.
            is_kept = bool(self._into or self._db)
            if not judge.decides or not is_kept or not any(self._is_wrong(won, space, judge) for won in kernel.winners()[:1]):
                break
            if "__error__" in results[0] or not space.leave_out(results):
                warnings.warn(f"the winner in {store} does not compute the answer: do not launch {kernel.name} from it",
                              stacklevel=4)
                break
            kernel = space.kernel(folder, store)
        return results, environment

    def _keep(self, trials: Trials, space: Space, judge: Judge) -> None:
        """Writes what an interrupted sweep measured into the cache; a script's answer would have to be asked of each."""
        if self._cache is not None and len(trials) and not judge.is_wanted:
            self._cache.write(trials.results(space), trials.environment["device_name"])

    @staticmethod
    def _is_wrong(won: Mapping[str, Any], space: Space, judge: Judge) -> bool:
        return space.config_of(won["config"]) in judge

    def _judged(self, kernel: Kernel, db: str, judge: Judge, space: Space,
                summary: Mapping[str, Any]) -> tuple[list[Result], dict[str, Any]]:
        trials = Trials(db, kernel.name, summary["problems"][0])
        if not len(trials):
            if summary["left_out"]:
                raise Error(f"no configuration was tried: {summary['left_out'][0]}")
            raise Error(f"no configuration was tried: the default one ({space.default}) did not end in time")
        results = trials.results(space)
        ran = [result for result in results if "__error__" not in result]
        if not ran and not space.is_judged and any(isinstance(one["__error__"], WrongResultConfig) for one in results):
            raise _NoneAgrees(results[0]["reason"])
        for result in ran if judge.is_wanted else ():
            config = {name: result[name] for name in space.parameters}
            wrong = judge.ask(space, self._place, config)
            if wrong is not None:
                result.update({"time": math.inf, "__error__": WrongResultConfig(), "reason": wrong})
            else:
                result.update(judge.observed.get(repr(config), {}))
        return sorted(results, key=lambda result: float(result["time"])), trials.environment


def replayed(request: Request, cache: Cache | None, wanted: Mapping[str, Any]) -> tuple[list[Result], dict[str, Any]]:
    """The results of a cache, as many as a search may try."""
    if cache is None or not cache.exists:
        raise ArgumentError(f"simulation_mode: it replays a cache, and {'no cache is given' if cache is None else f'the file {cache.file} does not exist'}")
    values, conditions = Space.conditions_of(request)
    found = cache.known(values, conditions)
    if not found:
        raise ArgumentError(f"simulation_mode: {cache.file} has no result of a configuration that meets the restrictions")
    if wanted["trials"] < len(found):
        found = random.Random(wanted.get("seed") or 1).sample(found, wanted["trials"])
    took = math.fsum(float(one.get(part, 0)) for one in found
                     for part in ("compile_time", "verification_time", "benchmark_time"))
    return found, {"device_name": cache.device_name, "simulation": True, "simulated_time": took}


def parts_of(request: Request) -> list[Request]:
    """One request for each choice of arguments that depend on parameters."""
    chosen = [one for one in request.arguments if isinstance(one, _arguments.Tunable)]
    if not chosen:
        return [request._replace(arguments=[_arguments.on_host(one) for one in request.arguments])]

    def keys(config: Mapping[str, Any]) -> tuple[Any, ...]:
        try:
            return tuple(one.key(config) for one in chosen)
        except (KeyError, NameError) as error:
            raise ArgumentError(f"arguments: a Tunable has no array for {dict(config)}: {error}") from None

    parts: list[Request] = []
    values = {name: list(given) for name, given in request.tune_params.items()}
    for wanted in dict.fromkeys(row.result for row in rows("arguments", keys, values)):
        taken = iter(wanted)
        arguments = [_arguments.on_host(one[next(taken)] if isinstance(one, _arguments.Tunable) else one)
                     for one in request.arguments]

        def is_this(config: Reading, wanted: Any = wanted) -> bool:
            return bool(keys(config) == wanted)

        parts.append(request._replace(arguments=arguments, restrictions=[*listed(request.restrictions), _OfConfig(is_this)]))
    return parts


class _OfConfig:
    """A restriction of this module's, whose source is not looked at."""

    __name__ = "the arguments"

    def __init__(self, function: Callable[[Reading], bool]) -> None:
        self._function = function

    def __call__(self, config: Reading) -> bool:
        return self._function(config)


def device_of(device: Any) -> str | None:
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device: {type(device).__name__} is not the number or the name of a device")
    return device


def name_of(place: str | None) -> str:
    """The name of the device that a sweep takes."""
    found = devices()["devices"]
    usual = sorted(found, key=lambda one: not one["id"].startswith("cuda"))
    chosen = [one for one in found if one["id"] == place] if place else usual
    return str(chosen[0]["name"]) if chosen else str(place)
