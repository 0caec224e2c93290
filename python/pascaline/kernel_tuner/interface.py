"""`tune_kernel` and `run_kernel`, with Kernel Tuner's arguments."""

import difflib
import math
import os
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from .._commands import Progress, devices
from .._errors import ArgumentError, Error
from .._kernel import Kernel
from .._words import Path, path_text
from . import _arguments, strategies
from ._cache import Cache, as_cached
from ._functions import Reading, listed, rows
from ._judge import Judge, launched, observers_of
from ._results import Trials, totals
from ._space import Folder, NothingLeft, Request, Space
from .util import (Metrics, Result, WrongResultConfig, cost, get_best_config, get_objective_defaults, get_pareto_results,
                   process_metrics)

Parameters = Mapping[str, Sequence[Any]]
Function = Callable[..., Any]
Texts = Union[str, int, Function, Sequence[Union[str, int, Function]], None]
Size = Union[int, str, Sequence[Union[int, str]], Function]
Source = Union[Path, Function, Sequence[Path]]

_ALL = 1_000_000_000
_REPEATS = 10  # of finals, where a winner turns out to be wrong
_MOST_KNOWN = 4096  # configurations of a cache that a search space leaves out
_SWEEPS = ("time", "energy", "edp", "sustained")  # objectives of sweeps
_OF_SWEEPS = {"nvml_energy": "energy"}  # by the names of results


def tune_kernel(
    kernel_name: str,
    kernel_source: Source,
    problem_size: Size,
    arguments: Sequence[Any],
    tune_params: Parameters,
    grid_div_x: Texts = None,
    grid_div_y: Texts = None,
    grid_div_z: Texts = None,
    restrictions: Texts = None,
    answer: Sequence[Any] | None = None,
    atol: float = 1e-6,
    verify: Callable[..., Any] | None = None,
    verbose: bool = False,
    lang: str | None = None,
    device: Union[int, str, None] = None,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Union[str, Function]] | None = None,
    log: Any = None,
    iterations: int = 7,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    strategy: Any = None,
    strategy_options: Mapping[str, Any] | None = None,
    cache: Path | None = None,
    metrics: Metrics | None = None,
    simulation_mode: bool | None = None,
    parallel: Union[bool, int, None] = None,
    observers: Sequence[Any] | None = None,
    objective: Union[str, Sequence[str], None] = None,
    objective_higher_is_better: Union[bool, Sequence[bool], None] = None,
    objectives: Mapping[str, bool] | None = None,
    seed: int | None = None,
    *,
    into: Path | None = None,
    db: Path | None = None,
    progress: Progress = None,
    **options: Any,
) -> tuple[list[Result], dict[str, Any]]:
    """Tries the configurations of a kernel, as kernel_tuner.tune_kernel does.

    kernel_name, kernel_source: the function, and its code, its file, a list of files of which the first includes the others, or a
        function that makes the code of a configuration. arguments: arrays of NumPy, CuPy or PyTorch and NumPy's scalars, in the
        order of its signature; pointers to const are only read. An argument may be `accuracy.Tunable`.
    tune_params: values of each macro. problem_size: one to three numbers, texts of parameters, or a function of them.
        restrictions, grid_div_x and so on: texts, or functions of a dict of the parameters (lambda p: p["block_size_x"] <= 256), or
        of parameters as arguments. defines: macros that the code gets in place of the parameters.
    answer: what the arrays hold after a launch, None for those that are not looked at: every configuration that ran is run on
        `arguments` and compared, by `verify(answer, result)`, which may have an argument `atol`, or by numpy.allclose. Without
        answer and verify all are compared with the default (the first that meets the restrictions), on random contents in the
        range of the arrays'. On such contents all are timed, of which a warning tells.
    strategy: "brute_force" (the default) tries all; others search ("random_sample" draws, any other of Kernel Tuner's is
        Pascaline's own search), strategy_options["max_fevals"] configurations, for strategy_options["time_limit"] seconds.
    iterations: samples of a configuration, at least 3. device: a number of a CUDA device, or a name such as "emulator".
    metrics: what each result gets besides, by its name: a function of the result so far, or an expression. objective, and
        objective_higher_is_better or objectives: the entry by which results are sorted. What a search looks for is time or energy.
    observers: are called around one launch of each configuration on `arguments`, after the sweep (`observers`).
    cache: a file in Kernel Tuner's format, whose results are not measured again; with simulation_mode nothing else is.
    into: a folder in which the kernel, its search space and the database are left, so that nothing is measured again; db:
        another place for the database. Without either nothing is kept. options: others of `pascaline.sweep`. An integer as
        parallel is its `jobs`. verbose, quiet, log, platform and compiler change nothing.

    Returns a dict for each configuration, best first, with its parameters, its `time` in milliseconds and what else is known;
    those that failed are last, with an infinite time, an `__error__` (ErrorConfig) and its `reason`. And a dict of what it ran
    on. Raises Error if none ran, which says why the first did not, and ArgumentError if none computes the answer.
    """
    _require_cuda(lang)
    _require_no_symbols(cmem_args, texmem_args)
    goals = _goals(objective, objective_higher_is_better, objectives)
    watching = observers_of(observers)
    if not watching and goals[0][0] not in (*_SWEEPS, *_OF_SWEEPS, "power", "temperature", "registers", *(metrics or {})):
        raise ArgumentError(f"objective: '{goals[0][0]}' is not time, energy, power, temperature, registers or one of metrics")
    wanted = _wanted(options, strategy, strategy_options, iterations, seed, parallel, goals[0][0])
    request = Request(kernel_name, kernel_source, problem_size, list(arguments), tune_params, (grid_div_x, grid_div_y, grid_div_z), restrictions, smem_args,
                      block_size_names, defines, compiler_options)
    place = _device(device)
    kept = None if cache is None else Cache(cache, kernel_name, problem_size, tune_params, goals[0][0])
    if simulation_mode:
        results, environment = _replayed(request, kept, wanted)
    else:
        if kept is not None and kept.exists:
            kept.require_device(_name_of(place))
        sweeps = _Sweeps(place, wanted, progress, into, db, kept)
        results, environment, wrong = [], {}, ""
        for part in _parts(request):
            judge = Judge(answer, part.arguments, atol, verify, watching)
            try:
                found, environment = sweeps.run(part, judge)
            except NothingLeft:  # none of the others has these arguments
                continue
            results += found
            wrong = judge.complaint() if judge.reasons else wrong
        if not environment:
            raise NothingLeft("restrictions: no configuration meets the conditions with a block of 1 to 1024 threads")
        if all("__error__" in one for one in results):
            if wrong:
                raise ArgumentError(wrong)
            raise Error(f"none of {len(results)} configurations ran: {results[0]['reason']} ({ {name: results[0][name] for name in tune_params} })")
    for result in results:
        if "__error__" not in result:
            for one in watching:
                if getattr(one, "is_of_the_sweep", False) and not simulation_mode:
                    one.take(result)
                    result.update(one.get_results())
            process_metrics(result, metrics)
    _sort(results, goals)
    if kept is not None and not simulation_mode:
        kept.write(results, environment["device_name"])
    names, more = zip(*goals)
    best = get_best_config(results, *goals[0]) if len(goals) == 1 else get_pareto_results(results, names, more)
    return results, {**environment, "best_config": best, **totals(results)}


def tune_cache(cache_path: Path, restrictions: Sequence[Any] | None = None, **options: Any) -> tuple[list[Result], dict[str, Any]]:
    """Replays a cache, as `tune_kernel` with simulation_mode: its kernel and parameters are those of the file."""
    import json

    cache = path_text("cache_path", cache_path)
    with open(cache if cache.endswith(".json") else cache + ".json", encoding="utf-8") as text:
        document = json.load(text)
    given: dict[str, Any] = {"kernel_name": document["kernel_name"], "kernel_source": "", "problem_size": document.get("problem_size", 1), "arguments": [],
                             "tune_params": document["tune_params"], **options}
    return tune_kernel(**given, cache=cache, restrictions=restrictions, simulation_mode=True)


def run_kernel(
    kernel_name: str,
    kernel_source: Source,
    problem_size: Size,
    arguments: Sequence[Any],
    params: Mapping[str, Any],
    grid_div_x: Texts = None,
    grid_div_y: Texts = None,
    grid_div_z: Texts = None,
    lang: str | None = None,
    device: Union[int, str, None] = None,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Union[str, Function]] | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    log: Any = None,
) -> list[Any]:
    """Runs a kernel once in one configuration, as kernel_tuner.run_kernel does: copies of `arguments` after the launch.
    Arguments as for `tune_kernel`; params: one value of each macro."""
    _require_cuda(lang)
    _require_no_symbols(cmem_args, texmem_args)
    given = [one.select_for_configuration(params) if isinstance(one, _arguments.Tunable) else one for one in arguments]
    values = {name: [value] for name, value in params.items()} or {"kt_unused": [1]}
    space = Space(Request(kernel_name, kernel_source, problem_size, [_arguments.on_host(one) for one in given], values, (grid_div_x, grid_div_y, grid_div_z),
                          None, smem_args, block_size_names, defines, compiler_options))
    with Folder(None) as folder:
        kernel = space.kernel(folder, os.path.join(folder, "none.db"))
        after = launched(kernel, [_arguments.on_host(one) for one in given], _device(device))
    return [_arguments.alike(result, one) for result, one in zip(after, given)]


class _NoneAgrees(Error):
    """No configuration computes the same as the default, and the script has no answer."""


class _Sweeps:
    """Sweeps over the search spaces of a script, on one device."""

    def __init__(self, place: str | None, wanted: dict[str, Any], progress: Progress, into: Path | None, db: Path | None, cache: Cache | None) -> None:
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
        if space.random:
            warnings.warn(f"{space.name} is timed on random contents in the range of {', '.join(space.random)}, not on the arrays"
                          " given: where its work depends on them, so may the fastest configuration", stacklevel=3)
        with Folder(self._into) as folder:
            try:
                found, environment = self._swept(space, folder, judge)
            except _NoneAgrees:
                warnings.warn(f"no two configurations of {space.name} compute the same on random contents: none is compared; give `answer` "
                              "to have them compared", stacklevel=3)
                found, environment = self._swept(Space(request, True, known), folder, judge)
        return found + known, environment

    def _swept(self, space: Space, folder: str, judge: Judge) -> tuple[list[Result], dict[str, Any]]:
        store = path_text("db", self._db) or os.path.join(folder, "tuned.db")
        kernel = space.kernel(folder, store)
        if judge.is_wanted:
            judge.register(_name_of(self._place))
            wrong = judge.ask(space, self._place, space.default)
            if wrong and space.is_single:
                return [{**space.default, "time": math.inf, "__error__": WrongResultConfig(), "reason": wrong}], {"device_name": _name_of(self._place)}
        for _ in range(_REPEATS):
            try:
                summary = kernel.tune(device=self._place, progress=self._progress, **self._wanted)
            except KeyboardInterrupt:
                self._keep(Trials(store, kernel.name), space, judge)
                raise
            results, environment = self._judged(kernel, store, judge, space, summary)
            # A winner in a database that is kept would be launched; the next finals are without it.
            if not judge.decides or not (self._into or self._db) or not any(self._is_wrong(won, space, judge) for won in kernel.winners()[:1]):
                break
            if "__error__" in results[0] or not space.leave_out(results):
                warnings.warn(f"the winner in {store} does not compute the answer: do not launch {kernel.name} from it", stacklevel=4)
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

    def _judged(self, kernel: Kernel, db: str, judge: Judge, space: Space, summary: Mapping[str, Any]) -> tuple[list[Result], dict[str, Any]]:
        trials = Trials(db, kernel.name)
        if not len(trials):
            contents = f" with random contents of {', '.join(space.random)}, which trials run on" if space.random else ""
            if summary["left_out"]:
                raise Error(f"no configuration was tried: {summary['left_out'][0]}")
            raise Error(f"no configuration was tried: the default one ({space.default}) did not end in time{contents}")
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


def _replayed(request: Request, cache: Cache | None, wanted: Mapping[str, Any]) -> tuple[list[Result], dict[str, Any]]:
    """The results of a cache, as many as a search may try."""
    if cache is None or not cache.exists:
        raise ArgumentError(f"simulation_mode: it replays a cache, and {'no cache is given' if cache is None else f'the file {cache.file} does not exist'}")
    values, conditions = Space.conditions_of(request)
    found = cache.known(values, conditions)
    if not found:
        raise ArgumentError(f"simulation_mode: {cache.file} has no result of a configuration that meets the restrictions")
    if wanted["trials"] < len(found):
        found = random.Random(wanted.get("seed") or 1).sample(found, wanted["trials"])
    took = math.fsum(float(one.get(part, 0)) for one in found for part in ("compile_time", "verification_time", "benchmark_time"))
    return found, {"device_name": cache.device_name, "simulation": True, "simulated_time": took}


def _parts(request: Request) -> list[Request]:
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
    for wanted in dict.fromkeys(row.result for row in rows("arguments", keys, {name: list(values) for name, values in request.tune_params.items()})):
        taken = iter(wanted)
        arguments = [_arguments.on_host(one[next(taken)] if isinstance(one, _arguments.Tunable) else one) for one in request.arguments]

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


def _require_cuda(lang: Any) -> None:
    if lang is not None and str(lang).upper() not in ("CUDA", "CUPY", "NVCUDA"):
        raise ArgumentError(f"lang: kernels in {lang} cannot be run here, only CUDA" + ("; code of the host is not run" if str(lang).upper() == "C" else ""))


def _require_no_symbols(cmem_args: Any, texmem_args: Any) -> None:
    for name, given in (("cmem_args", cmem_args), ("texmem_args", texmem_args)):
        if given:
            raise ArgumentError(f"{name}: Kernel Tuner's argument of this name cannot be taken over")


def _goals(objective: Any, higher: Any, objectives: Any) -> list[tuple[str, bool]]:
    """The objectives, and whether more of each is better."""
    if objectives:
        if not isinstance(objectives, Mapping):
            raise TypeError(f"objectives: {type(objectives).__name__} is not a dict of objectives, and whether more of each is better")
        return [(str(name), bool(more)) for name, more in objectives.items()]
    names = [objective] if isinstance(objective, (str, type(None))) else list(objective)
    more = list(higher) if isinstance(higher, (list, tuple)) else [higher] * len(names)
    if len(names) != len(more):
        raise ArgumentError("objective_higher_is_better: it has not one entry for each objective")
    known = {"edp": False, "sustained": False}
    return [get_objective_defaults(name, known.get(str(name)) if one is None else one) for name, one in zip(names, more)]


def _sort(results: list[Result], goals: Sequence[tuple[str, bool]]) -> None:
    name, more = goals[0]
    if name in ("edp", "sustained"):  # which finals decide, and results do not tell
        name, more = "time", False
    right = [result for result in results if "__error__" not in result]
    if right and all(math.isinf(cost(result, name, more)) for result in right):
        raise ArgumentError(f"objective: no result has a number as '{name}'; results have {', '.join(right[0])}")
    results.sort(key=lambda result: ("__error__" in result, cost(result, name, more), float(result["time"])))


def _wanted(options: Mapping[str, Any], strategy: Any, strategy_options: Mapping[str, Any] | None, iterations: Any, seed: int | None, parallel: Any,
            objective: str) -> dict[str, Any]:
    """Options of the sweep."""
    older = ("parallel_runner", "use_noodles", "num_threads")
    samples = max(3, _number("iterations", iterations, int))
    wanted: dict[str, Any] = {"min_samples": samples, "max_samples": samples, **{name: value for name, value in options.items() if name not in older}}
    name = _strategy(strategy)
    searcher = {"brute_force": "exhaustive", "random_sample": "random"}.get(name, "auto")
    wanted.setdefault("searcher", searcher)
    most, seconds = ((strategy_options or {}).get(one) for one in ("max_fevals", "time_limit"))
    wanted.setdefault("trials", _number("max_fevals", most, int) if most else _ALL if searcher == "exhaustive" else 100)
    if seconds is not None:
        wanted.setdefault("budget", f"{max(1, math.ceil(_number('time_limit', seconds, float)))}s")
    if seed is not None:
        wanted.setdefault("seed", seed)
    if isinstance(parallel, int) and not isinstance(parallel, bool) and parallel > 0:
        wanted.setdefault("jobs", parallel)
    wanted["objective"] = _OF_SWEEPS.get(objective, objective) if objective != "time" and _OF_SWEEPS.get(objective, objective) in _SWEEPS else None
    if objective not in (*_SWEEPS, *_OF_SWEEPS) and searcher != "exhaustive":
        warnings.warn(f"the search looks for the shortest time; results are sorted by {objective}", stacklevel=3)
    return wanted


def _strategy(strategy: Any) -> str:
    if strategy is None:
        return "brute_force"
    if not isinstance(strategy, str):
        raise ArgumentError(f"strategy: one's own ({getattr(strategy, '__name__', type(strategy).__name__)}) cannot be taken over; give the name of one, "
                            "or a `searcher` of Pascaline's")
    name = strategy.strip().lower().replace(" ", "_")
    if name not in strategies.KNOWN:
        near = difflib.get_close_matches(name, strategies.KNOWN, 1)
        raise ArgumentError(f"strategy: '{strategy}' is unknown" + (f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(strategies.KNOWN)}"))
    return name


def _number(name: str, value: Any, kind: type) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{name}: {type(value).__name__} is not a number")
    return value


def _device(device: Any) -> str | None:
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    if device is not None and not isinstance(device, str):
        raise TypeError(f"device: {type(device).__name__} is not the number or the name of a device")
    return device


def _name_of(place: str | None) -> str:
    """The name of the device that a sweep takes."""
    found = devices()["devices"]
    chosen = [one for one in found if one["id"] == place] if place else sorted(found, key=lambda one: not one["id"].startswith("cuda"))
    return str(chosen[0]["name"]) if chosen else str(place)
