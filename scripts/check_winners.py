#!/usr/bin/env python3
"""Compiles published winners for sm_61 and inspects the machine code, no GPU needed.

  scripts/check_winners.py search_spaces/defaults/nvidia-h200-sm_61.json --nvdisasm /usr/bin/nvdisasm

None may touch local memory; in float32, fused multiply-adds must be 80 % of the instructions of matmul's main loop and
55 % of attention_prefill's. Exit code 3 if not. nvdisasm must know sm_61: CUDA 12.9 is the last one that does.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import count_loops

LEAST_FFMA = {"matmul": 80, "attention_prefill": 55}  # percent of the main loop


class Winner:
    def __init__(self, entry):
        self.kernel, *self.dimensions = entry["problem"].split()
        self.text, self.config = entry["problem"], entry["config"]
        self.share = None
        self.faults = []

    def compile(self, options, sm_count, folder):
        command = [options.pascaline, "compile", "--kernel", self.kernel, "--problem", ",".join(self.dimensions), "--set",
                   self.config.replace(" ", ","), "--sm-count", str(sm_count), "--emit", str(folder), "--json"]
        command += ["--nvrtc", options.nvrtc] if options.nvrtc else []
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            self.faults.append((result.stderr or result.stdout).strip())
            return self
        self.inspect(json.loads(result.stdout)["variants"][0], options, folder)
        return self

    def inspect(self, variant, options, folder):
        self.registers = variant["registers"]
        if variant["local_bytes"] + variant["local_loads"] + variant["local_stores"] > 0:
            self.faults.append(f"local memory: {variant['local_bytes']} bytes, {variant['local_loads']} loads")
        least = LEAST_FFMA.get(self.kernel)
        if least is None or any("float16" in dimension for dimension in self.dimensions):
            return
        loops = [kernel.main_loop() for cubin in pathlib.Path(folder).glob("*.cubin")
                 for kernel in count_loops.disassemble(options.nvdisasm, str(cubin))]
        self.share = min(100 * loop["FFMA"] / loop["all"] for loop in loops)
        if self.share < least:
            self.faults.append(f"{self.share:.1f} % FFMA in the main loop, less than {least} %")


def check(winner, options, sm_count):
    with tempfile.TemporaryDirectory() as folder:
        return winner.compile(options, sm_count, folder)


def report(winners):
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
    print(f"{len(winners)} winners, {len(faulty)} with faults")
    return 3 if faulty else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--pascaline", default="build/dev/bin/pascaline")
    parser.add_argument("--nvrtc", default="", help="which NVRTC compiles, e.g. 11.8")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--kernel", action="append", help="only this kernel (repeatable)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    content = json.loads(options.file.read_text())
    winners = [winner for winner in map(Winner, content["winners"])
               if not options.kernel or winner.kernel in options.kernel]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        checked = pool.map(lambda winner: check(winner, options, content["device"]["sm_count"]), winners)
        return report(list(checked))


if __name__ == "__main__":
    sys.exit(main())
