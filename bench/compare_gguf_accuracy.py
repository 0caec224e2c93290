#!/usr/bin/env python3
"""Compares what quantized weights cost in accuracy with the same formats of the Python package gguf.

For each format, on the processor, on the same tokens of a text, against the original in float32:

- gguf: a folder in float32 whose matrices went through gguf's quantize and dequantize, those that `pascaline quantize`
  quantizes, each to the type that this recipe gives it. gguf 0.19 quantizes q8_0, q4_0 and q4_1 only.
- own, weights alone: what `pascaline quantize` wrote, run in float32. Only the weights are rounded, as gguf's are.
- own, as run: the original with --weights FORMAT. Activations are rounded to int8, too.
- read alike: what `pascaline quantize` wrote, dequantized by gguf, against the same dequantized by Pascaline. Their
  divergence must be 0: exit code 1 if it is not.

  bench/compare_gguf_accuracy.py sample --text sample/held_out.txt --tokens 20000 --window 256

Prints a table in Markdown, and what of it is beyond --limit. Needs numpy and gguf 0.19 (from PyPI). Beside the folder
of the model there must be room for two of its size in float32, where TMPDIR says; of memory it takes some hundred MB,
and what Pascaline takes for the model in float32.
"""
import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

FORMATS = ("int8", "q8_0", "q6_k", "q4_k", "q4_1", "q4_0", "int4")
GGUF = {"q8_0": GGMLQuantizationType.Q8_0, "q6_k": GGMLQuantizationType.Q6_K, "q4_k": GGMLQuantizationType.Q4_K,
        "q4_1": GGMLQuantizationType.Q4_1, "q4_0": GGMLQuantizationType.Q4_0}
QUANTIZED_BY_GGUF = ("q8_0", "q4_1", "q4_0")
NOTE = "pascaline.format."
AT_ONCE = 1 << 22  # values that are converted together

# A tensor of a safetensors file: its bytes are mapped. `note` is what the file's metadata says of its format.
Stored = collections.namedtuple("Stored", "dtype shape data note")


# ---- safetensors files, which numpy cannot read in bfloat16

def read_file(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    notes = header.pop("__metadata__", {})
    data = np.memmap(path, np.uint8, "r", offset=8 + size)
    return {name: Stored(entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])], notes.get(NOTE + name))
            for name, entry in header.items()}


def read_folder(folder):
    """All tensors of a model's folder, by name."""
    files = sorted(pathlib.Path(folder).glob("model*.safetensors"))
    if not files:
        sys.exit(f"{folder}: there is no model.safetensors")
    return {name: tensor for file in files for name, tensor in read_file(file).items()}


def as_float32(dtype, data):
    if dtype == "BF16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if dtype in ("F16", "F32"):
        return data.view(np.float16 if dtype == "F16" else np.float32).astype(np.float32)
    sys.exit(f"a tensor of {dtype} is none that this script reads")


def numbers_of(tensor):
    """The values of a tensor that is stored as numbers, in pieces."""
    size = 4 if tensor.dtype == "F32" else 2
    for first in range(0, len(tensor.data), AT_ONCE * size):
        yield as_float32(tensor.dtype, tensor.data[first:first + AT_ONCE * size])


def write_float32(folder, like, tensors):
    """A model's folder with tensors {name: (shape, pieces of float32 values)}; its other files are those of `like`."""
    folder.mkdir()
    for file in like.glob("*.json"):
        if not file.name.endswith(".index.json"):
            shutil.copy(file, folder)
    header, end = {}, 0
    for name, (shape, _) in tensors.items():
        begin, end = end, end + 4 * int(np.prod(shape, dtype=np.int64))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, (_, pieces) in tensors.items():
            for piece in pieces:
                file.write(piece.astype("<f4", copy=False).tobytes())
            if file.tell() != 8 + len(text) + header[name]["data_offsets"][1]:
                sys.exit(f"{name}: its values are not as many as its shape says")


# ---- matrices through gguf

def noted(tensor):
    """Format and shape of a quantized tensor."""
    name, shape = tensor.note.split(" ", 1)
    return name, json.loads(shape)


def columns_of(shape):
    return int(np.prod(shape[1:], dtype=np.int64))


def through_gguf(original, kind, shape):
    """A matrix quantized and dequantized by gguf; its rows are filled up with zeros to whole blocks, as Pascaline's."""
    columns, block = columns_of(shape), GGML_QUANT_SIZES[kind][0]
    row_bytes = len(original.data) // shape[0]
    rows = max(1, AT_ONCE // columns)
    for first in range(0, shape[0], rows):
        values = as_float32(original.dtype, original.data[first * row_bytes:(first + rows) * row_bytes])
        values = np.pad(values.reshape(-1, columns), ((0, 0), (0, -columns % block)))
        yield quants.dequantize(quants.quantize(values, kind), kind)[:, :columns]


def read_by_gguf(stored, kind, shape):
    """A matrix that Pascaline quantized, dequantized by gguf."""
    columns, row_bytes = columns_of(shape), stored.shape[1]
    rows = max(1, AT_ONCE // columns)
    for first in range(0, shape[0], rows):
        blocks = np.array(stored.data[first * row_bytes:(first + rows) * row_bytes]).reshape(-1, row_bytes)
        yield quants.dequantize(blocks, kind)[:, :columns]


def write_through_gguf(folder, quantized, original):
    """The float32 folder of what gguf makes of the matrices that `quantized` has in U8; the rest is as it is there."""
    sources, tensors = read_folder(original), {}
    for name, stored in read_folder(quantized).items():
        if stored.dtype != "U8":
            tensors[name] = (stored.shape, numbers_of(stored))
            continue
        kind, shape = noted(stored)
        if name not in sources or sources[name].shape != shape:
            sys.exit(f"{original}: there is no {name} of shape {shape}")
        tensors[name] = (shape, through_gguf(sources[name], GGUF[kind], shape))
    write_float32(folder, quantized, tensors)


def write_read_by_gguf(folder, quantized):
    tensors = {}
    for name, stored in read_folder(quantized).items():
        if stored.dtype != "U8":
            tensors[name] = (stored.shape, numbers_of(stored))
            continue
        kind, shape = noted(stored)
        tensors[name] = (shape, read_by_gguf(stored, GGUF[kind], shape))
    write_float32(folder, quantized, tensors)


# ---- measuring

class Pascaline:
    def __init__(self, options):
        self.program = str(options.build / "pascaline")
        self.measure = ["--device", "cpu", "--kv-cache", "float32", "--text", str(options.text), "--tokens",
                        str(options.tokens), "--json"]
        self.measure += ["--window", str(options.window)] if options.window else []

    def run(self, *words):
        result = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"pascaline {' '.join(map(str, words))}: exit code {result.returncode}\n{result.stderr}")
        return result.stdout

    def quantize(self, model, folder, weights):
        self.run("quantize", "--model", model, "-o", folder, "--weights", weights, "--quiet")

    def validate(self, model, weights, reference):
        return json.loads(self.run("validate", "--model", model, "--weights", weights, "--reference", reference,
                                   *self.measure))


Measured = collections.namedtuple("Measured", "gguf alone run divergence_of_readers")


def measure(pascaline, options, weights, folder):
    """All that is measured of one format."""
    own, theirs, read = folder / "own", folder / "gguf", folder / "read"
    pascaline.quantize(options.model, own, weights)
    alone = pascaline.validate(own, "float32", options.model)
    run = pascaline.validate(options.model, weights, options.model)
    gguf = None
    if weights in QUANTIZED_BY_GGUF:
        write_through_gguf(theirs, own, options.model)
        gguf = pascaline.validate(theirs, "float32", options.model)
    readers = None
    if weights in GGUF:
        write_read_by_gguf(read, own)
        readers = pascaline.validate(own, "float32", read)["kl_mean"]
    return Measured(gguf, alone, run, readers)


def above(value, other):
    """By how much of itself a value is above another, in percent."""
    return 100 * (value / other - 1)


def compared(one, other, limit):
    """A cell for the difference of two results; whether it is within the limit."""
    if one is None or other is None:
        return "", True
    perplexity, divergence = (above(one[key], other[key]) for key in ("perplexity", "kl_mean"))
    return f"{perplexity:+.3f} %, {divergence:+.1f} %", abs(perplexity) <= limit and abs(divergence) <= limit


def shown(result):
    return "| " if result is None else f"{result['perplexity_ratio']:.5f} | {result['kl_mean']:.3e}"


def print_table(results, limit):
    print("| `--weights` | gguf | KL | own, weights alone | KL | as run | KL | weights alone against gguf | "
          "as run against gguf | as run against weights alone |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for weights, result in results.items():
        cells = [compared(one, other, limit)[0] for one, other in
                 ((result.alone, result.gguf), (result.run, result.gguf), (result.run, result.alone))]
        print(f"| {weights} | {shown(result.gguf)} | {shown(result.alone)} | {shown(result.run)} | "
              f"{' | '.join(cells)} |")


def print_findings(results, limit):
    """What is beyond the limit, and where that comes from."""
    for weights, result in results.items():
        run, is_near = compared(result.run, result.gguf, limit)
        if not is_near:
            alone, weights_are_near = compared(result.alone, result.gguf, limit)
            activations, activations_are_near = compared(result.run, result.alone, limit)
            print(f"- {weights} as run is more than {limit:g} % from gguf (perplexity {run} of KL). "
                  f"Weights: {alone}{'' if weights_are_near else ', beyond it'}. "
                  f"Activations: {activations}{'' if activations_are_near else ', beyond it'}.")
    if "int8" in results and "q8_0" in results:
        perplexity = above(results["int8"].run["perplexity"], results["q8_0"].run["perplexity"])
        print(f"- The perplexity of int8 is {perplexity:+.3f} % from that of q8_0 (at most +0.5 % is wanted).")
    read = {weights: result.divergence_of_readers for weights, result in results.items()
            if result.divergence_of_readers is not None}
    different = [weights for weights, divergence in read.items() if divergence != 0]
    print(f"- Blocks of {', '.join(read)} dequantized by gguf: "
          + (f"another model in {', '.join(different)}." if different else "the same model, divergence 0."))
    return not different


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="the original model's folder, not quantized")
    parser.add_argument("--text", type=pathlib.Path, required=True, help="text to compare on, in UTF-8")
    parser.add_argument("--tokens", type=int, default=20000, help="of the text at most (default: %(default)s)")
    parser.add_argument("--window", type=int, help="tokens read from an empty context each (default: as validate)")
    parser.add_argument("--formats", default=",".join(FORMATS), help="default: %(default)s")
    parser.add_argument("--limit", type=float, default=1, help="percent that are no finding (default: %(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/dev/bin"),
                        help="folder of the program (default: %(default)s)")
    options = parser.parse_args()
    options.formats = options.formats.split(",")
    if unknown := set(options.formats) - set(FORMATS):
        parser.error(f"--formats: {', '.join(sorted(unknown))} is none of {', '.join(FORMATS)}")
    return options


def main():
    options = parsed()
    pascaline = Pascaline(options)
    results = {}
    for weights in options.formats:
        with tempfile.TemporaryDirectory(prefix="gguf_accuracy_") as folder:
            results[weights] = measure(pascaline, options, weights, pathlib.Path(folder))
        print(f"{weights} measured", file=sys.stderr, flush=True)
    first = next(iter(results.values())).run
    print(f"{first['tokens']} tokens in windows of {first['window']}; perplexity in float32 "
          f"{first['float32_perplexity']:.4f}. Perplexity as a multiple of it, mean KL in nats per token; differences "
          "are those of perplexity, then of KL.\n")
    print_table(results, options.limit)
    print()
    return 0 if print_findings(results, options.limit) else 1


if __name__ == "__main__":
    sys.exit(main())
