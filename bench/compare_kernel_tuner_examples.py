#!/usr/bin/env python3
"""Runs scripts for Kernel Tuner twice, as they are and with the import changed to `pascaline.kernel_tuner`, and times the
winners of both beside each other by Kernel Tuner and by Pascaline, compiled for the device itself; $PASCALINE_NVRTC
should name the version of CuPy's NVRTC.

  bench/compare_kernel_tuner_examples.py FOLDER [--scripts NAME.py ...] [--seconds 120] [--sample 400] [--json OUT]

FOLDER: Kernel Tuner's examples/cuda. Needs the Python package on PYTHONPATH; with a GPU also Kernel Tuner and CuPy. Without a GPU
the scripts run on the emulated device, and nothing is compared. A script runs in a copy of FOLDER, in a process of its own, for
at most --seconds, with `__shfl_down_sync` for `__shfl_down`, which CUDA 13 lacks; Kernel Tuner compiles with CuPy, for which
<stdio.h> is empty. Calls of `tune_kernel` that would try more than --sample configurations search instead: both tuners get
`strategy="greedy_ils"` and that many evaluations.
"""
import argparse
import functools
import importlib
import inspect
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMPORTS = (
    (re.compile(r"^(\s*)import kernel_tuner\s*$", re.M), r"\1import pascaline.kernel_tuner as kernel_tuner"),
    (re.compile(r"^(\s*)import kernel_tuner\.(\S+) as ", re.M), r"\1import pascaline.kernel_tuner.\2 as "),
    (re.compile(r"^(\s*)from kernel_tuner\b", re.M), r"\1from pascaline.kernel_tuner"),
)
NOT_TIMED = ("answer", "verify", "metrics", "observers", "cache", "objective", "objective_higher_is_better", "objectives", "strategy",
             "strategy_options", "simulation_mode", "parallel", "verbose")


def is_usable(result):
    return isinstance(result.get("time"), (int, float)) and math.isfinite(result["time"])


class Recorder:
    """`tune_kernel`, and what it found at each call."""

    def __init__(self, tuner, sample):
        self.tune = tuner.tune_kernel
        self.signature = inspect.signature(self.tune)
        self.is_kernel_tuner = tuner.__name__ == "kernel_tuner"
        self.sample = sample
        self.calls = []

    def arguments_of(self, given, named):
        arguments = self.signature.bind(*given, **named).arguments
        arguments.update(arguments.pop("options", {}))
        options = [one for one in arguments.get("compiler_options") or [] if "arch" not in one]
        if self.is_kernel_tuner:
            arguments["lang"] = "cupy"
            options += ["--std=c++17", f"-I{os.getcwd()}/without_host"]
        arguments["compiler_options"] = options
        return arguments

    def __call__(self, *given, **named):
        arguments = self.arguments_of(given, named)
        parameters = arguments["tune_params"]
        if "strategy" not in arguments and math.prod(map(len, parameters.values())) > self.sample:
            arguments.update(strategy="greedy_ils", strategy_options={"max_fevals": self.sample})
        start = time.perf_counter()
        results, environment = self.tune(**arguments)
        usable = [result for result in results if is_usable(result)]
        best = min(usable, key=lambda result: result["time"])
        self.calls.append({"kernel": arguments["kernel_name"], "tried": len(results), "usable": len(usable), "time_ms": best["time"],
                           "winner": {name: best[name] for name in parameters}, "seconds": time.perf_counter() - start})
        return results, environment


class Timer(Recorder):
    """Times the winners of two runs where the script would tune."""

    def __init__(self, tuner, winners):
        super().__init__(tuner, 0)
        self.winners = winners

    def __call__(self, *given, **named):
        arguments = self.arguments_of(given, named)
        for name in NOT_TIMED:
            arguments.pop(name, None)
        pair = self.winners[len(self.calls)]
        arguments.update(tune_params={name: sorted({winner[name] for winner in pair}) for name in arguments["tune_params"]},
                         restrictions=[" or ".join(f"({' and '.join(f'{name} == {value!r}' for name, value in winner.items())})" for winner in pair)],
                         iterations=50, quiet=True)
        least = [math.inf] * len(pair)
        for _ in range(5):
            results, environment = self.tune(**arguments)
            for result in filter(is_usable, results):
                for i, winner in enumerate(pair):
                    if all(result[name] == value for name, value in winner.items()):
                        least[i] = min(least[i], result["time"])
        self.calls.append({"kernel": arguments["kernel_name"], "times_ms": least})
        return results, environment


def run_script(script, tuner_name, make):
    """Runs it here with what `make` makes of the tuner as `tune_kernel`; returns the calls and, if it failed, the reason."""
    tuner = importlib.import_module(tuner_name)
    recorder = make(tuner)
    wrapped = functools.wraps(recorder.tune)(lambda *given, **named: recorder(*given, **named))
    tuner.tune_kernel = importlib.import_module(tuner_name + ".interface").tune_kernel = wrapped
    text = Path(script).read_text()
    if tuner_name != "kernel_tuner":
        for pattern, replacement in IMPORTS:
            text = pattern.sub(replacement, text)
    sys.argv = [script]
    sys.path.insert(0, "")
    start = time.perf_counter()
    error = None
    try:
        names = {"__name__": "__main__", "__file__": script}
        exec(compile(text, script, "exec"), names)  # pylint: disable=exec-used
        for name in [name for name in names if name.startswith("test_")]:  # those for pytest
            names[name]()
    except BaseException as raised:  # pylint: disable=broad-exception-caught
        if not (isinstance(raised, SystemExit) and raised.code in (None, 0)):
            error = f"{type(raised).__name__}: {raised}".strip().splitlines()[0][:200]
    return {"calls": recorder.calls, "error": error, "seconds": time.perf_counter() - start}


def in_own_process(options, script, tuner, winners=None):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(options.folder, folder, dirs_exist_ok=True)
        out = Path(folder) / "result.of.the.run"
        stub = Path(folder) / "without_host" / "stdio.h"
        stub.parent.mkdir()
        stub.write_text("#pragma once\n")
        for kernel in Path(folder).glob("*.cu"):  # what CUDA 13 lacks
            kernel.write_text(kernel.read_text().replace("__shfl_down(", "__shfl_down_sync(0xffffffffu, "))
        asked = {"script": script, "tuner": tuner, "winners": winners, "sample": options.sample, "out": str(out)}
        try:
            run = subprocess.run([sys.executable, str(Path(__file__).resolve()), "--one", json.dumps(asked), folder], cwd=folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=options.seconds, check=False)
        except subprocess.TimeoutExpired:
            return {"calls": [], "error": f"more than {options.seconds:g} s", "seconds": options.seconds}
        if not out.exists():
            last = (run.stderr.strip().splitlines() or [""])[-1]
            return {"calls": [], "error": f"exit code {run.returncode}: {last}"[:200], "seconds": 0}
        return json.loads(out.read_text())


def has_gpu():
    return shutil.which("nvidia-smi") is not None and subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode == 0


def compare(options, script):
    ours = in_own_process(options, script, "pascaline.kernel_tuner")
    row = {"script": script, "pascaline": ours}
    if options.with_kernel_tuner:
        theirs = row["kernel_tuner"] = in_own_process(options, script, "kernel_tuner")
        pairs = [[a["winner"], b["winner"]] for a, b in zip(ours["calls"], theirs["calls"])]
        if pairs:
            row["timed"] = {tuner: in_own_process(options, script, tuner, pairs) for tuner in ("kernel_tuner", "pascaline.kernel_tuner")}
    return row


def line_of(row):
    def text(one):
        calls = one["calls"]
        done = f"{sum(call['usable'] for call in calls)} of {sum(call['tried'] for call in calls)} in {one['seconds']:.1f} s" if calls else ""
        return ", ".join(filter(None, [done, one["error"] or ("" if calls else "ran")]))

    cells = [row["script"], text(row["pascaline"])]
    if "kernel_tuner" in row:
        cells.append(text(row["kernel_tuner"]))
        for timed in row.get("timed", {}).values():
            cells.append(", ".join(f"{call['times_ms'][1] / call['times_ms'][0]:.3f}" for call in timed["calls"]) or timed["error"])
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--scripts", nargs="*", help="default: all of FOLDER")
    parser.add_argument("--seconds", type=float, default=120, help="for a script of one tuner")
    parser.add_argument("--sample", type=int, default=400, help="configurations of a call that are tried without a search")
    parser.add_argument("--json", help="file for what was found")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        asked = json.loads(options.one)
        make = (lambda tuner: Timer(tuner, asked["winners"])) if asked["winners"] else (lambda tuner: Recorder(tuner, asked["sample"]))
        result = run_script(asked["script"], asked["tuner"], make)
        Path(asked["out"]).write_text(json.dumps(result, default=lambda value: value.item()))
        return
    options.with_kernel_tuner = has_gpu()
    scripts = options.scripts or sorted(path.name for path in Path(options.folder).glob("*.py"))
    print("| script | Pascaline | Kernel Tuner | its winner's time over ours, each call, by its timer | by ours |" if options.with_kernel_tuner
          else "| script | Pascaline, emulated device |")
    print("|---|---|---|---|---|" if options.with_kernel_tuner else "|---|---|", flush=True)
    rows = []
    for script in scripts:
        rows.append(compare(options, script))
        print(line_of(rows[-1]), flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
