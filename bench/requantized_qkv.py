#!/usr/bin/env python3
"""What it costs that query, key and value of a GGUF file are kept as q8_0 where they have several types of blocks.

  bench/requantized_qkv.py MODEL.gguf TEXT [--tokens N] [--window N]

Needs torch, transformers and gguf. The model is run in float32 as Transformers dequantises the file, and again with these
three matrices rounded to Q8_0: in every second layer, which is where llama-quantize's Q4_K_M mixes Q4_K and Q6_K in a
model of many layers, and in all. Printed are the relative L2 distance of all logits, the Kullback-Leibler divergence in
nats, how often the likeliest token is the same, and the perplexities.
"""

import argparse
import pathlib

import gguf
import numpy as np
import torch
import transformers


def rounded(weight):
    blocks = gguf.quants.quantize(weight.numpy(), gguf.GGMLQuantizationType.Q8_0)
    return torch.from_numpy(gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0).astype(np.float32))


def logits_of(model, windows):
    with torch.no_grad():
        return torch.cat([model(input_ids=window[None]).logits[0].double() for window in windows])


def perplexity(logits, windows):
    size = windows[0].numel()
    losses = [torch.nn.functional.cross_entropy(logits[i * size:(i + 1) * size - 1], window[1:])
              for i, window in enumerate(windows)]
    return torch.stack(losses).mean().exp().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--window", type=int, default=256)
    options = parser.parse_args()
    where = {"pretrained_model_name_or_path": options.model.parent, "gguf_file": options.model.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
    ids = torch.tensor(tokenizer(options.text.read_text(errors="replace")[:8 * options.tokens])["input_ids"])
    ids = ids[:options.tokens // options.window * options.window]
    windows = list(ids.split(options.window))
    exact = logits_of(model, windows)
    likely = exact.log_softmax(-1)
    print(f"{ids.numel()} tokens, perplexity {perplexity(exact, windows):.4f}")
    layers = model.model.layers
    for what, chosen in (("every second layer", range(0, len(layers), 2)), ("all layers", range(1, len(layers), 2))):
        for i in chosen:  # of the second case, those that are left
            for part in ("q_proj", "k_proj", "v_proj"):
                weight = getattr(layers[i].self_attn, part).weight
                weight.data = rounded(weight.data)
        logits = logits_of(model, windows)
        distance = ((logits - exact).norm() / exact.norm()).item()
        divergence = (likely.exp() * (likely - logits.log_softmax(-1))).sum(-1).mean().item()
        same = (logits.argmax(-1) == exact.argmax(-1)).double().mean().item()
        print(f"{what}: relative L2 {distance:.2e}, divergence {divergence:.2e}, same token {100 * same:.2f} %, "
              f"perplexity {perplexity(logits, windows):.4f}")


main()
