"""What the command line does, as functions."""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

from . import _native
from ._errors import ArgumentError, Error
from ._given import Given
from ._words import (
    PROGRAM,
    Path,
    Problem,
    flag,
    folder_text,
    path_text,
    plain,
    problem_text,
    problem_texts,
    text_of,
    texts_of,
    whole,
    words_of,
    write_text,
)

Progress = Union[bool, Callable[[dict[str, Any]], object], None]
Listener = Callable[[str, str], object]


def _listener(progress: Progress) -> tuple[Listener | None, Callable[[], None]]:
    """What is told of events, and what to call at the end."""
    if progress is None or progress is False:
        return None, lambda: None
    if progress is True:
        return _bar()
    if not callable(progress):
        raise TypeError(f"progress: {type(progress).__name__} is not a function; pass one, True or None")

    def tell(kind: str, text: str) -> None:
        progress({"kind": kind, **json.loads(text)})

    return tell, lambda: None


def _bar() -> tuple[Listener | None, Callable[[], None]]:
    """A bar of tqdm; nothing where that is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a notebook could have besides
            from tqdm.auto import tqdm
    except ImportError:
        return None, lambda: None
    bar: Any = tqdm(unit=" trials", file=sys.stderr)

    def tell(kind: str, text: str) -> None:
        event = json.loads(text)
        if kind == "problem":
            bar.set_description(event["problem"])
        elif kind == "part":
            bar.set_description(event["part"])
        elif kind == "trial":
            bar.update(1)
            if event["best_us"] is not None:
                bar.set_postfix_str(f"best {event['best_us']:.2f} us")

    def close() -> None:
        bar.close()

    return tell, close


def _run_sweep(words: list[str], call: str, progress: Progress) -> dict[str, Any]:
    listener, close = _listener(progress)
    try:
        summary: dict[str, Any] = json.loads(_native.sweep(words, PROGRAM, call, listener))
    finally:
        close()
    if summary["interrupted"] and summary["end_reason"]:
        raise Error(f"{summary['end_reason']}; what was measured is stored, continue with pascaline.resume()")
    return summary


def sweep(
    problems: Problem | Iterable[Problem] | None = None,
    *,
    kernel: str | Sequence[str] | None = None,
    workload: Path | None = None,
    model: Path | None = None,
    db: Path | None = None,
    device: str | None = None,
    trials: int | None = None,
    budget: str | None = None,
    until: str | None = None,
    searcher: str | None = None,
    objective: str | None = None,
    seed: int | None = None,
    kernels: Path | None = None,
    spaces: Path | None = None,
    cache: Path | None = None,
    target: str | None = None,
    nvrtc: str | None = None,
    jobs: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    answers: Mapping[str, Any] | None = None,
    progress: Progress = None,
    **options: Any,
) -> dict[str, Any]:
    """Finds the fastest configuration of each problem and stores every trial, as `pascaline sweep` does.

    problems: dicts of dimensions and element types, {"M": 512, "N": 2048, "K": 2048, "STORAGE": "float32"}, or their
        text; without them, and without `workload` and `model`, the kernel's example. `kernel`: one name or several.
    trials: new ones per problem; budget: total time such as "90m"; until: time of day such as "07:00".
    kernels, spaces: folders of kernel templates and search spaces; default: those installed.
    inputs: contents of input buffers, a dict from names to arrays or files (`--input`). answers: expected contents of
        outputs, likewise (`--answer`). Arrays are copied once.
    options: any other option of `pascaline sweep` (docs/reference/cli.md), with underscores: preheat=0, min_samples=5, polite=True.
        Several values are a list.
    progress: True for a bar (where tqdm is installed), or a function that is called in this thread with dicts of a
        `kind`: "note", "problem", "trial" (`done`, `planned`, `best_us` and `default_us` in microseconds, ...) and, a few
        times a second, "view". What it raises ends the sweep.

    Returns the summary that `--json` prints. Ctrl-C ends it after the trial in flight with KeyboardInterrupt; `resume`
    continues. Raises ArgumentError for a wrong value, SpaceError for a search space, StoreError for the database.
    """
    values: dict[str, object] = {
        "kernel": texts_of("kernel", kernel),
        "problem": problem_texts("problems", problems),
        "workload": path_text("workload", workload) or None,
        "model": path_text("model", model) or None,
        "db": path_text("db", db) or None,
        "device": device,
        "trials": trials,
        "budget": budget,
        "until": until,
        "searcher": searcher,
        "objective": objective,
        "seed": seed,
        "kernels": folder_text("kernels", kernels) or None,
        "spaces": folder_text("spaces", spaces) or None,
        "cache": path_text("cache", cache) or None,
        "target": target,
        "nvrtc": nvrtc,
        "jobs": jobs,
    }
    with Given("inputs", inputs) as given, Given("answers", answers) as wanted:
        values |= {"input": given.words, "answer": wanted.words}
        return _run_sweep(words_of(values | _other_options(options, values)), "pascaline.sweep()", progress)


def resume(db: Path | None = None, *, inputs: Mapping[str, Any] | None = None, answers: Mapping[str, Any] | None = None,
           progress: Progress = None, **options: Any) -> dict[str, Any]:
    """Continues the last sweep of the database that did not finish; otherwise as `sweep`.

    options: those of `pascaline sweep --resume`: budget, until and trials give a sweep more; kernels, spaces,
    inputs and answers are passed again if the sweep had them.
    """
    values: dict[str, object] = {"resume": True, "db": path_text("db", db) or None}
    with Given("inputs", inputs) as given, Given("answers", answers) as wanted:
        values |= {"input": given.words, "answer": wanted.words}
        return _run_sweep(words_of(values | _other_options(options, values)), "pascaline.resume()", progress)


# What a function says otherwise.
_OWN = {"json": "the summary is what is returned", "quiet": "nothing is printed", "problem": "it is called problems",
        "input": "it is called inputs", "answer": "it is called answers"}


def _other_options(options: dict[str, Any], known: dict[str, object]) -> dict[str, object]:
    for name in options:
        if name in _OWN:
            raise TypeError(f"{name} is not an argument: {_OWN[name]}")
        if name in known or name.replace("_", "-") not in _native.sweep_options():
            raise TypeError(f"there is no argument '{name}'; `pascaline sweep --help` lists them")
    return options | {name: folder_text(name, options[name]) for name in ("kernels", "spaces") if options.get(name) is not None}


def devices() -> dict[str, Any]:
    """Devices with their limits and sensors, and the compilers found for them, as `pascaline devices --json`."""
    found: dict[str, Any] = json.loads(_native.devices())
    return found


def kernels(name: str | None = None, *, kernels: Path | None = None, spaces: Path | None = None) -> Any:
    """The kernels that can be tuned, a list of dicts, or the dict of one: dimensions, types, parameters, constraints."""
    wanted = None if name is None else text_of("name", name)
    return json.loads(_native.kernels(wanted, folder_text("kernels", kernels), folder_text("spaces", spaces)))


def explain(
    problems: Problem | Iterable[Problem] | None = None,
    *,
    kernel: str | None = None,
    db: Path | None = None,
    device: str | None = None,
    target: str | None = None,
    nvrtc: str | None = None,
    cache: Path | None = None,
    kernels: Path | None = None,
    spaces: Path | None = None,
) -> list[dict[str, Any]]:
    """What the dispatcher would pick for each problem of a kernel (default: matmul), and why: a dict each."""
    values: dict[str, object] = {
        "kernel": kernel,
        "problem": problem_texts("problems", problems),
        "db": path_text("db", db) or None,
        "device": device,
        "target": target,
        "nvrtc": nvrtc,
        "cache": path_text("cache", cache) or None,
        "kernels": folder_text("kernels", kernels) or None,
        "spaces": folder_text("spaces", spaces) or None,
    }
    plans: list[dict[str, Any]] = json.loads(_native.explain(words_of(values)))
    return plans


def status(db: Path | None = None) -> dict[str, Any]:
    """What the sweeps on a database are doing: `running` and `last`, as `pascaline status --json`."""
    state: dict[str, Any] = json.loads(_native.status(path_text("db", db)))
    return state


def _show(
    what: str, db: Path | None, kernel: str | None, problem: Problem | None, status: str | None, session: int,
    objective: str, limit: int,
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        _native.show(
            path_text("db", db),
            what,
            text_of("kernel", kernel),
            "" if problem is None else problem_text("problem", problem),
            text_of("status", status),
            whole("session", session, 0),
            objective,
            whole("limit", limit, 0),
        )
    )
    return rows


def winners(
    db: Path | None = None, *, kernel: str | None = None, problem: Problem | None = None, objective: str | None = "time",
    limit: int = 0,
) -> list[dict[str, Any]]:
    """The configurations chosen, newest first, a dict each. objective: "time", "energy", "edp", "sustained" or None for
    all. limit: rows at most; 0: all."""
    return _show("winners", db, kernel, problem, None, 0, text_of("objective", objective), limit)


def trials(
    db: Path | None = None, *, kernel: str | None = None, problem: Problem | None = None, status: str | None = None,
    session: int = 0, limit: int = 0,
) -> list[dict[str, Any]]:
    """The trials, fastest first, a dict each. status: "ok", "dropped" (slower than the best so far, so its time is of fewer
    samples), "rejected", "compile_failed", "launch_failed", "wrong_result", "timed_out" or "crashed"; session: its id, 0:
    all; limit: rows at most; 0: all."""
    return _show("trials", db, kernel, problem, status, session, "time", limit)


def sessions(db: Path | None = None, *, session: int = 0, limit: int = 0) -> list[dict[str, Any]]:
    """The runs of the tuner on one device each, newest first. session: an id, 0: all; limit: rows at most; 0: all."""
    return _show("sessions", db, None, None, None, session, "time", limit)


def show(db: Path | None = None, what: str = "winners", **narrowed: Any) -> list[dict[str, Any]]:
    """`winners`, `trials` or `sessions` of a database, by name, with the arguments of that function."""
    listing = {"winners": winners, "trials": trials, "sessions": sessions}
    if not isinstance(what, str):
        raise TypeError(f"what: {type(what).__name__} is not a str")
    if what not in listing:
        raise ArgumentError(f"what: there is no '{what}'; it is one of winners, trials, sessions")
    rows: list[dict[str, Any]] = listing[what](db, **narrowed)  # type: ignore[operator]
    return rows


def report(
    db: Path | None = None,
    file: Path | None = None,
    format: str | None = None,
    *,
    kernel: str | None = None,
    device_name: str | None = None,
    title: str | None = None,
    workload: str | None = None,
    session: str | int | None = None,
    against: Path | None = None,
    against_session: str | int | None = None,
    limits: bool = True,
    compile: bool = True,
) -> str | None:
    """Writes a report to `file`, or returns its text without one.

    format: "html", "md", "csv" or "json"; default: that of the file's ending, else "md".
    workload: file of a model's calls, which weight the speedups in html and json; default: the last one swept, "none": none.
    session: an id, or the beginning of a uuid. against, against_session: the older side of a comparison.
    limits: with estimates of what limits winners on sm_50 to sm_62; compile: what code is missing for them is compiled.
    """
    name = path_text("file", file)
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    named = {"html": "html", "htm": "html", "md": "md", "markdown": "md", "csv": "csv", "json": "json"}.get(ending)
    chosen = text_of("format", format) or named or "md"
    if chosen not in ("html", "md", "csv", "json"):
        raise ArgumentError(f"format: there is no '{chosen}'; it is one of html, md, csv, json")
    if named is not None and chosen != named:
        raise ArgumentError(f"format: '{chosen}' contradicts file, whose name ends in .{ending}; leave format out")
    compares = against is not None or against_session is not None
    if workload is not None and workload != "none" and chosen in ("md", "csv"):
        raise ArgumentError("workload: it weights the speedups in html and json; give one of these as format")
    if compares and chosen == "csv":
        raise ArgumentError("format: a comparison cannot be written as csv; use md, html or json")
    if against is None and against_session is not None and session is None:
        raise ArgumentError("against_session: give the other side, too, as session or with against")
    return _native.report(
        path_text("db", db),
        chosen,
        name,
        _session_text("session", session),
        path_text("against", against),
        _session_text("against_session", against_session),
        text_of("kernel", kernel),
        text_of("device_name", device_name),
        text_of("title", title),
        text_of("workload", workload),
        flag("limits", limits),
        flag("compile", compile),
    )


def _session_text(name: str, session: str | int | None) -> str:
    if session is None:
        return ""
    if isinstance(session, bool) or not isinstance(session, (str, int)):
        raise TypeError(f"{name}: {type(session).__name__} is not the id of a session")
    return plain(name, str(session))


def _several(name: str, values: Any) -> Any:
    if isinstance(values, str) or not isinstance(values, (Iterable, type(None))):
        raise TypeError(f"{name}: {type(values).__name__} is not a list of them")
    return () if values is None else values


def workload(
    model: Path,
    file: Path | None = None,
    *,
    device: str | None = None,
    db: Path | None = None,
    weights: str | None = None,
    kv_cache: str | None = None,
    context: int | None = None,
    prompt_tokens: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The shapes that a model launches: its folder or GGUF file, with these types and sizes. Also written to `file`, for
    `sweep(workload=file)`, if one is given. Runs nothing."""
    name = path_text("file", file)
    values: dict[str, object] = {
        "model": path_text("model", model),
        "name": name.rsplit("/", 1)[-1].removesuffix(".json") or "model",
        "device": device,
        "db": path_text("db", db) or None,
        "weights": weights,
        "kv_cache": kv_cache,
        "context": context,
        "prompt_tokens": [whole("prompt_tokens", tokens, 1) for tokens in _several("prompt_tokens", prompt_tokens)],
    }
    text = _native.workload(words_of(values))
    if name:
        write_text("file", name, text)
    shapes: dict[str, Any] = json.loads(text)
    return shapes


def probe(
    db: Path | None = None,
    *,
    device: str = "cuda:0",
    only: Sequence[str] = (),
    seconds: float = 60,
    target: str | None = None,
    nvrtc: str | None = None,
    cache: Path | None = None,
    progress: Progress = None,
) -> dict[str, Any]:
    """Measures a device's clock, rates, bandwidths (GB/s) and latencies in about `seconds` (5 to 3600), stores and
    returns them. only: parts such as "memory" and "launch". Ctrl-C raises KeyboardInterrupt; then nothing is stored."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"seconds: {type(seconds).__name__} is not a number")
    if not 5 <= seconds <= 3600:
        raise ArgumentError(f"seconds: must be from 5 to 3600, not {seconds}")
    if isinstance(only, str):
        raise TypeError("only: a str is not a list of parts")
    parts = [text_of("only", part) for part in only]
    listener, close = _listener(progress)
    try:
        text = _native.probe(
            path_text("db", db), text_of("device", device), text_of("target", target), text_of("nvrtc", nvrtc),
            path_text("cache", cache), parts, float(seconds), listener,
        )
    finally:
        close()
    if text is None:
        raise KeyboardInterrupt
    found: dict[str, Any] = json.loads(text)
    return found


def probes(db: Path | None = None) -> list[dict[str, Any]]:
    """What `probe` stored in a database, newest first."""
    found: list[dict[str, Any]] = json.loads(_native.probes(path_text("db", db)))
    return found
