#!/usr/bin/env python3
"""Writes small Qwen3 models as other programs' quantizers store them, and what Transformers computes with their numbers.

qwen3_fp8: E4M3 with a scale for each block of 128 x 128, as the official FP8 repositories have it; the last blocks of
both sides are smaller. qwen3_awq: integers of 4 bits in groups of 128 with zero points, in the order of AWQ's GEMM
kernel. Beside each stands reference.safetensors with the logits of a prompt and of tokens given one by one after it, in
the format of `pascaline validate`: computed in float64 from the numbers that were quantized and multiplied out here.

  tests/model/make_quantized_fixture.py tests/model/checkpoint/data
"""

import json
import pathlib
import sys

import numpy as np
import safetensors.torch
import torch
import transformers

PROMPT = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
DECODED = [100, 44]
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the outputs in an int32, from its lowest bits up


def make_model(intermediate):
    torch.manual_seed(22)
    config = transformers.Qwen3Config(
        vocab_size=128, hidden_size=128, intermediate_size=intermediate, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=4096, rms_norm_eps=1e-6, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}, bos_token_id=125, eos_token_id=126)
    model = transformers.Qwen3ForCausalLM(config).eval().double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.1 + (1 if "norm" in name else 0))
            parameter.copy_(parameter.to(torch.bfloat16).double())
    return model


def fp8(weight):
    """Codes, scales of bfloat16, and the numbers that they stand for."""
    rows, columns = weight.shape
    scales = torch.zeros(-(-rows // 128), -(-columns // 128), dtype=torch.bfloat16)
    codes = torch.zeros_like(weight, dtype=torch.float8_e4m3fn)
    numbers = torch.zeros_like(weight)
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            block = np.s_[128 * i:128 * (i + 1), 128 * j:128 * (j + 1)]
            scales[i, j] = weight[block].abs().max() / 448
            codes[block] = (weight[block] / scales[i, j].double()).clamp(-448, 448).to(torch.float8_e4m3fn)
            numbers[block] = codes[block].double() * scales[i, j].double()
    return {"weight": codes, "weight_scale_inv": scales}, numbers


def packed(codes):
    """Codes [lines, outputs] as int32 [lines, outputs / 8]."""
    words = np.zeros((codes.shape[0], codes.shape[1] // 8), dtype=np.uint32)
    for place, output in enumerate(AWQ_ORDER):
        words |= codes[:, output::8].astype(np.uint32) << np.uint32(4 * place)
    return torch.from_numpy(words.view(np.int32).copy())


def awq(weight):
    """Packed codes and zero points, scales of float16, and the numbers that they stand for."""
    rows, columns = weight.shape
    groups = weight.numpy().T.reshape(columns // 128, 128, rows)
    low, high = np.minimum(groups.min(axis=1), 0), np.maximum(groups.max(axis=1), 0)
    scales = ((high - low) / 15).astype(np.float16)
    zeros = np.clip(np.round(-low / scales.astype(np.float64)), 0, 15)
    codes = np.clip(np.round(groups / scales[:, None].astype(np.float64)) + zeros[:, None], 0, 15)
    numbers = (codes - zeros[:, None]) * scales[:, None].astype(np.float64)
    parts = {"qweight": packed(codes.reshape(columns, rows)), "qzeros": packed(zeros), "scales": torch.from_numpy(scales)}
    return parts, torch.from_numpy(numbers.reshape(columns, rows).T.copy())


def record(model, file):
    with torch.no_grad():
        cache = transformers.DynamicCache()
        logits = model(input_ids=torch.tensor([PROMPT]), past_key_values=cache, use_cache=True).logits[0]
        steps = []
        for token in DECODED:
            steps.append(model(input_ids=torch.tensor([[token]]), past_key_values=cache, use_cache=True).logits[0, -1])
    safetensors.torch.save_file({
        "input_ids": torch.tensor(PROMPT, dtype=torch.int32), "logits": logits.float().contiguous(),
        "decode_ids": torch.tensor(DECODED, dtype=torch.int32), "decode_logits": torch.stack(steps).float()}, file)


def write(folder, intermediate, quantize, quantization):
    model = make_model(intermediate)
    tensors = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "_proj." in name:
                parts, numbers = quantize(parameter.data)
                parameter.copy_(numbers)
                tensors |= {name.removesuffix("weight") + part: value.contiguous() for part, value in parts.items()}
            else:
                tensors[name] = parameter.to(torch.bfloat16)
    folder.mkdir(exist_ok=True)
    config = model.config.to_dict() | {"architectures": ["Qwen3ForCausalLM"], "quantization_config": quantization}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    record(model, folder / "reference.safetensors")
    print(f"{folder}: PyTorch {torch.__version__}, Transformers {transformers.__version__}")


def main():
    folder = pathlib.Path(sys.argv[1])
    write(folder / "qwen3_fp8", 192, fp8, {
        "activation_scheme": "dynamic", "fmt": "e4m3", "modules_to_not_convert": ["lm_head"], "quant_method": "fp8",
        "weight_block_size": [128, 128]})
    write(folder / "qwen3_awq", 256, awq, {
        "backend": "autoawq", "bits": 4, "do_fuse": False, "exllama_config": None, "fuse_max_seq_len": None,
        "group_size": 128, "modules_to_fuse": None, "modules_to_not_convert": None, "quant_method": "awq",
        "version": "gemm", "zero_point": True})


main()
