#!/usr/bin/env python3
"""Times a tuned database's kernels against PyTorch's (cuBLAS, scaled_dot_product_attention) and against copying.

Everything is timed in one run on one GPU with device events: one launch a sample, twice the L2's size of other data
read before it, a spinning kernel in front that hides the launch, medians. PyTorch is timed before and after the tuned
kernels, so that drift shows; TF32 is off. With --trials the shapes are tuned first. With --against kernels are compared
with those of another version of kernel_templates/ and search_spaces/ instead, each by the same database, or by its own
defaults if that is empty.

  bench/compare_torch.py --build build/release/bin --db gpu.db --target sm_61 [--trials 100] [--suite matmul ...]
  bench/compare_torch.py --db empty.db --against OLDER [--suite matmul ...]
"""
import argparse
import functools
import json
import math
import subprocess
import sys
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

# (N, K) of the weights of Qwen3-VL-2B: q/o, k/v, gate/up, down, head; vision qkv, proj, fc1, fc2.
WEIGHTS = [(2048, 2048), (1024, 2048), (6144, 2048), (2048, 6144), (151936, 2048), (3072, 1024), (1024, 1024),
           (4096, 1024), (1024, 4096)]
ROWS = [1, 8, 64, 256, 1024, 2048]
# (N, K) of qkv, output, gate and up, down of the text models 2B, 4B and 8B.
PROMPT_WEIGHTS = {"prompt-2b": [(4096, 2048), (2048, 2048), (12288, 2048), (2048, 6144), (3072, 1024), (4096, 1024)],
                  "prompt-4b": [(6144, 2560), (2560, 4096), (19456, 2560), (2560, 9728)],
                  "prompt-8b": [(6144, 4096), (4096, 4096), (24576, 4096), (4096, 12288)]}
PROMPT_ROWS = [512, 2048]
TEXT = "HEADS=16,KV_HEADS=8,HEAD_DIM=128"


class Timer:
    """Median microseconds of what a function launches."""

    def __init__(self):
        size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
        self.other = torch.zeros(size // 4, device="cuda")
        self.sum = torch.empty((), device="cuda")

    def __call__(self, launch, samples=40):
        for _ in range(3):
            launch()
        times = []
        for _ in range(samples):
            torch.sum(self.other, dim=0, out=self.sum)
            torch.cuda._sleep(1000000)  # longer than any launch takes the processor
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            launch()
            stop.record()
            stop.synchronize()
            times.append(start.elapsed_time(stop) * 1e3)
        return sorted(times)[samples // 2]


def random(*shape, dtype=torch.float32):
    return (torch.rand(*shape, device="cuda") - 0.5).to(dtype)


def copy_bandwidth(timer, mebibytes=1024):
    """Bytes read and written a second by a copy within the device's memory."""
    source = torch.rand(mebibytes << 18, device="cuda")
    target = torch.empty_like(source)
    return 2e6 * 4 * source.numel() / timer(lambda: target.copy_(source))


class Case:
    """A shape: the kernel and problem that compute it, and a function that makes its peers, None if it has none."""

    def __init__(self, label, kernel, problem, peers=None, flops=0, size=0):
        self.label, self.kernel, self.problem, self.peers = label, kernel, problem, peers
        self.flops, self.size = flops, size
        self.peer_us = []
        self.own_us = None

    def time_peers(self, timer):
        times = {name: timer(launch) for name, launch in self.peers().items()}
        self.peer_us.append(min(times.values()))
        torch.cuda.empty_cache()


def matmul_case(m, n, k):
    def peers():
        a, b, c = random(m, k), random(n, k), torch.empty(m, n, device="cuda")
        return {"cuBLAS": lambda: torch.matmul(a, b.T, out=c)}

    kernel = "matvec" if m <= 8 else "matmul"
    return Case(f"{m} × {n} × {k}", kernel, f"M={m},N={n},K={k},STORAGE=float32", peers, flops=2 * m * n * k,
                size=4 * (m * k + n * k + m * n))


def attention_peers(q, k, v, causal, backends):
    def launch(backend):
        with sdpa_kernel(backend):
            F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return {str(backend): lambda backend=backend: launch(backend) for backend in backends}


def attention_work(heads, kv_heads, dim, queries, keys, causal, element):
    """Operations, and bytes that must be moved."""
    pairs = queries * (keys if not causal else (keys + 1) / 2)
    return {"flops": 4 * heads * dim * pairs, "size": element * (2 * kv_heads * keys + 2 * heads * queries) * dim}


def prefill_case(label, problem, heads, kv_heads, dim, queries, causal):
    def peers():
        q = random(1, heads, queries, dim)
        k, v = (random(1, kv_heads, queries, dim).repeat_interleave(heads // kv_heads, 1) for _ in "kv")
        return attention_peers(q, k, v, causal, [SDPBackend.EFFICIENT_ATTENTION])

    return Case(label, "attention_prefill", problem, peers,
                **attention_work(heads, kv_heads, dim, queries, queries, causal, 4))


def attention_cases():
    cases = [prefill_case(f"causal, 16/8 heads of 128, S = {s}", f"{TEXT},QUERIES={s},STORAGE=float32", 16, 8, 128, s,
                          True) for s in (256, 512, 1024, 2048, 4096)]
    cases.append(prefill_case("full, 16 heads of 64, S = 4096",
                              "HEADS=16,KV_HEADS=16,HEAD_DIM=64,QUERIES=4096,CAUSAL=0,STORAGE=float32", 16, 16, 64,
                              4096, False))
    return cases


def decode_case(heads, kv_heads, dim, keys):
    def peers():
        # Without a mask the heads that share keys are rows of one query, and the cache is read once as it is.
        q = random(1, kv_heads, heads // kv_heads, dim, dtype=torch.float16)
        k, v = (random(1, kv_heads, keys, dim, dtype=torch.float16) for _ in "kv")
        return attention_peers(q, k, v, False, [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])

    problem = f"HEADS={heads},KV_HEADS={kv_heads},HEAD_DIM={dim},KEYS={keys},STORAGE=float16,CACHE=float16"
    return Case(f"{heads}/{kv_heads} heads of {dim}, float16 cache, L = {keys}", "attention_decode", problem, peers,
                **attention_work(heads, kv_heads, dim, 1, keys, False, 2))


def decode_cases():
    return [decode_case(16, 8, 128, keys) for keys in (512, 4096, 32768)]


def memory_cases():
    def copied(size):
        def peers():
            source, target = torch.rand(size // 8, device="cuda"), torch.empty(size // 8, device="cuda")
            return {"copy": lambda: target.copy_(source)}

        return peers

    rows, width = 4096, 2048
    tensor = 4 * rows * width
    table = [
        ("rmsnorm", f"ROWS={rows},WIDTH={width}", 2 * tensor),
        ("rmsnorm", f"ROWS={rows},WIDTH={width},RESIDUAL=1", 4 * tensor),
        ("layernorm", f"ROWS={rows},WIDTH={width}", 2 * tensor),
        ("layernorm", f"ROWS={rows},WIDTH={width},RESIDUAL=1", 4 * tensor),
        ("softmax", f"ROWS={rows},WIDTH={width}", 2 * tensor),
        ("qk_norm_rope", f"TOKENS={rows},HEADS=16,KV_HEADS=8,HEAD_DIM=128", 4 * tensor),
        ("rope_vision", f"PATCHES={rows},HEADS=16,HEAD_DIM=64", 2 * tensor),
        ("elementwise", f"COUNT={rows * width},OPERATION=0,INPUT=float32,OUTPUT=float16", tensor * 3 // 2),
        ("elementwise", f"COUNT={rows * width},OPERATION=1", 3 * tensor),
        ("elementwise", f"COUNT={rows * width},OPERATION=2", 3 * tensor),
        ("elementwise", f"COUNT={rows * width},OPERATION=3", 2 * tensor),
        ("elementwise", f"COUNT={rows * width},OPERATION=4", 2 * tensor),
        ("transpose", f"ROWS={rows},COLUMNS={width}", 2 * tensor),
        ("gather", f"TOKENS={rows},WIDTH={width},VOCABULARY=151936", 2 * tensor),
        ("position_embedding", "GRID_H=64,GRID_W=64,WIDTH=2048", tensor + 4 * 48 * 48 * width),
    ]
    return [Case(f"{kernel} {problem}", kernel, problem, copied(size), size=size) for kernel, problem, size in table]


def stream_cases():
    cases = [Case("head", "matvec", "M=1,N=151936,K=2048,WEIGHT=float16", size=2 * 151936 * 2048)]
    for n, k, epilogue in ((4096, 2048, 0), (2048, 2048, 4), (12288, 2048, 5), (2048, 6144, 4)):
        cases.append(Case(f"{n} × {k}, epilogue {epilogue}", "matvec",
                          f"M=1,N={n},K={k},EPILOGUE={epilogue},WEIGHT=float16", size=2 * n * k))
    return cases


def matmul_cases():
    return [matmul_case(m, n, k) for n, k in WEIGHTS for m in ROWS]


def prompt_cases(suite):
    return [matmul_case(m, n, k) for n, k in PROMPT_WEIGHTS[suite] for m in PROMPT_ROWS]


SUITES = {"matmul": matmul_cases, "attention": attention_cases, "decode": decode_cases, "stream": stream_cases,
          "memory": memory_cases} | {suite: functools.partial(prompt_cases, suite) for suite in PROMPT_WEIGHTS}


class Pascaline:
    def __init__(self, options):
        self.build, self.db, self.target, self.trials = options.build, options.db, options.target, options.trials

    def run(self, program, *arguments):
        command = [f"{self.build}/{program}", *arguments, "--db", self.db]
        command += ["--target", self.target] if self.target else []
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def tune(self, kernel, problems):
        arguments = [word for problem in problems for word in ("--problem", problem)]
        self.run("pascaline", "sweep", "--device", "cuda:0", "--kernel", kernel, "--trials", str(self.trials),
                 *arguments)

    def winners(self, kernel, problems, version=None):
        """Median microseconds of the problems' winners, timed again, by the text given; `version` is a folder with
        other kernel_templates/ and search_spaces/."""
        arguments = [word for problem in problems for word in ("--problem", problem)]
        if version:
            arguments += ["--kernels", f"{version}/kernel_templates", "--spaces", f"{version}/search_spaces"]
        times = json.loads(self.run("compare_winners", "--kernel", kernel, "--json", "--rounds", "15", *arguments))
        return {text: entry["time_us"][0] for text, entry in zip(problems, times)}


def time_suite(cases, pascaline, timer):
    problems_of = {}
    for case in cases:
        problems_of.setdefault(case.kernel, []).append(case.problem)
    if pascaline.trials:
        for kernel, problems in problems_of.items():
            pascaline.tune(kernel, problems)
    peers = [case for case in cases if case.peers is not None]
    for case in peers:
        case.time_peers(timer)
    winners = {kernel: pascaline.winners(kernel, problems) for kernel, problems in problems_of.items()}
    for case in peers:
        case.time_peers(timer)
    for case in cases:
        case.own_us = winners[case.kernel][case.problem]


def compare_versions(cases, pascaline, version):
    """Prints how many times as long the other version's kernels take; both are timed twice, in turn."""
    problems_of = {}
    for case in cases:
        problems_of.setdefault(case.kernel, []).append(case.problem)
    print("| kernel | shape | own µs | other µs | ratio |")
    print("|---|---|---:|---:|---:|")
    ratios = []
    for kernel, problems in problems_of.items():
        own, other = [], []
        for _ in range(2):
            own.append(pascaline.winners(kernel, problems))
            other.append(pascaline.winners(kernel, problems, version))
        for problem in problems:
            us = [min(times[problem] for times in each) for each in (own, other)]
            ratios.append(us[1] / us[0])
            print(f"| {kernel} | {problem} | {us[0]:.2f} | {us[1]:.2f} | {ratios[-1]:.3f} |")
    print(f"\ngeometric mean of the ratios {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    return ratios


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def report(cases, bandwidth):
    print("| shape | own µs | peer µs before / after | ratio | TFLOP/s | GB/s | of copy bandwidth |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    ratios = []
    for case in cases:
        peer, ratio = "", ""
        if case.peer_us:
            ratios.append(sum(case.peer_us) / len(case.peer_us) / case.own_us)
            peer, ratio = " / ".join(f"{us:.1f}" for us in case.peer_us), f"{ratios[-1]:.2f}"
        print(f"| {case.label} | {case.own_us:.2f} | {peer} | {ratio} | {1e-6 * case.flops / case.own_us:.2f} | "
              f"{1e-3 * case.size / case.own_us:.0f} | {1e8 * case.size / case.own_us / bandwidth:.1f} % |")
    if ratios:
        print(f"\ngeometric mean of the ratios {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--db", required=True)
    parser.add_argument("--target", default="")
    parser.add_argument("--trials", type=int, default=0, help="tune every shape with so many trials first")
    parser.add_argument("--against", metavar="FOLDER", help="compare with the kernels and spaces there, not with PyTorch")
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="default: all")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    warnings.simplefilter("ignore")
    timer, pascaline = Timer(), Pascaline(options)
    if options.against:
        for suite in options.suite or SUITES:
            print(f"\n## {suite}\n", flush=True)
            compare_versions(SUITES[suite](), pascaline, options.against)
        return 0
    bandwidth = copy_bandwidth(timer)
    element = torch.zeros(1, device="cuda")
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, TF32 off, target "
          f"{options.target or 'native'}; copying 1 GiB: {bandwidth * 1e-9:.0f} GB/s; a launch for one element: "
          f"{timer(lambda: element.add_(1)):.1f} µs")
    for suite in options.suite or SUITES:
        cases = SUITES[suite]()
        time_suite(cases, pascaline, timer)
        print(f"\n## {suite}\n")
        ratios = report(cases, bandwidth)
        if suite == "matmul":
            large = [ratio for case, ratio in zip(cases, ratios) if int(case.label.split()[0]) >= 256]
            print(f"M >= 256: geometric mean {geometric_mean(large):.3f}, least {min(large):.3f}")
        if suite == "stream":
            for graph in ([], ["--graph"]):
                text = pascaline.run("stream_weights", "--weight", "float16", "--tokens", "100", *graph)
                print(text.splitlines()[-1])
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
