#!/usr/bin/env python3
"""Writes the Qwen3 models of the tests, and what Hugging Face Transformers computes with them.

Two tiny models, one with its head tied to the embedding and one with its own, as `save_pretrained` writes them, whose
weights are hashes of their names and places (as `hash_weights` of the runtime draws them: no seed, the same with every
version). Beside each model stands reference.safetensors with the logits of a prompt and of tokens given one by one after
it, in the format of `pascaline validate`: the model in bfloat16, which holds these weights exactly, computed in float64.

  tests/model/make_qwen3_fixture.py tests/model/checkpoint/data
"""

import pathlib
import sys

import safetensors.torch
import torch
import transformers

PROMPT = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233]
DECODED = [100, 200, 44]
MASK = (1 << 64) - 1


def name_hash(name):
    value = 0xCBF29CE484222325  # FNV-1a
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def drawn_byte(start, index):
    state = (start + (index + 1) * 0x9E3779B97F4A7C15) & MASK  # SplitMix64
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return (state ^ (state >> 31)) >> 56


def hashed(name, count):
    start = name_hash(name)
    drawn = torch.tensor([drawn_byte(start, i) for i in range(count)], dtype=torch.float64)
    if "norm" in name.split(".")[-2]:
        return 1 + (torch.floor(drawn / 8) - 16) / 64
    return (drawn - 128) / 128 / 8


def make_model(tied):
    config = transformers.Qwen3Config(
        vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=4096, rms_norm_eps=1e-6, tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}, bos_token_id=253, eos_token_id=254)
    model = transformers.Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(hashed(name, parameter.numel()).reshape(parameter.shape))
    return model


def record(model, file, prompt=PROMPT, decoded=DECODED):
    model = model.double()
    with torch.no_grad():
        cache = transformers.DynamicCache()
        logits = model(input_ids=torch.tensor([prompt]), past_key_values=cache, use_cache=True).logits[0]
        steps = []
        for token in decoded:
            steps.append(model(input_ids=torch.tensor([[token]]), past_key_values=cache, use_cache=True).logits[0, -1])
    safetensors.torch.save_file({
        "input_ids": torch.tensor(prompt, dtype=torch.int32), "logits": logits.float().contiguous(),
        "decode_ids": torch.tensor(decoded, dtype=torch.int32), "decode_logits": torch.stack(steps).float()}, file)


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, tied in (("qwen3_tied", True), ("qwen3_untied", False)):
        model = make_model(tied)
        model.to(torch.bfloat16).save_pretrained(folder / name)
        record(transformers.Qwen3ForCausalLM.from_pretrained(folder / name), folder / name / "reference.safetensors")
        print(f"{folder / name}: PyTorch {torch.__version__}, Transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
