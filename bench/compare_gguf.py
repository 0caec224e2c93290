#!/usr/bin/env python3
"""Compares GGUF files of Qwen3-VL-2B's sizes that the Python package gguf writes with folders of the same numbers.

For each type the same random numbers (deviation 0.02) are quantized by the package gguf, but for those of which it only
reads blocks: these are drawn. What comes out is written as a GGUF file and its projector, by the package's
GGUFWriter, and as folders. `compare_models` gives both the same prompt, of text and an image, and compares the logits
after each of its tokens, and those of the tokens that each then chooses greedily. It does so twice:

- as stored: a folder of the same bytes, blocks and all. Products with blocks round their activations, in both alike. F16
  is kept in float16.
- in float32: a folder of what gguf.quants.dequantize makes of the file's bytes, in float32, both with --weights float32.

  bench/compare_gguf.py --device cpu                                      # 17 GB of disk and 9 GB of memory at most
  bench/compare_gguf.py --device cpu --layers 2 --vision-layers 2 --types Q8_0 Q4_K
  bench/compare_gguf.py --device cuda:0 --target sm_61 --folder /dev/shm

Prints a line for each comparison, then a table in Markdown. Exit code 1 if one is beyond --limit or chose other tokens,
or could not be made. Needs NumPy, the package gguf, and compare_models, which the preset release builds.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/model"), str(ROOT / "tests/scripts")]
import gguf_models as models  # noqa: E402
import make_projector_fixture as fixture  # noqa: E402

KIND = gguf.GGMLQuantizationType
BLOCKS = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4")
TYPES = ("F32", "F16", "BF16", *BLOCKS)
NUMBERS = {KIND.F32: ("F32", 4), KIND.F16: ("F16", 2), KIND.BF16: ("BF16", 2)}
FORMATS = {KIND[name]: name.lower() for name in BLOCKS}
SEED = 22
PIECE = 1 << 21  # values that are made at once
# Of words that the tokenizer of the tests has and of others, so that it is a few hundred tokens.
PROMPT = ("hello you there, what does this image show? Name what is in it, line by line, from its upper left corner to its "
          "lower right one, and say of each thing which colour it has and where it begins.")


def kind_of(name, shape, kind):
    """The type in which a file of `kind` has a tensor: norms, biases and positions are numbers."""
    if len(shape) == 2 and "pos_embed" not in name:
        return kind
    return KIND.F16 if len(shape) == 5 and kind == KIND.F16 else KIND.F32


class TensorFile:
    """A safetensors file that is written piece by piece, by several processes."""

    def __init__(self, path, tensors, metadata):
        """`tensors`: {name: (type, shape, bytes)}."""
        header, end = {"__metadata__": metadata}, 0
        for name, (dtype, shape, size) in tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
            end += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 64 + 56)
        self.path = path
        self.places = {name: 8 + len(text) + header[name]["data_offsets"][0] for name in tensors}
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + end)

    def write(self, name, offset, values):
        data = memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        place = self.places[name] + offset
        descriptor = os.open(self.path, os.O_WRONLY)
        try:
            while data:
                written = os.pwrite(descriptor, data, place)
                data, place = data[written:], place + written
        finally:
            os.close(descriptor)


# A part of a tensor: rows `first` to `last`, in the type `kind`.
Piece = collections.namedtuple("Piece", "name shape kind first last")


def pieces_of(name, shape, kind):
    rows = max(1, PIECE // max(1, int(np.prod(shape[1:]))))
    return [Piece(name, shape, kind, first, min(first + rows, shape[0])) for first in range(0, shape[0], rows)]


def stored_piece(piece):
    """What a file has of a piece: the same in every run. Blocks, and BF16, are bytes."""
    generator = np.random.default_rng([SEED, zlib.crc32(piece.name.encode()), piece.first])
    shape = [piece.last - piece.first, *piece.shape[1:]]
    if piece.kind in models.SCALES:
        return models.random_blocks(generator, shape, piece.kind)
    values = generator.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
    if piece.name.endswith("weight") and "norm" in piece.name.split(".")[-2]:
        values += 1
    return gguf.quants.quantize(values, piece.kind)


def write_piece(piece):
    stored = stored_piece(piece)
    row_bytes = stored.nbytes // (piece.last - piece.first)
    write_piece.stored.write(piece.name, piece.first * row_bytes, stored)
    if write_piece.numbers:
        numbers = gguf.quants.dequantize(stored, piece.kind)
        write_piece.numbers.write(piece.name, piece.first * (numbers.nbytes // (piece.last - piece.first)), numbers)


def start_writing(stored, numbers):
    write_piece.stored, write_piece.numbers = stored, numbers


def as_stored(shape, kind):
    """Type, shape and bytes of a tensor of a safetensors file."""
    if kind in NUMBERS:
        dtype, size = NUMBERS[kind]
        return dtype, list(shape), int(np.prod(shape)) * size
    rows = list(gguf.quants.quant_shape_to_byte_shape(shape, kind))
    return "U8", rows, int(np.prod(rows))


def write_folders(stored, numbers, config, kinds, processes):
    """The model as it is stored in a file of those kinds, {name: (shape, kind)}, and if `numbers` is given also what its
    bytes stand for, in float32. Returns the file of what is stored."""
    notes = {f"pascaline.format.{name}": f"{FORMATS[kind]} {json.dumps(list(shape))}"
             for name, (shape, kind) in kinds.items() if kind in FORMATS}
    metadata = {"pascaline.version": "1", "pascaline.recipe": "gguf", **notes} if notes else {}
    stored.mkdir()
    models.write_texts(stored, config)
    file = TensorFile(stored / "model.safetensors", {n: as_stored(*of) for n, of in kinds.items()}, metadata)
    wide = None
    if numbers:
        numbers.mkdir()
        models.write_texts(numbers, config)
        wide = TensorFile(numbers / "model.safetensors", {n: as_stored(s, KIND.F32) for n, (s, _) in kinds.items()}, {})
    pieces = [piece for name, (shape, kind) in kinds.items() for piece in pieces_of(name, shape, kind)]
    with multiprocessing.Pool(processes, start_writing, (file, wide)) as pool:
        for _ in pool.imap_unordered(write_piece, pieces, 4):
            pass
    return file


def mapped(file, name, shape, kind):
    """A tensor of what is stored, as GGUFWriter takes it: nothing is copied."""
    dtype = {KIND.F32: np.float32, KIND.F16: np.float16}.get(kind, np.uint8)
    if dtype == np.uint8:
        shape = gguf.quants.quant_shape_to_byte_shape(shape, kind)
    return np.memmap(file.path, dtype, "r", file.places[name], tuple(shape))


def write_files(text, projector, config, kinds, file):
    """The text model and its projector as GGUF files, by the package."""
    tensors = {name: mapped(file, name, shape, kind) for name, (shape, kind) in kinds.items()}

    def type_of(name, values):
        del values
        return kinds[name.removesuffix(".1")][1]

    fixture.write_text(text, config, {n: v for n, v in tensors.items() if "visual" not in n}, type_of,
                       models.add_tokenizer)
    fixture.write_projector(projector, config, {n: v for n, v in tensors.items() if "visual" in n}, type_of)


def config_of(options):
    """Of Qwen3-VL-2B, with as many layers and tokens as asked for, and the ids of the tests' tokenizer."""
    config = json.loads((ROOT / "tests/model/checkpoint/data/qwen3_vl_2b.json").read_text())
    text, vision = config["text_config"], config["vision_config"]
    text |= {"num_hidden_layers": options.layers or text["num_hidden_layers"], "eos_token_id": models.END_TOKEN,
             "vocab_size": options.vocabulary or text["vocab_size"]}
    del text["bos_token_id"]
    vision["depth"] = options.vision_layers or vision["depth"]
    indexes = [i for i in vision["deepstack_visual_indexes"] if i < vision["depth"]] or [vision["depth"] - 1]
    vision["deepstack_visual_indexes"] = indexes[:text["num_hidden_layers"]]
    return config | models.TOKENS


# A comparison: how the weights are called, --weights of both, and whether the folder is that of numbers in float32.
Comparison = collections.namedtuple("Comparison", "name weights of_numbers")
IN_FLOAT32 = Comparison("in float32", "float32", True)


def comparisons_of(kind, which):
    if kind in FORMATS:
        kept = [Comparison("as stored", None, False)]
    else:
        kept = [Comparison("in float16", "float16", False)] if kind == KIND.F16 else []
    return [comparison for comparison in [*kept, IN_FLOAT32]
            if which == "both" or (comparison is IN_FLOAT32) == (which == "float32") or not kept]


def run(options, comparison, model, projector, reference, photo):
    words = [options.build / "compare_models", "--model", model, "--mmproj", projector, "--reference", reference, "--device",
             options.device, "--context", options.context, "--prompt", PROMPT, "--image", photo, "--tokens", options.tokens]
    words += ["--weights", comparison.weights] if comparison.weights else []
    words += ["--target", options.target] if options.target else []
    words += options.options
    environment = dict(os.environ)
    if options.device.startswith("cuda"):  # the program may have been built elsewhere
        environment.setdefault("PASCALINE_DATA_DIR", str(ROOT))
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, env=environment)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


Row = collections.namedtuple("Row", "kind comparison result gigabytes")


def line_of(row):
    result = row.result
    parts = "; ".join(f"{part['part']}: relative L2 {part['relative_l2']:.3g}, greatest difference {part['max_abs']:.3g}"
                      for part in result["parts"])
    own, other = result["models"]
    return (f"{row.kind:5} {row.comparison.name:10}  {parts}; {result['tokens_agreeing']} of {result['tokens_chosen']} tokens the "
            f"same; files {row.gigabytes:.2f} GB; loaded in {own['load_s']:.1f} s, folder {other['load_s']:.1f} s; run "
            f"{own['run_s']:.1f} and {other['run_s']:.1f} s")


def table_of(rows):
    lines = ["| type | weights | prompt: relative L2 | greatest difference | steps: relative L2 | greatest difference | "
             "greedy tokens the same |", "|---|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        parts = {part["part"]: f"{part['relative_l2']:.3g} | {part['max_abs']:.3g}" for part in row.result["parts"]}
        lines.append(f"| {row.kind} | {row.comparison.name} | {parts['prompt']} | {parts.get('steps', '— | —')} | "
                     f"{row.result['tokens_agreeing']} of {row.result['tokens_chosen']} |")
    return "\n".join(lines)


def is_within(row, limit):
    return (row.result["tokens_agreeing"] == row.result["tokens_chosen"]
            and all(part["relative_l2"] <= limit for part in row.result["parts"]))


def compare(options, type_name, photo, folder):
    """Yields the rows of a type."""
    config, kind = config_of(options), KIND[type_name]
    comparisons = comparisons_of(kind, options.weights)
    shapes = fixture.text_shapes(config) | fixture.vision_shapes(config)
    kinds = {name: (tuple(shape), kind_of(name, shape, kind)) for name, shape in shapes.items()}
    stored, numbers = folder / "stored", folder / "numbers"
    text, projector = folder / f"{type_name}.gguf", folder / f"mmproj-{type_name}.gguf"
    with_numbers = kind != KIND.F32 and any(comparison.of_numbers for comparison in comparisons)
    file = write_folders(stored, numbers if with_numbers else None, config, kinds, options.processes)
    write_files(text, projector, config, kinds, file)
    if kind == KIND.F32:
        numbers = stored
    elif all(comparison.of_numbers for comparison in comparisons):
        shutil.rmtree(stored)
    gigabytes = (text.stat().st_size + projector.stat().st_size) / 1e9
    for comparison in comparisons:
        reference = numbers if comparison.of_numbers else stored
        yield Row(type_name, comparison, run(options, comparison, text, projector, reference, photo), gigabytes)
        if not comparison.of_numbers:
            shutil.rmtree(stored)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES, metavar="TYPE", help="default: all")
    parser.add_argument("--weights", choices=("stored", "float32", "both"), default="both",
                        help="which of the two comparisons (default: %(default)s)")
    parser.add_argument("--layers", type=int, help="of the text model (default: 28)")
    parser.add_argument("--vision-layers", type=int, help="blocks of the vision tower (default: 24)")
    parser.add_argument("--vocabulary", type=int, help="at least 747 (default: 151936)")
    parser.add_argument("--image", default="384x256", help="width and height in pixels (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=16, help="steps after the prompt (default: %(default)s)")
    parser.add_argument("--context", type=int, default=1024, help="default: %(default)s")
    parser.add_argument("--device", default="cuda:0", help="cuda:N, cpu or emulator (default: %(default)s)")
    parser.add_argument("--target", help="architecture to compile for, e.g. sm_61")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="further options of compare_models, last")
    parser.add_argument("--limit", type=float, default=1e-6, help="of the relative L2 (default: %(default)s)")
    parser.add_argument("--folder", type=pathlib.Path, help="where files are made, for a type at a time (default: TMPDIR)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that make numbers (default: %(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release/bin",
                        help="folder of compare_models (default: %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="write all results there")
    return parser.parse_args()


def main():
    options = parsed()
    rows, failed = [], 0
    with tempfile.TemporaryDirectory(prefix="compare_gguf_", dir=options.folder) as name:
        photo = pathlib.Path(name) / "photo.png"
        models.write_photo(photo, *map(int, options.image.split("x")))
        for type_name in options.types:
            begin, folder = time.time(), pathlib.Path(name) / type_name
            folder.mkdir()
            try:
                for row in compare(options, type_name, photo, folder):
                    rows.append(row)
                    print(line_of(row) + f"; {time.time() - begin:.0f} s", flush=True)
            except Exception:  # the other types are still compared
                failed += 1
                print(f"{type_name} failed:\n{traceback.format_exc()}", flush=True)
            shutil.rmtree(folder)
    if rows:
        first = rows[0].result
        print(f"\n{first['models'][0]['device']}; prompt of {first['prompt_tokens']} tokens, its image {first['patches']} "
              f"patches; NumPy {np.__version__}\n\n{table_of(rows)}")
    if options.json:
        entries = [row._asdict() | {"comparison": row.comparison.name} for row in rows]
        options.json.write_text(json.dumps(entries, indent=1))
    beyond = [row for row in rows if not is_within(row, options.limit)]
    for row in beyond:
        print(f"beyond the limit of {options.limit:g}, or other tokens: {row.kind} {row.comparison.name}", file=sys.stderr)
    return 1 if failed or beyond else 0


if __name__ == "__main__":
    sys.exit(main())
