#!/usr/bin/env python3
"""Throughput and winners of `pascaline sweep` beside those of Kernel Tuner: the same 210 configurations of a plain SGEMM.

Needs a GPU, Kernel Tuner and CuPy. Each run begins with empty caches of compiled code. Kernel Tuner has its defaults
(`brute_force`, 7 launches a configuration, the result compared with the answer); sweeps have theirs, with and without
warming the card up, and try all configurations. A last sweep drops none early: how good the winners are is by its times.

  bench/compare_kernel_tuner.py --build build/release/bin [--device cuda:0] [--size 1024] [--sweeps 3]

Configurations an hour are of the whole run, from its start to its end: opening the device, inputs, compiling, finals and
their energy, too.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "plain_sgemm"
SPACE = json.loads((FOLDER / "plain_sgemm.json").read_text())


def text_of(config):
    return " ".join(f"{name}={config[name]}" for name in sorted(config))


def own_environment(folder):
    """Where programs that begin in it find no compiled code."""
    environment = dict(os.environ)
    environment.update(CUDA_CACHE_DISABLE="1", CUPY_CACHE_DIR=f"{folder}/cupy", PASCALINE_CACHE_DIR=f"{folder}/pascaline")
    return environment


def run_kernel_tuner(ordinal, size):
    """Prints what it found; to be called in a process of its own."""
    start = time.perf_counter()
    import kernel_tuner
    import numpy

    generator = numpy.random.default_rng(1)
    a, b = (generator.uniform(-1, 1, (size, size)).astype(numpy.float32) for _ in range(2))
    answer = (a.astype(numpy.float64) @ b.astype(numpy.float64)).astype(numpy.float32)
    arguments = [a, b, numpy.zeros((size, size), numpy.float32), *(numpy.int32(size) for _ in range(3))]
    prepared = time.perf_counter()
    results, _ = kernel_tuner.tune_kernel(
        SPACE["kernel"], (FOLDER / "plain_sgemm.cu").read_text(), (size, size), arguments,
        {parameter["name"]: parameter["values"] for parameter in SPACE["parameters"]},
        grid_div_x=["BLOCK_X * TILE_X"], grid_div_y=["BLOCK_Y * TILE_Y"], block_size_names=["BLOCK_X", "BLOCK_Y"],
        restrictions=[constraint["require"] for constraint in SPACE["constraints"]],
        answer=[None, None, answer, None, None, None], atol=1e-3, lang="cupy", device=ordinal,
        compiler_options=["--std=c++17"], strategy="brute_force", quiet=True)
    stop = time.perf_counter()
    names = [parameter["name"] for parameter in SPACE["parameters"]]
    times = {text_of({name: result[name] for name in names}): result["time"] * 1e3 for result in results
             if isinstance(result["time"], (int, float)) and math.isfinite(result["time"])}
    parts = {name: sum(result.get(f"{name}_time", 0) for result in results) / 1e3
             for name in ("compile", "verification", "benchmark", "strategy", "framework")}
    print(json.dumps({"version": kernel_tuner.__version__ if hasattr(kernel_tuner, "__version__") else "",
                      "configurations": len(results), "times_us": times, "parts_s": parts, "wall_s": stop - prepared,
                      "with_inputs_s": stop - start}))


def kernel_tuner_in_own_process(options, folder):
    command = [sys.executable, __file__, "--only-kernel-tuner", "--device", options.device, "--size", str(options.size)]
    found = subprocess.run(command, env=own_environment(folder), stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise SystemExit(f"Kernel Tuner ended with {found.returncode}")
    return json.loads(found.stdout.splitlines()[-1])


class Sweep:
    """One sweep into a new database with an empty cache."""

    def __init__(self, options, *more):
        with tempfile.TemporaryDirectory() as folder:
            self.environment = own_environment(folder)
            self.pascaline = Path(options.build) / "pascaline"
            size = options.size
            self.summary = self.ask("sweep", "--device", options.device, "--kernels", FOLDER, "--spaces", FOLDER,
                                    "--kernel", SPACE["kernel"], "--problem", f"M={size},N={size},K={size}",
                                    "--searcher", "exhaustive", "--min-gain", "0", "--trials", "1000",
                                    "--seed", str(options.seed), "--db", f"{folder}/new.db", *more)
            self.trials = self.ask("show", "trials", "--db", f"{folder}/new.db", "--limit", "0")
            self.winner = self.ask("show", "--db", f"{folder}/new.db")[0]

    def ask(self, *arguments):
        command = [str(self.pascaline), *map(str, arguments), "--json"]
        found = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, text=True, check=False)
        if found.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {found.returncode}")
        return json.loads(found.stdout)

    def times_us(self):
        """Of each usable configuration, in the finals where it was there."""
        times = {}
        for stage in ("search", "finals"):
            times.update({trial["config"]: trial["median_us"] for trial in self.trials
                          if trial["stage"] == stage and trial["median_us"] is not None})
        return times

    def per_hour(self):
        return 3600 * self.summary["trials"] / self.summary["wall_s"]

    def line(self):
        seconds = self.summary["trial_time_s"]
        trials = self.summary["trials"]
        parts = ", ".join(f"{name} {1e3 * value / trials:.1f}" for name, value in seconds.items())
        ends = ", ".join(f"{name} {self.summary[name + '_s']:.2f}" for name in ("opening", "preparing", "finals"))
        return (f"{trials} configurations ({self.summary['ok']} usable) in {self.summary['wall_s']:.2f} s, "
                f"{self.per_hour():,.0f} an hour, device's worker {self.summary['measuring_s']:.2f} s "
                f"({ends}; {self.summary['restarts']} restarts); ms a trial: {parts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release/bin", help="folder of pascaline")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the matrices")
    parser.add_argument("--sweeps", type=int, default=3, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-kernel-tuner", action="store_true", help="only the sweeps")
    parser.add_argument("--only-kernel-tuner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_kernel_tuner:
        run_kernel_tuner(int(options.device.removeprefix("cuda:")), options.size)
        return
    other = None
    if not options.without_kernel_tuner:
        with tempfile.TemporaryDirectory() as folder:
            other = kernel_tuner_in_own_process(options, folder)
        rate = 3600 * other["configurations"] / other["wall_s"]
        parts = ", ".join(f"{name} {value:.1f}" for name, value in other["parts_s"].items())
        print(f"Kernel Tuner {other['version']}: {other['configurations']} configurations ({len(other['times_us'])} usable) "
              f"in {other['wall_s']:.2f} s, {rate:,.0f} an hour; s: {parts}")
    kinds = {"without warm-up": ["--preheat", "0"], "with warm-up": []}
    sweeps = {kind: [] for kind in kinds}
    for kind, more in kinds.items():
        for _ in range(options.sweeps):
            sweeps[kind].append(Sweep(options, *more))
            print(f"sweep {kind}: {sweeps[kind][-1].line()}", flush=True)
    best = Sweep(options, "--race-error", "0", "--finalists", "12")
    times = best.times_us()
    least = min(times.values())
    if other and set(times) != set(other["times_us"]):
        print(f"not the same configurations: {len(set(times) ^ set(other['times_us']))} are of one only")
    for kind, done in sweeps.items():
        rates = sorted(sweep.per_hour() for sweep in done)
        over = f", {rates[len(rates) // 2] / rate:.1f} times Kernel Tuner's" if other else ""
        print(f"{kind}: {rates[len(rates) // 2]:,.0f} configurations an hour (median){over}")
        for sweep in done:
            config = sweep.winner["config"]
            print(f"  winner {config}: {sweep.winner['best_us']:.2f} us, {times[config] / least:.4f} of the best")
    print(f"all measured in full: best {min(times, key=times.get)}, {least:.2f} us")
    if other:
        config = min(other["times_us"], key=other["times_us"].get)
        print(f"Kernel Tuner's winner {config}: {other['times_us'][config]:.2f} us by itself, {times[config] / least:.4f} "
              "of the best")


if __name__ == "__main__":
    main()
