#!/usr/bin/env python3
"""What rounding weights, and weights and activations, costs a model of bench/train_sample_model.py, in PyTorch.

Nothing of it is Pascaline's code: weights are quantized by the package gguf (int8: to rows with a scale each),
activations rounded to int8 as docs/formats.md says, products computed in float32. What bench/compare_gguf_accuracy.py
prints for gguf's blocks on the same tokens should be the same but for rounding.

  bench/rounded_in_torch.py sample --tokens 10000 --window 256

Perplexity as a multiple of that in float32, and mean KL in nats per token. Needs torch, tokenizers, safetensors and
gguf 0.19.
"""
import argparse
import json
import pathlib
import types

import torch
from gguf import GGMLQuantizationType, quants
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn import functional

from train_sample_model import Qwen3, linear

BLOCK = 32  # activations that share a scale


def by_gguf(kind):
    return lambda weight: torch.from_numpy(quants.dequantize(quants.quantize(weight.numpy(), kind), kind).copy())


def to_int8(values, block):
    """Values as int8 with a scale for each block along the last axis, and back."""
    parts = values.reshape(-1, block)
    scales = parts.abs().amax(-1, keepdim=True) / 127
    inverse = torch.where(scales > 0, 1 / scales, 0)
    return (torch.round(parts * inverse) * scales).reshape(values.shape)


def rows_to_int8(values):
    return to_int8(values, values.shape[-1])


def blocks_to_int8(values):
    return to_int8(values, BLOCK)


Q8_0 = by_gguf(GGMLQuantizationType.Q8_0)
# Of each format how weights and activations of the layers are rounded; embedding and head are q8_0 with all of these.
FORMATS = {"int8": (rows_to_int8, rows_to_int8), "q8_0": (Q8_0, blocks_to_int8),
           "q4_1": (by_gguf(GGMLQuantizationType.Q4_1), blocks_to_int8),
           "q4_0": (by_gguf(GGMLQuantizationType.Q4_0), blocks_to_int8)}


def load(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = Qwen3(types.SimpleNamespace(
        hidden=config["hidden_size"], layers=config["num_hidden_layers"], heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"], head_dim=config["head_dim"], intermediate=config["intermediate_size"],
        vocabulary=config["vocab_size"], context=config["max_position_embeddings"]))
    stored = load_file(str(folder / "model.safetensors"))
    model.load_state_dict({name.removeprefix("model."): value.float() for name, value in stored.items()})
    return model.eval()


def round_weights(model, of_layers):
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.copy_((Q8_0 if name.startswith("embed_tokens") else of_layers)(parameter))


def round_activations(model, of_layers):
    """Rounds what goes into each product; the head's input is what the last norm gives."""
    for module in model.modules():
        if isinstance(module, type(linear(1, 1))):
            module.register_forward_pre_hook(lambda _, inputs: (of_layers(inputs[0]),))
    model.norm.register_forward_hook(lambda _, inputs, output: blocks_to_int8(output))


@torch.no_grad()
def compare(reference, model, tokens, window):
    """Mean KL(reference || model), and the perplexity as a multiple of the reference's."""
    divergence = worse = 0.0
    for first in range(0, len(tokens), window):
        part = tokens[first:first + window][None]
        expected, given = (functional.log_softmax(each(part)[0].double(), -1) for each in (reference, model))
        divergence += (expected.exp() * (expected - given)).sum().item()
        following = tokens[first + 1:first + window + 1]
        rows = torch.arange(len(following))
        worse += (expected[rows, following] - given[rows, following]).sum().item()
    return divergence / len(tokens), torch.tensor(worse / (len(tokens) - 1)).exp().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="of bench/train_sample_model.py")
    parser.add_argument("--tokens", type=int, default=10000, help="of held_out.txt (default: %(default)s)")
    parser.add_argument("--window", type=int, default=256, help="from an empty context each (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = (options.folder / "held_out.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    tokens = torch.tensor(tokenizer.encode(text, add_special_tokens=False).ids[:options.tokens])
    reference = load(options.folder)
    print("| format | weights: perplexity | KL | weights and activations: perplexity | KL |\n|---|---:|---:|---:|---:|")
    for name, (weights, activations) in FORMATS.items():
        model = load(options.folder)
        with torch.no_grad():
            round_weights(model, weights)
        alone = compare(reference, model, tokens, options.window)
        round_activations(model, activations)
        both = compare(reference, model, tokens, options.window)
        print(f"| {name} | {alone[1]:.5f} | {alone[0]:.3e} | {both[1]:.5f} | {both[0]:.3e} |", flush=True)


if __name__ == "__main__":
    main()
