#!/usr/bin/env python3
"""Compiles published winners for sm_61 and inspects the machine code, no GPU needed.

  bench/check_winners.py bench/winners/nvidia-h200-sm_61.json --nvdisasm /usr/bin/nvdisasm

None may touch local memory; in float32, fused multiply-adds must be 80 % of the instructions of matmul's main loop
(over slices) and 55 % of attention_prefill's (over tiles of keys). Loops inside count as often as they run, which
follows from the configuration; what lies behind a branch counts always. The kernels must be those that were tuned, by
the hash of their source. Exit code 3 if not. nvdisasm must know sm_61: CUDA 12.9 is the last one that does.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import count_loops

LEAST_FFMA = {"matmul": 80, "attention_prefill": 55}  # percent of the main loop


def matmul_trips(config, _):
    """For each loop in the main one: how often it runs, and how often those inside it run each time."""
    return [(config["BLOCK_K"] // config["UNROLL_K"], 1)] if config["BLOCK_K"] > config["UNROLL_K"] else []


def matmul_products(config, _):
    """FFMA of a thread each time round the main loop."""
    return config["THREAD_M"] * config["THREAD_N"] * config["BLOCK_K"]


def attention_trips(config, problem):
    def product(slices, depth):  # slices come in pairs, a loop of 8 depths at a time in each
        return (slices // 2 if slices % 2 == 0 else slices, depth // 8)

    products = [product(problem["HEAD_DIM"] // config["SLICE_D"], config["SLICE_D"]),
                product(config["BLOCK_K"] // config["SLICE_K"], config["SLICE_K"])]
    return [(trips, inner) for trips, inner in products if trips > 1]


def attention_products(config, problem):
    return 2 * config["THREAD_Q"] * config["BLOCK_K"] // config["ROW_LANES"] * problem["HEAD_DIM"]


STRUCTURE = {"matmul": (matmul_trips, matmul_products), "attention_prefill": (attention_trips, attention_products)}


def executed(kernel, loop, trips):
    """Instructions and FFMA of one time round a loop; `trips` is for the loops inside it, the rest for theirs."""
    counts = kernel.count(*loop)
    all_, ffma = counts["all"], counts["FFMA"]
    for inner, times in zip(kernel.inside(loop), trips):
        once = executed(kernel, inner, [(times[1], 1)] * 8)
        alone = kernel.count(*inner)
        all_ += times[0] * once[0] - alone["all"]
        ffma += times[0] * once[1] - alone["FFMA"]
    return all_, ffma


def ffma_share(kernel, name, config, problem):
    """Percent of the instructions of the main loop that are FFMA; an error if the loops are not the expected ones."""
    trips, products = (function(config, problem) for function in STRUCTURE[name])
    loop = kernel.main_loop()
    if len([inner for inner in kernel.inside(loop) if kernel.count(*inner)["FFMA"] > 0]) != len(trips):
        raise ValueError("not the loops expected in the main one")
    all_, ffma = executed(kernel, loop, trips)
    if not products <= ffma <= 1.1 * products + 64:
        raise ValueError(f"{ffma} FFMA in the main loop, of which the products need {products}")
    return 100 * ffma / all_


class Winner:
    def __init__(self, entry):
        self.kernel, *self.dimensions = entry["problem"].split()
        self.text, self.config = entry["problem"], entry["config"]
        self.has_main_loop = self.kernel in LEAST_FFMA and not any("float16" in word for word in self.dimensions)
        self.source = None  # hash of the source that was compiled
        self.share = None
        self.registers = 0
        self.faults = []

    def compile(self, options, sm_count, folder):
        command = [options.pascaline, "compile", "--kernel", self.kernel]
        command += ["--problem", ",".join(self.dimensions)] if self.dimensions else []
        command += ["--set", self.config.replace(" ", ","), "--sm-count", str(sm_count), "--emit", str(folder),
                    "--json"]
        command += ["--nvrtc", options.nvrtc] if options.nvrtc else []
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            self.faults.append((result.stderr or result.stdout).strip())
            return self
        compiled = json.loads(result.stdout)
        self.source = compiled["source"]
        self.inspect(compiled["variants"][0], options, folder)
        return self

    def inspect(self, variant, options, folder):
        compiled = " ".join(f"{name}={value}" for name, value in sorted(variant["config"].items()))
        if compiled != self.config:
            self.faults.append(f"the space has other parameters; compiled was {compiled}")
        self.registers = variant["registers"]
        if variant["local_bytes"] + variant["local_loads"] + variant["local_stores"] > 0:
            self.faults.append(f"local memory: {variant['local_bytes']} bytes, {variant['local_loads']} loads")
        if not self.has_main_loop:
            return
        problem = {name: int(value) for name, value in (pair.split("=") for pair in self.dimensions) if value.isdigit()}
        config = {name: int(value) for name, value in (pair.split("=") for pair in self.config.split())}
        cubin, = pathlib.Path(folder).glob("*.cubin")
        kernel, = count_loops.disassemble(options.nvdisasm, str(cubin))
        try:
            self.share = ffma_share(kernel, self.kernel, config, problem)
        except ValueError as error:
            self.faults.append(str(error))
            return
        if self.share < LEAST_FFMA[self.kernel]:
            self.faults.append(f"{self.share:.1f} % FFMA in the main loop, less than {LEAST_FFMA[self.kernel]} %")


def check(winner, options, sm_count):
    with tempfile.TemporaryDirectory() as folder:
        return winner.compile(options, sm_count, folder)


def stale(kernels, winners):
    """A line for each kernel whose present source is not that of the file, which may hold the hash's beginning only."""
    present = {winner.kernel: winner.source for winner in winners if winner.source}
    return [f"{kernel}: tuned with source {kernels[kernel]['source'][:8]}, the present one is {source[:8]}"
            for kernel, source in sorted(present.items())
            if not any(source.startswith(known) for known in sources(kernels[kernel]))]


def sources(kernel):
    """Hashes of the sources that give the winners' code; a beginning of less than 8 digits tells nothing."""
    return [known for known in (kernel["source"], *kernel.get("same_code", [])) if len(known) >= 8]


def report(kernels, winners):
    print("| kernel | winners | most registers | FFMA in the main loop, float32 |\n|---|---:|---:|---:|")
    by_kernel = collections.defaultdict(list)
    for winner in winners:
        by_kernel[winner.kernel].append(winner)
    for kernel, group in sorted(by_kernel.items()):
        shares = [winner.share for winner in group if winner.share is not None]
        text = f"{min(shares):.1f} to {max(shares):.1f} %" if shares else ""
        registers = max((winner.registers for winner in group if not winner.faults), default=0)
        print(f"| {kernel} | {len(group)} | {registers} | {text} |")
    faulty = [winner for winner in winners if winner.faults]
    for winner in faulty:
        print(f"{winner.text}: {winner.config}: {'; '.join(winner.faults)}")
    other = stale(kernels, winners)
    for line in other:
        print(line)
    print(f"{len(winners)} winners, {len(faulty)} with faults; {len(other)} kernels with another source")
    return 3 if faulty or other else 0


def chosen(content, options):
    """The winners to check. Ends the program if there are none of a kernel named, or if a program is missing."""
    for kernel in options.kernel or []:
        if kernel not in content["kernels"]:
            sys.exit(f"{options.file}: no winners of kernel '{kernel}' (it has: {', '.join(content['kernels'])})")
    winners = [winner for winner in map(Winner, content["winners"])
               if not options.kernel or winner.kernel in options.kernel]
    if not winners:
        sys.exit(f"{options.file}: no winners")
    if not shutil.which(options.pascaline):
        sys.exit(f"{options.pascaline}: no such program; build it, or name it with --pascaline")
    if any(winner.has_main_loop for winner in winners) and not shutil.which(options.nvdisasm):
        sys.exit(f"{options.nvdisasm}: no such program; name CUDA 12.9's or an older one with --nvdisasm")
    return winners


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--pascaline", default="build/dev/bin/pascaline")
    parser.add_argument("--nvrtc", default="", help="which NVRTC compiles, e.g. 11.8")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--kernel", action="append", help="only this kernel (repeatable)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    try:
        content = json.loads(options.file.read_text())
        winners = chosen(content, options)
        sm_count = int(content["device"]["sm_count"])
        for winner in winners:
            sources(content["kernels"][winner.kernel])
    except OSError as error:
        sys.exit(f"{options.file}: {error.strerror}")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        sys.exit(f"{options.file}: no file of winners ({type(error).__name__}: {error})")
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        checked = pool.map(lambda winner: check(winner, options, sm_count), winners)
        return report(content["kernels"], list(checked))


if __name__ == "__main__":
    sys.exit(main())
