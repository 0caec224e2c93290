#!/usr/bin/env python3
"""Writes a Qwen3 model's folder with the same function and matrices that need all of float32.

Checkpoints are in bfloat16, which formats of 16 bits hold almost exactly: they do not tell these formats apart. Here the
factors of the normalisations are multiplied into the matrices after them, and values and activations between two
matrices are scaled by factors from 1 to 2 that cancel. The embedding, which the head may share, stays as it is.

  bench/fold_norms.py sample sample_f32              # matrices in float32
  bench/fold_norms.py sample sample_bf16 --type BF16 # the same, rounded to bfloat16

Needs Python 3 only; takes a few seconds per million parameters.
"""
import argparse
import array
import json
import pathlib
import shutil
import struct


def read_tensors(path):
    """Names, shapes and values (float64) of a file of BF16 tensors."""
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "BF16":
            raise SystemExit(f"{path}: {name} is {entry['dtype']}; BF16 is needed")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        codes = array.array("H", data[begin:end])
        words = array.array("I", (code << 16 for code in codes))
        tensors[name] = (entry["shape"], array.array("d", array.array("f", words.tobytes())))
    return tensors


def coded(values, dtype):
    """As float32, or rounded to bfloat16, to nearest and ties to even."""
    singles = array.array("f", values)
    if dtype == "F32":
        return singles.tobytes()
    words = array.array("I", singles.tobytes())
    return array.array("H", ((word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in words)).tobytes()


def write_tensors(path, tensors, dtype):
    """All of them in that type."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        content = coded(values, dtype)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def scale(tensor, row_factor, column_factor):
    """Multiplies element [i, j] by row_factor(i) * column_factor(j)."""
    (rows, columns), values = tensor
    columns_by = [column_factor(j) for j in range(columns)]
    for i in range(rows):
        by = row_factor(i)
        for j in range(columns):
            values[i * columns + j] *= by * columns_by[j]


def fold_layer(tensors, prefix, config):
    """The norms of a layer into its matrices, and factors that cancel between pairs of matrices."""
    one = lambda _: 1.0
    spread = lambda i: 2.0 ** (i * 0.6180339887498949 % 1.0)
    size = config["head_dim"]
    shared = config["num_attention_heads"] // config["num_key_value_heads"]
    before = tensors[prefix + "input_layernorm.weight"][1]
    after = tensors[prefix + "post_attention_layernorm.weight"][1]
    for name, rows in (("q_proj", one), ("k_proj", one), ("v_proj", spread)):
        scale(tensors[f"{prefix}self_attn.{name}.weight"], rows, lambda j: before[j])
    scale(tensors[prefix + "self_attn.o_proj.weight"], one,
          lambda j: 1 / spread(j // size // shared * size + j % size))
    scale(tensors[prefix + "mlp.gate_proj.weight"], one, lambda j: after[j])
    scale(tensors[prefix + "mlp.up_proj.weight"], spread, lambda j: after[j])
    scale(tensors[prefix + "mlp.down_proj.weight"], one, lambda j: 1 / spread(j))
    for norm in (before, after):
        norm[:] = array.array("d", [1.0] * len(norm))


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="folder of a Qwen3 text model in bfloat16, of one file")
    parser.add_argument("out", type=pathlib.Path, help="folder to write")
    parser.add_argument("--type", choices=("F32", "BF16"), default="F32", help="type that the values are written in")
    options = parser.parse_args()
    config = json.loads((options.model / "config.json").read_text())
    if config.get("model_type") != "qwen3":
        raise SystemExit("the model is not of the family qwen3")
    tensors = read_tensors(options.model / "model.safetensors")
    for layer in range(config["num_hidden_layers"]):
        fold_layer(tensors, f"model.layers.{layer}.", config)
    options.out.mkdir(exist_ok=True)
    for file in options.model.iterdir():
        if file.suffix in (".json", ".txt"):
            shutil.copy(file, options.out / file.name)
    write_tensors(options.out / "model.safetensors", tensors, options.type)


if __name__ == "__main__":
    main()
