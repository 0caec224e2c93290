#!/usr/bin/env python3
"""Compares what quantized weights cost in accuracy with the same formats of the Python package gguf.

For each format, on the processor, on the same tokens of a text, against the original in float32:

- Weights rounded, activations in float32. gguf: a folder in float32 whose matrices went through gguf's quantize and
  dequantize, those that `pascaline quantize` quantizes, each to the type that this recipe gives it; gguf 0.19 quantizes
  q8_0, q4_0 and q4_1 only. Pascaline: the folder that `pascaline quantize` wrote, run with --weights float32.
- Weights and activations rounded, as Pascaline runs them. gguf's blocks: the quantized folder with the blocks that gguf
  makes. Pascaline: the original with --weights FORMAT.
- How blocks are read: the quantized folder against the same dequantized by gguf, both in float32. Their divergence must
  be 0: exit code 1 if it is not.

  bench/compare_gguf_accuracy.py sample --text sample/held_out.txt --tokens 20000 --window 256

Prints tables in Markdown, and what is more than --limit away from gguf in float32. Needs numpy and gguf
0.19; where TMPDIR says, room for the model in float32, for the quantized one and for logits; of memory some hundred
MB, and what Pascaline takes for the model in float32.
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


def size_of(dtype, shape):
    return {"F32": 4, "F16": 2, "BF16": 2, "U8": 1}[dtype] * int(np.prod(shape, dtype=np.int64))


def write_folder(folder, like, tensors, metadata):
    """A model's folder of tensors {name: (type, shape, pieces of values)}; its other files are those of `like`."""
    folder.mkdir()
    for file in like.glob("*.json"):
        if not file.name.endswith(".index.json"):
            shutil.copy(file, folder)
    header, end = {"__metadata__": metadata}, 0
    for name, (dtype, shape, _) in tensors.items():
        begin, end = end, end + size_of(dtype, shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, (_, _, pieces) in tensors.items():
            for piece in pieces:
                file.write(piece.tobytes())
            if file.tell() != 8 + len(text) + header[name]["data_offsets"][1]:
                sys.exit(f"{name}: its values are not as many as its shape says")


# ---- matrices through gguf

def noted(tensor):
    """Format and shape of a quantized tensor."""
    name, shape = tensor.note.split(" ", 1)
    return name, json.loads(shape)


def columns_of(shape):
    return int(np.prod(shape[1:], dtype=np.int64))


def quantized_by_gguf(original, kind, shape):
    """A matrix as gguf's blocks, rows [R, bytes]; rows are filled up with zeros to whole blocks, as Pascaline's are."""
    columns, row_bytes = columns_of(shape), len(original.data) // shape[0]
    for first, last in pieces_of_rows(shape):
        values = as_float32(original.dtype, original.data[first * row_bytes:last * row_bytes]).reshape(-1, columns)
        values = np.pad(values, ((0, 0), (0, -columns % GGML_QUANT_SIZES[kind][0])))
        yield quants.quantize(values, kind)


def stored_blocks(stored, shape):
    """The rows [R, bytes] of a matrix that Pascaline quantized."""
    row_bytes = stored.shape[1]
    for first, last in pieces_of_rows(shape):
        yield np.array(stored.data[first * row_bytes:last * row_bytes]).reshape(-1, row_bytes)


def pieces_of_rows(shape):
    rows = max(1, AT_ONCE // columns_of(shape))
    return [(first, min(first + rows, shape[0])) for first in range(0, shape[0], rows)]


def dequantized_by_gguf(blocks, kind, shape):
    for rows in blocks:
        yield quants.dequantize(rows, kind)[:, :columns_of(shape)].astype("<f4", copy=False)


def write_variant(folder, own, original, is_dequantized):
    """The folder `own`, which Pascaline quantized, with the blocks that gguf makes of `original`'s matrices, or if that
    is None with its own; as they are, or dequantized by gguf, in float32."""
    sources = read_folder(original) if original else {}
    tensors, metadata = {}, {}
    for name, stored in read_folder(own).items():
        if stored.dtype != "U8":
            pieces = numbers_of(stored) if is_dequantized else [stored.data]
            tensors[name] = ("F32" if is_dequantized else stored.dtype, stored.shape, pieces)
            continue
        format_name, shape = noted(stored)
        kind = GGUF[format_name]
        if not original:
            blocks = stored_blocks(stored, shape)
        elif name in sources and sources[name].shape == shape:
            blocks = quantized_by_gguf(sources[name], kind, shape)
        else:
            sys.exit(f"{original}: there is no {name} of shape {shape}")
        if is_dequantized:
            tensors[name] = ("F32", shape, dequantized_by_gguf(blocks, kind, shape))
        else:
            tensors[name] = ("U8", stored.shape, blocks)
            metadata[NOTE + name] = stored.note
    if not is_dequantized:
        metadata |= {"pascaline.version": "1", "pascaline.recipe": "gguf"}
    write_folder(folder, own, tensors, metadata)


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


# Results of `validate`: of gguf's blocks and of Pascaline's with activations in float32, then of both with activations
# rounded. `readers`: the divergence of Pascaline's blocks as Pascaline reads them from the same as gguf reads them.
Measured = collections.namedtuple("Measured", "gguf own gguf_run own_run readers")


def measure(pascaline, options, weights, folder):
    """All that is measured of one format; None is what gguf cannot do."""
    own, variant = folder / "own", folder / "variant"
    pascaline.quantize(options.model, own, weights)

    def of_variant(original, is_dequantized, run_as, reference):
        write_variant(variant, own, original, is_dequantized)
        result = pascaline.validate(variant, run_as, reference)
        shutil.rmtree(variant)
        return result

    gguf = gguf_run = readers = None
    if weights in QUANTIZED_BY_GGUF:
        gguf = of_variant(options.model, True, "float32", options.model)
        gguf_run = of_variant(options.model, False, weights, options.model)
    if weights in GGUF:
        write_variant(variant, own, None, True)
        readers = pascaline.validate(own, "float32", variant)["kl_mean"]
        shutil.rmtree(variant)
    return Measured(gguf, pascaline.validate(own, "float32", options.model), gguf_run,
                    pascaline.validate(options.model, weights, options.model), readers)


# ---- what is printed

def above(value, other):
    """By how much of the other a value is above it, in percent."""
    return 100 * (value / other - 1)


def difference(one, other):
    """Of perplexity and of KL, in percent."""
    return above(one["perplexity"], other["perplexity"]), above(one["kl_mean"], other["kl_mean"])


def difference_text(one, other):
    return "| " if other is None else "{:+.3f} % | {:+.1f} %".format(*difference(one, other))


def result_text(result):
    return "| " if result is None else f"{result['perplexity_ratio']:.5f} | {result['kl_mean']:.3e}"


def print_table(title, results, one, other, other_name):
    print(f"{title}\n")
    print(f"| `--weights` | {other_name}: perplexity | KL | Pascaline: perplexity | KL | difference | of KL |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for weights, result in results.items():
        first, second = getattr(result, one), getattr(result, other)
        print(f"| {weights} | {result_text(second)} | {result_text(first)} | {difference_text(first, second)} |")
    print()


def print_findings(results, limit):
    """What is beyond the limit, and where that comes from. Returns whether both read blocks alike."""
    for weights, result in results.items():
        if result.gguf and any(abs(percent) > limit for percent in difference(result.own_run, result.gguf)):
            parts = [f"{name} {perplexity:+.3f} % of perplexity and {divergence:+.1f} % of KL" for name, (
                perplexity, divergence) in (("in all", difference(result.own_run, result.gguf)),
                                            ("weights", difference(result.own, result.gguf)),
                                            ("activations", difference(result.own_run, result.own)))]
            print(f"- {weights} as run is more than {limit:g} % from gguf in float32: {'; '.join(parts)}.")
    if "int8" in results and "q8_0" in results:
        perplexity = above(results["int8"].own_run["perplexity"], results["q8_0"].own_run["perplexity"])
        print(f"- int8 has a perplexity {perplexity:+.3f} % above that of q8_0.")
    read = {weights: result.readers for weights, result in results.items() if result.readers is not None}
    different = [weights for weights, divergence in read.items() if divergence != 0]
    print(f"- gguf reads Pascaline's blocks of {', '.join(read)} "
          + (f"otherwise in {', '.join(different)}." if different else "as Pascaline does: divergence 0."))
    return not different


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="the original model's folder, not quantized")
    parser.add_argument("--text", type=pathlib.Path, required=True, help="text to compare on, in UTF-8")
    parser.add_argument("--tokens", type=int, default=20000, help="of the text at most (default: %(default)s)")
    parser.add_argument("--window", type=int, help="tokens read from an empty context each (default: as validate)")
    parser.add_argument("--formats", default=",".join(FORMATS), help="default: %(default)s")
    parser.add_argument("--limit", type=float, default=1,
                        help="percent of difference that are worth no line (default: %(default)s)")
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
    first = next(iter(results.values())).own_run
    print(f"{first['tokens']} tokens in windows of {first['window']}; perplexity in float32 "
          f"{first['float32_perplexity']:.4f}. Perplexity as a multiple of it, mean KL in nats per token; differences "
          "are of Pascaline from gguf.\n")
    print_table("Weights rounded, activations in float32:", results, "own", "gguf", "gguf")
    print_table("Weights and activations rounded:", results, "own_run", "gguf_run", "gguf's blocks")
    return 0 if print_findings(results, options.limit) else 1


if __name__ == "__main__":
    sys.exit(main())
