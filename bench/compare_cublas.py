#!/usr/bin/env python3
"""Tunes matmul shapes with pascaline and times cuBLAS (through PyTorch, TF32 off) on the same shapes in the same run.

Both are timed with device events, one launch a sample, the L2 overwritten before each and a spinning kernel in front
that hides the launch; medians are compared. cuBLAS is timed before and after the sweep, so that drift shows.

  bench/compare_cublas.py --pascaline build/release/bin/pascaline --db gpu.db --target sm_61 --trials 300 \
      --problem 4096,4096,4096 --problem 512,2048,2048
"""
import argparse
import json
import subprocess
import sys

import torch


def time_cublas(m, n, k, dtype, samples=60):
    """Median microseconds of A[M,K] @ B[N,K].T."""
    a = torch.rand(m, k, device="cuda", dtype=torch.float32).sub_(0.5).to(dtype)
    b = torch.rand(n, k, device="cuda", dtype=torch.float32).sub_(0.5).to(dtype)
    c = torch.empty(m, n, device="cuda", dtype=dtype)
    flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size, device="cuda", dtype=torch.uint8)
    for _ in range(3):
        torch.matmul(a, b.T, out=c)
    times = []
    for _ in range(samples):
        flush.zero_()
        torch.cuda._sleep(50000)
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.matmul(a, b.T, out=c)
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1e3)
    return sorted(times)[len(times) // 2]


def run(command):
    print("$", " ".join(command), flush=True)
    subprocess.run(command, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pascaline", default="build/release/bin/pascaline")
    parser.add_argument("--db", required=True)
    parser.add_argument("--target", default="")
    parser.add_argument("--trials", default="300")
    parser.add_argument("--type", default="float32", choices=["float32", "float16"])
    parser.add_argument("--problem", action="append", required=True, help="M,N,K")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = {"float32": torch.float32, "float16": torch.float16}[options.type]
    shapes = [tuple(int(x) for x in text.split(",")) for text in options.problem]

    before = {shape: time_cublas(*shape, dtype) for shape in shapes}
    command = [options.pascaline, "sweep", "--device", "cuda:0", "--db", options.db, "--trials", options.trials]
    command += ["--target", options.target] if options.target else []
    for m, n, k in shapes:
        command += ["--problem", f"M={m},N={n},K={k},STORAGE={options.type}"]
    run(command)
    after = {shape: time_cublas(*shape, dtype) for shape in shapes}

    shown = subprocess.run([options.pascaline, "show", "winners", "--db", options.db, "--limit", "0", "--json"],
                           check=True, capture_output=True, text=True)
    winners = {row["problem"]: row for row in json.loads(shown.stdout)}
    print(f"\n{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, TF32 off, {options.type}, "
          f"target {options.target or 'native'}")
    print(f"{'M':>6}{'N':>8}{'K':>7}{'default us':>12}{'best us':>10}{'gain':>7}{'TFLOP/s':>9}"
          f"{'cuBLAS us':>18}{'of cuBLAS':>11}")
    for m, n, k in shapes:
        row = winners[f"matmul M={m} N={n} K={k} STORAGE={options.type}"]
        cublas = 0.5 * (before[m, n, k] + after[m, n, k])
        print(f"{m:>6}{n:>8}{k:>7}{row['default_us']:>12.1f}{row['best_us']:>10.1f}{row['default_us'] / row['best_us']:>7.2f}"
              f"{2e-6 * m * n * k / row['best_us']:>9.2f}{before[m, n, k]:>9.1f}{after[m, n, k]:>9.1f}"
              f"{100 * cublas / row['best_us']:>10.1f}%")
    return 0


if __name__ == "__main__":
    sys.exit(main())
