#!/usr/bin/env python3
"""Counts the instructions of every loop in compiled kernels, from NVIDIA's disassembly.

  pascaline compile --kernel matmul --arch sm_61 --set BLOCK_M=128 --emit cubins
  bench/count_loops.py --nvdisasm /usr/bin/nvdisasm cubins/*.cubin [--ffma 80]

For each loop (a backward branch and its target): instructions, how many are FFMA, shared loads and stores, global
loads, barriers, and local-memory accesses; loops inside are counted as often as they stand in the code. With --ffma the
exit code is 3 if the FFMA share of the loop with the most FFMA, the longest such, is below that percentage in any kernel,
or if anything touches local memory. nvdisasm must know the architecture: CUDA 12.9 is the last one that knows sm_61.
"""
import argparse
import re
import subprocess
import sys

INSTRUCTION = re.compile(r"^\s*(?:\{\s*)?/\*[0-9a-f]+\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*?)(?:;|\}|$)")
LABEL = re.compile(r"^\s*(\.L_\w+):")
FUNCTION = re.compile(r"^\s*\.text\.(\w+):")
TARGET = re.compile(r"`\((\.L_\w+)\)")
KINDS = {"FFMA": ("FFMA", "FFMA32I"), "LDS": ("LDS",), "STS": ("STS",), "LDG": ("LDG", "LD"), "BAR": ("BAR",),
         "local": ("LDL", "STL")}


class Kernel:
    def __init__(self, name):
        self.name, self.instructions, self.labels, self.branches = name, [], {}, []

    def add(self, opcode, operands):
        target = TARGET.search(operands) if opcode.split(".")[0] == "BRA" else None
        if target:
            self.branches.append((len(self.instructions), target.group(1)))
        self.instructions.append(opcode.split(".")[0])

    def loops(self):
        """First and last instruction of each loop; the one that ends every kernel, a branch to itself, is none."""
        found = {(self.labels[label], at) for at, label in self.branches if self.labels.get(label, at) < at}
        return sorted(found)

    def count(self, first, last):
        body = [word for word in self.instructions[first:last + 1] if word != "NOP"]
        return {"all": len(body), **{kind: sum(word in words for word in body) for kind, words in KINDS.items()}}

    def main_loop(self):
        """First and last instruction of the loop with the most FFMA, the longest such; nothing if there is none."""
        return max(self.loops(), key=lambda loop: (self.count(*loop)["FFMA"], loop[1] - loop[0]), default=None)

    def inside(self, outer):
        """The loops that lie in a loop, but in none of its others, in order."""
        within = [loop for loop in self.loops() if outer[0] <= loop[0] and loop[1] <= outer[1] and loop != outer]
        return [loop for loop in within
                if not any(other != loop and other[0] <= loop[0] and loop[1] <= other[1] for other in within)]


def disassemble(nvdisasm, cubin):
    text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    kernels = []
    for line in text.splitlines():
        function, label, instruction = FUNCTION.match(line), LABEL.match(line), INSTRUCTION.match(line)
        if function:
            kernels.append(Kernel(function.group(1)))
        elif label and kernels:
            kernels[-1].labels[label.group(1)] = len(kernels[-1].instructions)
        elif instruction and kernels:
            kernels[-1].add(instruction.group(1), instruction.group(2))
    if not any(kernel.instructions for kernel in kernels):
        raise SystemExit(f"{cubin}: the disassembly holds no instructions")
    return kernels


def show(kernel, cubin):
    """Prints a kernel's loops; returns the FFMA share in percent of the main one, and the kernel's local accesses."""
    whole = kernel.count(0, len(kernel.instructions) - 1)
    print(f"{cubin}: {kernel.name}: {whole['all']} instructions, {whole['FFMA']} FFMA, {whole['local']} local")
    for first, last in kernel.loops():
        counts = kernel.count(first, last)
        print(f"  loop of {counts['all']:5}: FFMA {counts['FFMA']:5} ({100 * counts['FFMA'] / counts['all']:4.1f} %)  " +
              "  ".join(f"{kind} {counts[kind]}" for kind in ("LDS", "STS", "LDG", "BAR", "local")))
    main_loop = kernel.main_loop()
    counts = kernel.count(*main_loop) if main_loop else whole
    return 100 * counts["FFMA"] / counts["all"], whole["local"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--ffma", type=float, help="least FFMA share of the main loop, in percent")
    parser.add_argument("cubins", nargs="+")
    options = parser.parse_args()
    good = True
    for cubin in options.cubins:
        for kernel in disassemble(options.nvdisasm, cubin):
            share, local = show(kernel, cubin)
            good = good and (options.ffma is None or (share >= options.ffma and local == 0))
    return 0 if good else 3


if __name__ == "__main__":
    sys.exit(main())
