#!/usr/bin/env python3
"""Writes a Qwen3 model of the tests as a GGUF file, by the package `gguf`.

The numbers are those of the model's folder, which all of the file's types hold exactly.

  tests/model/make_gguf_fixture.py tests/model/checkpoint/data/qwen3_untied tests/model/checkpoint/data/qwen3_untied.gguf
"""

import json
import pathlib
import sys

import gguf
import safetensors.torch

TYPES = [gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16]


def main():
    folder, file = pathlib.Path(sys.argv[1]), sys.argv[2]
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(file, "qwen3")
    writer.add_name("Qwen3 of the tests")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_eos_token_id(config["eos_token_id"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config["num_hidden_layers"])
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    for number, (name, tensor) in enumerate(sorted(tensors.items())):
        kind = TYPES[number % len(TYPES)] if tensor.dim() > 1 else TYPES[0]
        values = gguf.quants.quantize(tensor.float().numpy(), kind)
        writer.add_tensor(names.get_name(name, (".weight",)), values, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
