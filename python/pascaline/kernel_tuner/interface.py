"""`tune_kernel` and `run_kernel`, with Kernel Tuner's arguments."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from .._commands import Progress
from .._errors import ArgumentError, Error
from .._words import Path, path_text
from . import _arguments
from ._asked import OF_SWEEPS, SWEEPS, goals_of, require_cuda, require_no_textures, sort, wanted_of
from ._cache import Cache
from ._judge import Judge, launched, observers_of
from ._results import totals
from ._space import Folder, NothingLeft, Request, Space
from ._sweeps import Sweeps, device_of, name_of, parts_of, replayed
from .util import Metrics, Result, get_best_config, get_pareto_results, process_metrics

Parameters = Mapping[str, Sequence[Any]]
Function = Callable[..., Any]
Texts = Union[str, int, Function, Sequence[Union[str, int, Function]], None]
Size = Union[int, str, Sequence[Union[int, str]], Function]
Source = Union[Path, Function, Sequence[Union[Path, Function]]]


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

    kernel_name, kernel_source: the function, of a template with its arguments ("app::add<float, block_size_x>"), and its code, its
        file, a list of files of which the first includes the others, or a function that makes the code of a configuration. arguments: arrays of NumPy, CuPy or PyTorch and NumPy's scalars, in the
        order of its signature; pointers to const are only read. An argument may be `accuracy.Tunable`.
    tune_params: values of each macro. problem_size: one to three numbers, texts of parameters, or a function of them.
        restrictions, grid_div_x and so on: texts, or functions of a dict of the parameters (lambda p: p["block_size_x"] <= 256), or
        of parameters as arguments. defines: macros that the code gets in place of the parameters.
    answer: what the arrays hold after a launch, None for those that are not looked at: every configuration that ran is run on
        `arguments` and compared, by `verify(answer, result)`, which may have an argument `atol`, or by numpy.allclose. Without
        answer and verify all are compared with the default (the first that meets the restrictions).
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
    require_cuda(lang)
    require_no_textures(texmem_args)
    goals = goals_of(objective, objective_higher_is_better, objectives)
    watching = observers_of(observers)
    if not watching and goals[0][0] not in (*SWEEPS, *OF_SWEEPS, "power", "temperature", "registers", *(metrics or {})):
        raise ArgumentError(f"objective: '{goals[0][0]}' is not time, energy, power, temperature, registers or one of metrics")
    wanted = wanted_of(options, strategy, strategy_options, iterations, seed, parallel, goals[0][0])
    request = Request(kernel_name, kernel_source, problem_size, list(arguments), tune_params,
                      (grid_div_x, grid_div_y, grid_div_z), restrictions, smem_args,
                      block_size_names, defines, compiler_options, cmem_args)
    place = device_of(device)
    kept = None if cache is None else Cache(cache, kernel_name, problem_size, tune_params, goals[0][0])
    if simulation_mode:
        results, environment = replayed(request, kept, wanted)
    else:
        if kept is not None and kept.exists:
            kept.require_device(name_of(place))
        sweeps = Sweeps(place, wanted, progress, into, db, kept)
        results, environment, wrong = [], {}, ""
        raised: Exception | None = None
        for part in parts_of(request):
            judge = Judge(answer, part.arguments, atol, verify, watching)
            try:
                found, environment = sweeps.run(part, judge)
            except NothingLeft:  # none of the others has these arguments
                continue
            results += found
            wrong, raised = (judge.complaint(), judge.raised) if judge.reasons else (wrong, raised)
        if not environment:
            raise NothingLeft("restrictions: no configuration meets the conditions with a block of 1 to 1024 threads")
        if kept is not None:  # also where what follows raises
            kept.write(results, environment["device_name"])
        if all("__error__" in one for one in results):
            if wrong:
                raise ArgumentError(wrong) from raised
            raise Error(f"none of {len(results)} configurations ran: {results[0]['reason']} ({ {name: results[0][name] for name in tune_params} })")
    for result in results:
        if "__error__" not in result:
            for one in watching:
                if getattr(one, "is_of_the_sweep", False) and not simulation_mode:
                    one.take(result)
                    result.update(one.get_results())
            process_metrics(result, metrics)
    sort(results, goals)
    if kept is not None and not simulation_mode:
        kept.write(results, environment["device_name"])
    names, more = zip(*goals)
    best = get_best_config(results, *goals[0]) if len(goals) == 1 else get_pareto_results(results, names, more)
    return results, {**environment, "best_config": best, **totals(results)}


def tune_cache(cache_path: Path, restrictions: Sequence[Any] | None = None,
               **options: Any) -> tuple[list[Result], dict[str, Any]]:
    """Replays a cache, as `tune_kernel` with simulation_mode: its kernel and parameters are those of the file."""
    cache = path_text("cache_path", cache_path)
    with open(cache if cache.endswith(".json") else cache + ".json", encoding="utf-8") as text:
        document = json.load(text)
    given: dict[str, Any] = {"kernel_name": document["kernel_name"], "kernel_source": "",
                             "problem_size": document.get("problem_size", 1), "arguments": [],
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
    require_cuda(lang)
    require_no_textures(texmem_args)
    given = [one.select_for_configuration(params) if isinstance(one, _arguments.Tunable) else one for one in arguments]
    values = {name: [value] for name, value in params.items()} or {"kt_unused": [1]}
    space = Space(Request(kernel_name, kernel_source, problem_size, [_arguments.on_host(one) for one in given], values,
                          (grid_div_x, grid_div_y, grid_div_z),
                          None, smem_args, block_size_names, defines, compiler_options, cmem_args))
    with Folder(None) as folder:
        kernel = space.kernel(folder, os.path.join(folder, "none.db"))
        after = launched(kernel, [_arguments.on_host(one) for one in given], device_of(device), space.constants)
    return [_arguments.alike(result, one) for result, one in zip(after, given)]
