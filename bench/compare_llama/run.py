#!/usr/bin/env python3
"""Runs llama.cpp's llama-bench and `pascaline bench-model` on the same GGUF files and the same GPU, in turn.

  bench/compare_llama/run.py --pascaline PROGRAM --llama PACK --out FOLDER [options]

PACK is what build.sh made, the folder or its archive. The files are random numbers of Qwen3-VL-2B's sizes, made in FOLDER/models by make_models.py
and llama-quantize unless they are there; --model-files TYPE=FILE takes others. Writes comparison.json, with all flags and
both programs' versions, and comparison.md. llama.cpp runs with and without flash attention, and the faster of both
counts. Pascaline runs with its defaults and, with --budget above 0, tuned; both for --target, which is what llama.cpp's
code was compiled for. Memory of the cache is float16 in both.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ("F16", "Q8_0", "Q4_K_M", "Q4_0")


class Step(Exception):
    """A command that failed, with the end of what it said."""


def call(command, log, environment=None, timeout=None):
    """Runs a command; gives its stdout, keeps both outputs in `log`."""
    command = [str(word) for word in command]
    begin = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
                              env={**os.environ, **(environment or {})})
        out, err, code = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as expired:
        out, err, code = "", str(expired), "timeout"
    except OSError as error:
        out, err, code = "", str(error), "not started"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"$ {' '.join(command)}\n# exit code {code} after {time.time() - begin:.1f} s\n{out}\n{err}\n")
    if code != 0:
        lines = [line for line in (err or out).splitlines() if line.strip()]
        raise Step(f"{pathlib.Path(command[0]).name}: exit code {code}: {' / '.join(lines[-3:])[:600]}")
    return out, err


def attempt(problems, what, action):
    """What `action` gives; None if it failed, which is noted."""
    try:
        return action()
    except (Step, ValueError, KeyError, OSError) as error:
        problems.append(f"{what}: {error}")
        print(f"failed: {problems[-1]}", file=sys.stderr, flush=True)
        return None


class Comparison:
    def __init__(self, options):
        self.options = options
        self.logs = options.out / "logs"
        self.problems = []
        self.rows = []
        # A stub of the driver that a build folder may name must not be found before the driver.
        self.llama_environment = {"CUBLAS_LIBRARY": options.cublas} if options.cublas else {}

    def llama(self, program):
        return self.options.llama / program

    def model_files(self):
        given = dict(item.split("=", 1) for item in self.options.model_files)
        folder = self.options.models or self.options.out / "models"
        base = folder / "text.gguf"
        files = {}
        for kind in self.options.types:
            if kind in given:
                files[kind] = pathlib.Path(given[kind])
                continue
            if not base.exists():
                path = os.pathsep.join([str(self.options.llama), os.environ.get("PYTHONPATH", "")])
                call([sys.executable, HERE / "make_models.py", folder, "--mmproj"], self.logs / "make_models.log",
                     {"PYTHONPATH": path})
            files[kind] = base if kind == "F16" else folder / f"{kind}.gguf"
            if not files[kind].exists():
                attempt(self.problems, f"quantizing to {kind}", lambda kind=kind: call(
                    [self.llama("llama-quantize"), base, files[kind], kind, os.cpu_count()],
                    self.logs / f"quantize_{kind}.log", self.llama_environment))
        self.mmproj = pathlib.Path(given["mmproj"]) if "mmproj" in given else folder / "mmproj.gguf"
        return {kind: file for kind, file in files.items() if file.exists()}

    def bench_llama(self, kind, file, attention):
        words = [self.llama("llama-bench"), "-m", file, "-p", ",".join(map(str, self.options.prompts)), "-n",
                 str(self.options.generated), "-d", ",".join(map(str, self.options.depths)), "-r",
                 str(self.options.repeats), "-ngl", "99", "-fa", attention, "-o", "json"]
        out, _ = call(words, self.logs / f"llama_{kind}_fa_{attention}.log", self.llama_environment,
                      self.options.timeout)
        results = {}
        for one in json.loads(out):
            if "CPU" == one.get("backends"):
                raise ValueError("llama-bench ran on the processor; see its log")
            if (one["n_prompt"] > 0) != (one["n_gen"] > 0):
                results[test_name(one)] = {"mean": one["avg_ts"], "deviation": one["stddev_ts"]}
        return results

    def bench_ours(self, kind, file, tuned):
        words = [self.options.pascaline, "bench-model", "--model", file, "--device", self.options.device, "--target",
                 self.options.target, "--context", self.context(), "--kv-cache", "float16", "--format",
                 "llama-bench-json", "--prompt-tokens", *self.options.prompts, "--generated", self.options.generated,
                 "--depth", *self.options.depths, "--repeats", self.options.repeats]
        words += ["--db", self.database(kind)] if tuned else ["--untuned"]
        out, _ = call(words, self.logs / f"pascaline_{kind}_{'tuned' if tuned else 'untuned'}.log", None,
                      self.options.timeout)
        return {test_name(one): {"mean": one["avg_ts"], "deviation": one["stddev_ts"]} for one in json.loads(out)}

    def tunes(self):
        return self.options.budget not in ("0", "0s")

    def context(self):
        return max(self.options.depths) + max([*self.options.prompts, self.options.generated]) + 64

    def database(self, kind):
        return self.options.out / f"{kind}.db"

    def tune(self, kind, file):
        call([self.options.pascaline, "sweep", "--model", file, "--device", self.options.device, "--target",
              self.options.target, "--prompt-tokens", *self.options.prompts, "--phase", "prompt", "token", "--context",
              self.context(), "--budget", self.options.budget, "--preheat", 0, "--sample-budget-ms", 30, "--finalists",
              3, "--rounds", 10, "--db", self.database(kind)], self.logs / f"sweep_{kind}.log")

    def measure(self, kind, file):
        print(f"{kind}: {file}", file=sys.stderr, flush=True)
        theirs = {}
        for attention in self.options.attention:
            one = attempt(self.problems, f"{kind}: llama-bench -fa {attention}",
                          lambda attention=attention: self.bench_llama(kind, file, attention))
            theirs[attention] = one or {}
        untuned = attempt(self.problems, f"{kind}: pascaline, defaults",
                          lambda: self.bench_ours(kind, file, False)) or {}
        tuned = {}
        if self.tunes():
            def tune_and_run():
                self.tune(kind, file)
                return self.bench_ours(kind, file, True)
            tuned = attempt(self.problems, f"{kind}: pascaline, tuned", tune_and_run) or {}
        tests = list(dict.fromkeys([test for one in theirs.values() for test in one] + list(untuned) + list(tuned)))
        for test in tests:
            best = max((one[test] for one in theirs.values() if test in one), key=lambda one: one["mean"], default=None)
            self.rows.append({"model": kind, "test": test, "llama": {name: one.get(test) for name, one in theirs.items()},
                              "llama_best": best, "untuned": untuned.get(test), "tuned": tuned.get(test)})

    def measure_image(self, file):
        """Milliseconds of encoding an image: llama.cpp's own, and of Pascaline those of a prompt that is the image, with
        the text model's reading of it. Medians of some runs of each program; the driver translates llama.cpp's code in
        one before."""
        side = self.options.image
        image = self.options.out / "image.png"
        write_png(image, side)

        def theirs():
            times = []
            for run in range(self.options.repeats + 1):
                out, err = call([self.llama("llama-mtmd-cli"), "-m", file, "--mmproj", self.mmproj, "--image", image,
                                 "-p", "x", "-n", "1", "--chat-template", "chatml", "-ngl", "99", "--temp", "0"], self.logs / f"llama_image_{run}.log",
                                self.llama_environment, self.options.timeout)
                told = re.findall(r"(?:slice encoded|batch encoding done) in (\d+) ms", out + err)
                times += [float(ms) for ms in told if run > 0]
            if not times:
                raise ValueError("llama-mtmd-cli tells no time of an image; see its log")
            return statistics.median(times)

        model = ["--model", file, "--mmproj", self.mmproj, "--device", self.options.device, "--target",
                 self.options.target, "--image-size", side, side]
        database = self.database("image")

        def ours(plans, log):
            out, _ = call([self.options.pascaline, "bench-model", *model, *plans, "--prompt-tokens", 8, "--repeats",
                           self.options.repeats, "--json"], self.logs / log, None, self.options.timeout)
            return next(one["time_ms"] for one in json.loads(out)["passes"] if one["pass"] == "image")

        def tune_and_run():
            call([self.options.pascaline, "sweep", *model, "--phase", "image", "--budget", self.options.budget,
                  "--preheat", 0, "--sample-budget-ms", 30, "--finalists", 3, "--rounds", 10, "--db", database],
                 self.logs / "sweep_image.log")
            return ours(["--db", database], "pascaline_image_tuned.log")

        return {"pixels": side, "llama_ms": attempt(self.problems, "image: llama-mtmd-cli", theirs),
                "untuned_ms": attempt(self.problems, "image: pascaline, defaults",
                                      lambda: ours(["--untuned"], "pascaline_image.log")),
                "tuned_ms": attempt(self.problems, "image: pascaline, tuned", tune_and_run)
                            if self.tunes() else None}

    def run(self):
        self.options.out.mkdir(parents=True, exist_ok=True)
        if self.options.llama.is_file():
            try:
                with tarfile.open(self.options.llama) as archive:
                    archive.extractall(self.options.out / "llama")
            except tarfile.TarError as error:
                raise Step(f"--llama {self.options.llama}: {str(error).splitlines()[0].rstrip(':')}") from error
            self.options.llama = self.options.out / "llama"
        files = self.model_files()
        for kind, file in files.items():
            self.measure(kind, file)
        image = None
        if self.options.image and files:
            kind = "Q8_0" if "Q8_0" in files else next(iter(files))
            image = self.measure_image(files[kind])
        build = self.options.llama / "BUILD.txt"
        result = {"llama_cpp": build.read_text().splitlines() if build.exists() else [],
                  "pascaline": version_of(self.options.pascaline), "gpu": gpu(), "target": self.options.target,
                  "arguments": sys.argv[1:], "rows": self.rows, "image": image, "problems": self.problems}
        (self.options.out / "comparison.json").write_text(json.dumps(result, indent=1) + "\n")
        text = markdown(result)
        (self.options.out / "comparison.md").write_text(text)
        print(text)
        return 1 if self.problems or not self.rows else 0


def test_name(one):
    """As llama-bench's table has it."""
    name = f"pp{one['n_prompt']}" if one["n_prompt"] else f"tg{one['n_gen']}"
    return name + (f" @ d{one['n_depth']}" if one.get("n_depth") else "")


def write_png(file, side):
    """A square with some pattern."""
    import struct
    import zlib
    lines = b"".join(b"\0" + bytes((x * y + channel * x) % 256 for x in range(side) for channel in range(3))
                     for y in range(side))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def check_programs(options):
    """Raises Step for a program that is not there; llama.cpp's may be in an archive."""
    if shutil.which(options.pascaline) is None:
        raise Step(f"--pascaline {options.pascaline}: there is no such program")
    bench = options.llama / "llama-bench"
    if not options.llama.is_file() and shutil.which(bench) is None:
        raise Step(f"--llama {options.llama}: there is no program {bench.name} in it: make it with build.sh")


def version_of(program):
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        return str(error)


def gpu():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return "unknown"


def shown(value):
    return f"{value['mean']:.1f} ± {value['deviation']:.1f}" if value else "—"


def ratio(ours, theirs):
    return f"{ours['mean'] / theirs['mean']:.2f}×" if ours and theirs and theirs["mean"] > 0 else "—"


def markdown(result):
    lines = [f"{result['gpu']}; {result['pascaline']}; llama.cpp: " + "; ".join(result["llama_cpp"]), "",
             "| model | test | llama.cpp, t/s | Pascaline, defaults | | Pascaline, tuned | |",
             "|---|---|---:|---:|---:|---:|---:|"]
    for row in result["rows"]:
        best = row["llama_best"]
        lines.append(f"| {row['model']} | {row['test']} | {shown(best)} | {shown(row['untuned'])} | "
                     f"{ratio(row['untuned'], best)} | {shown(row['tuned'])} | {ratio(row['tuned'], best)} |")
    if result["image"]:
        image = result["image"]
        lines += ["", f"Image of {image['pixels']} × {image['pixels']} pixels, encoded in ms: llama.cpp "
                      f"{image['llama_ms']}, Pascaline with defaults {image['untuned_ms']}, tuned {image['tuned_ms']}"]
    lines += [""] + [f"- failed: {problem}" for problem in result["problems"]]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pascaline", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--llama", type=pathlib.Path, required=True, help="the folder that build.sh packed, or its .tar.xz")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="gets results, logs and databases")
    parser.add_argument("--models", type=pathlib.Path, help="where files are made (default: OUT/models)")
    parser.add_argument("--model-files", nargs="*", default=[], metavar="TYPE=FILE", help="files instead; also mmproj=FILE")
    parser.add_argument("--types", nargs="+", default=list(TYPES))
    parser.add_argument("--prompts", nargs="+", type=int, default=[512, 1024])
    parser.add_argument("--generated", type=int, default=128)
    parser.add_argument("--depths", nargs="+", type=int, default=[0, 2048])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--attention", nargs="+", default=["on", "off"], help="llama-bench's -fa")
    parser.add_argument("--image", type=int, default=1024, help="pixels of its sides; 0: none")
    parser.add_argument("--budget", default="0", help="time to tune for each type, e.g. 60s (default: not tuned)")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--target", default="sm_61")
    parser.add_argument("--cublas", help="file of cuBLAS, which llama.cpp needs for F16")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one command may take")
    options = parser.parse_args()
    try:
        check_programs(options)
        sys.exit(Comparison(options).run())
    except (Step, OSError) as error:
        sys.exit(f"run.py: {error}")


if __name__ == "__main__":
    main()
