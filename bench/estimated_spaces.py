#!/usr/bin/env python3
"""Makes recorded spaces of estimates, for what no card has measured yet: the times that `pascaline rank` tells of every
valid configuration of some problems, as tables KERNEL__NAME.csv that `transfer_between_cards` reads.

Each problem is NAME:KERNEL:DIMENSION=value,...,TYPE=element type. With --compile the time is the estimate from the machine
code that NVRTC makes for sm_61, else the static model's. --keep leaves of a kernel's parameter only some values, so that
a space is small enough to be compiled as a whole: KERNEL:PARAMETER=value,value.
"""

import argparse
import csv
import json
import os
import subprocess
import tempfile
from pathlib import Path


def reduced_data(folder: Path, data: Path, keep: list[str]) -> None:
    """A copy of the search spaces with only the values of `keep`, beside the kernels as they are."""
    for entry in data.iterdir():
        if entry.name == "kernel_templates":
            (folder / entry.name).symlink_to(entry.resolve())
    (folder / "search_spaces").mkdir()
    for file in sorted((data / "search_spaces").glob("*.json")):
        space = json.loads(file.read_text())
        for parameter in space.get("parameters", []):
            for kernel, name, values in (split_keep(text) for text in keep):
                if kernel == space["kernel"] and name == parameter["name"]:
                    parameter["values"] = [value for value in parameter["values"] if str(value) in values]
                    if parameter["default"] not in parameter["values"]:
                        parameter["default"] = parameter["values"][0]
        for key in ("portfolio", "portfolios", "defaults"):
            space.pop(key, None)
        (folder / "search_spaces" / file.name).write_text(json.dumps(space))


def split_keep(text: str) -> tuple[str, str, list[str]]:
    kernel, rest = text.split(":", 1)
    name, values = rest.split("=", 1)
    return kernel, name, values.split(",")


def estimates(arguments: argparse.Namespace, data: Path, kernel: str, problem: str) -> list[dict]:
    """The configurations of one problem with their times, as `rank` tells them."""
    command = [str(arguments.program), "rank", "--kernel", kernel, "--problem", problem, "--arch", "sm_61", "--json"]
    command += ["--sample", str(arguments.most), "--top", str(arguments.most)]
    if arguments.compile:
        command += ["--compile", str(arguments.most), "--jobs", str(arguments.jobs), "--nvrtc", arguments.nvrtc]
    environment = os.environ | {"PASCALINE_DATA_DIR": str(data)}
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    return json.loads(told.stdout)["problems"][0]["best"]


def write_table(file: Path, ranked: list[dict], compiled: bool) -> int:
    names = sorted(ranked[0]["config"])
    rows = []
    for entry in ranked:
        time_us = entry.get("code", {}).get("time_us") if compiled else entry["time_us"]  # of some code there is none
        if time_us is not None:
            rows.append([entry["config"][name] for name in names] + [f"{time_us / 1000:.9g}", "ok", 1])
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*names, "time_ms", "status", "eval_cost_ms"])
        writer.writerows(sorted(rows))
    return len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+", metavar="NAME:KERNEL:PROBLEM")
    parser.add_argument("--program", type=Path, required=True, help="pascaline")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[1], help="Pascaline's data")
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--keep", action="append", default=[], metavar="KERNEL:PARAMETER=VALUES")
    parser.add_argument("--compile", action="store_true", help="estimates from machine code")
    parser.add_argument("--most", type=int, default=20000, help="configurations of a problem")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--nvrtc", default="11.8")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        reduced_data(Path(folder), arguments.data, arguments.keep)
        for text in arguments.problems:
            name, kernel, problem = text.split(":", 2)
            ranked = estimates(arguments, Path(folder), kernel, problem)
            file = arguments.out / f"{kernel}__{name}.csv"
            print(f"{file}: {write_table(file, ranked, arguments.compile)} configurations", flush=True)


if __name__ == "__main__":
    main()
