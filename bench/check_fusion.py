#!/usr/bin/env python3
"""Is the fusion plan right? A model by the plan of its database, with nothing fused, and with all fused that fits.

Sweeps the model's kernels and places first (--budget 0: takes the database as it is). Then each of the three ways runs
in turn, once a round, so that a device that slows down slows all of them. For each pass it prints the medians in
milliseconds, and how many times as long the plan takes as either: the median over the rounds of the ratios of a round,
with the half width of its interval of 95 % (by the sign test). Ends with 1 if the plan takes more than --most times as
long, and that is not within the interval.

  bench/check_fusion.py --program build/release/bin/pascaline --model FOLDER --budget 120s --rounds 9
      [--device cuda:0] [--target sm_61] [--weights float16] [--prompt-tokens 512] [--image-size 512 512] [--db FILE]

All fused: in each place the way with the fewest launches, of several the last that `explain --model` lists.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WAYS = ("plan", "nothing fused", "all fused")


def run(command):
    """What the command prints; ends with what it said if it fails."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(str(part) for part in command)}\n{result.stderr or result.stdout}")
    return result.stdout


def all_fused(plan):
    """The plan with as few launches as there can be."""
    fused = json.loads(json.dumps(plan))
    for place in fused["places"]:
        fewest = min(way["launches"] for way in place["alternatives"])
        place["alternative"] = [way["name"] for way in place["alternatives"] if way["launches"] == fewest][-1]
    return fused


def interval(values):
    """The median, and half the distance between the order statistics that hold it with 95 %."""
    ordered = sorted(values)
    count = len(ordered)
    outside, tail = 0, 0.0
    while outside < count // 2 and tail + math.comb(count, outside) / 2**count <= 0.025:
        tail += math.comb(count, outside) / 2**count
        outside += 1
    low, high = max(outside - 1, 0), count - 1 - max(outside - 1, 0)
    return statistics.median(ordered), (ordered[high] - ordered[low]) / 2


def measure(options, files):
    """Times in ms of each pass, by way: lists of a value for each round."""
    common = [options.program, "bench-model", *options.of_model, "--repeats", options.repeats, "--json"]
    flags = {"plan": "auto", "nothing fused": "off", "all fused": files["all fused"]}
    times = {}
    launches = {}
    for number in range(options.rounds):
        for way in WAYS[number % 3:] + WAYS[:number % 3]:
            report = json.loads(run([*common, "--fusion", flags[way]]))
            for one in report["passes"]:
                times.setdefault(one["per"], {}).setdefault(way, []).append(one["time_ms"])
                if "launches_per_token" in one:
                    launches[way] = one["launches_per_token"]
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    return times, launches


def report(options, times, launches):
    """Prints the table; whether the plan is right."""
    right = True
    for way in WAYS:
        if way in launches:
            print(f"launches of a token, {way}: {launches[way]}")
    for per, by_way in times.items():
        medians = ", ".join(f"{way} {statistics.median(by_way[way]):.3f} ms" for way in WAYS)
        print(f"{per}: {medians}")
        for other in WAYS[1:]:
            ratio, half = interval([a / b for a, b in zip(by_way["plan"], by_way[other])])
            slower = ratio - half > options.most
            right = right and not slower
            print(f"  plan over {other}: {ratio:.3f} ± {half:.3f}{'  SLOWER' if slower else ''}")
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--random-weights", action="store_true", help="the folder needs only config.json")
    parser.add_argument("--db", type=Path)
    parser.add_argument("--budget", default="120s", help="of the sweep; 0: none")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most", type=float, default=1.01)
    parser.add_argument("--sweep-option", action="append", default=[], help="one more word for the sweep, repeatable")
    known = ("device", "target", "weights", "kv-cache", "context", "nvrtc", "prompt-tokens")
    for name in known:
        parser.add_argument(f"--{name}")
    parser.add_argument("--image-size", nargs=2)
    options = parser.parse_args()
    if options.rounds < 6:
        parser.error("--rounds: 6 at least, for an interval of 95 %")
    with tempfile.TemporaryDirectory() as folder:
        options.db = options.db or Path(folder) / "tuned.db"
        options.of_model = ["--model", options.model, "--db", options.db]
        for name in known:
            value = getattr(options, name.replace("-", "_"))
            options.of_model += [f"--{name}", value] if value else []
        options.of_model += ["--image-size", *options.image_size] if options.image_size else []
        if options.budget != "0":
            run([options.program, "sweep", *options.of_model, "--budget", options.budget, *options.sweep_option])
        plan = json.loads(run([options.program, "explain", *options.of_model, "--json"]))
        origins = [place["origin"] for place in plan["places"]]
        print(f"{len(origins)} places: " + ", ".join(f"{origins.count(one)} {one}" for one in sorted(set(origins))))
        files = {"all fused": Path(folder) / "all_fused.json"}
        files["all fused"].write_text(json.dumps(all_fused(plan)))
        options.of_model += ["--random-weights"] if options.random_weights else []
        times, launches = measure(options, files)
    sys.exit(0 if report(options, times, launches) else 1)


if __name__ == "__main__":
    main()
