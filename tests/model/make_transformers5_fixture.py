#!/usr/bin/env python3
"""Writes a tiny Qwen3-VL with its processor as Transformers 5 saves them, and the logits that it computes.

The tower turns by another base than the released ones, and the head was untied, which Transformers leaves in text_config
as it was. Weights are hashes of their names and places, the tokenizer and the chat template those of
examples/tiny_qwen3_vl. reference.safetensors has the format of `pascaline validate`: the model in bfloat16, which holds
these weights exactly, computed in float64.

  tests/model/make_transformers5_fixture.py tests/model/checkpoint/data/qwen3_vl_saved
"""

import os
import pathlib
import sys

import safetensors.torch
import torch
import transformers
from make_qwen3_fixture import hashed

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples/tiny_qwen3_vl"
GRID = [1, 4, 6]
PROMPT = [1, 2, 739] + [741] * 6 + [740, 3, 5]


def make_model():
    config = transformers.Qwen3VLConfig(
        text_config=dict(vocab_size=752, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=16, max_position_embeddings=4096, tie_word_embeddings=True,
                         rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 2, 2],
                                          "mrope_interleaved": True}, eos_token_id=738),
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=64, num_heads=2, patch_size=4, out_hidden_size=32,
                           num_position_embeddings=36, deepstack_visual_indexes=[0],
                           rope_parameters={"rope_type": "axial", "rope_theta": 100.0}),
        image_token_id=741, video_token_id=743, vision_start_token_id=739, vision_end_token_id=740,
        tie_word_embeddings=False)
    model = transformers.Qwen3VLForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(hashed(name, parameter.numel()).reshape(parameter.shape))
    return model


def main():
    folder = pathlib.Path(sys.argv[1])
    model = make_model().to(torch.bfloat16)
    model.save_pretrained(folder)
    os.chmod(folder / "model.safetensors", 0o644)
    processor = transformers.Qwen3VLProcessor.from_pretrained(EXAMPLE)
    for part in (processor.image_processor, processor.video_processor):
        part.patch_size = 4
        part.size = {"shortest_edge": 256, "longest_edge": 4096}
    processor.save_pretrained(folder)
    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(folder).double()
    pixels = hashed("image.pixels", GRID[1] * GRID[2] * 3 * 2 * 4 * 4).reshape(GRID[1] * GRID[2], -1)
    ids = torch.tensor([PROMPT])
    with torch.no_grad():
        logits = model(input_ids=ids, pixel_values=pixels, image_grid_thw=torch.tensor([GRID]),
                       mm_token_type_ids=(ids == 741).int()).logits[0]
    safetensors.torch.save_file({
        "input_ids": torch.tensor(PROMPT, dtype=torch.int32), "logits": logits.float().contiguous(),
        "pixel_values": pixels.float(), "image_grid_thw": torch.tensor([GRID], dtype=torch.int32)},
        folder / "reference.safetensors")
    print(f"{folder}: PyTorch {torch.__version__}, Transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
