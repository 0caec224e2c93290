#!/usr/bin/env python3
"""Writes a small Qwen3-VL as GGUF files, text model and projector, by the package `gguf`.

The numbers are hashes of the tensors' names and places, as `hash_weights` of the runtime draws them; all of the types
F32, F16 and BF16 hold them exactly.

  tests/model/make_projector_fixture.py tests/model/checkpoint/data/tiny_a.json \\
      tests/model/checkpoint/data/tiny_a.gguf tests/model/checkpoint/data/mmproj-tiny_a.gguf
"""

import json
import pathlib
import sys

import gguf
import numpy as np

NUMBERS = [gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16]
TENSOR = gguf.MODEL_TENSOR
IMAGE_TOKENS = {"image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>",
                "vision_start_token_id": "<|vision_start|>", "vision_end_token_id": "<|vision_end|>"}


def hashed(name, shape):
    """Values of that tensor: 8 bits of SplitMix64 over FNV-1a."""
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = ((start ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        state = np.uint64(start) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        drawn = ((state ^ (state >> np.uint64(31))) >> np.uint64(56)).astype(np.float32)
    is_norm = "norm" in name.split(".")[-2] and name.endswith(".weight")
    if is_norm:
        return (1 + (np.floor(drawn / 8) - 16) / 64).reshape(shape).astype(np.float32)
    return ((drawn - 128) / 128 / (16 if name.endswith(".bias") else 8)).reshape(shape).astype(np.float32)


def text_shapes(config):
    """Shapes of the decoder's tensors by their official names."""
    text = config["text_config"]
    hidden, inner = text["hidden_size"], text["intermediate_size"]
    q = text["num_attention_heads"] * text["head_dim"]
    kv = text["num_key_value_heads"] * text["head_dim"]
    base = "model.language_model."
    shapes = {base + "embed_tokens.weight": [text["vocab_size"], hidden], base + "norm.weight": [hidden]}
    for i in range(text["num_hidden_layers"]):
        layer = f"{base}layers.{i}."
        shapes |= {layer + "input_layernorm.weight": [hidden], layer + "post_attention_layernorm.weight": [hidden],
                   layer + "self_attn.q_proj.weight": [q, hidden], layer + "self_attn.k_proj.weight": [kv, hidden],
                   layer + "self_attn.v_proj.weight": [kv, hidden], layer + "self_attn.o_proj.weight": [hidden, q],
                   layer + "self_attn.q_norm.weight": [text["head_dim"]],
                   layer + "self_attn.k_norm.weight": [text["head_dim"]],
                   layer + "mlp.gate_proj.weight": [inner, hidden], layer + "mlp.up_proj.weight": [inner, hidden],
                   layer + "mlp.down_proj.weight": [hidden, inner]}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = [text["vocab_size"], hidden]
    return shapes


def vision_shapes(config):
    """Likewise of the vision tower's."""
    vision = config["vision_config"]
    hidden, inner, patch = vision["hidden_size"], vision["intermediate_size"], vision["patch_size"]
    merged = hidden * vision["spatial_merge_size"] ** 2
    base = "model.visual."
    shapes = {base + "patch_embed.proj.weight": [hidden, 3, vision["temporal_patch_size"], patch, patch],
              base + "patch_embed.proj.bias": [hidden],
              base + "pos_embed.weight": [vision["num_position_embeddings"], hidden]}

    def linear(name, outputs, inputs):
        shapes[name + ".weight"] = [outputs, inputs]
        shapes[name + ".bias"] = [outputs]

    def norm(name, size):
        shapes[name + ".weight"] = shapes[name + ".bias"] = [size]

    for i in range(vision["depth"]):
        block = f"{base}blocks.{i}."
        norm(block + "norm1", hidden)
        linear(block + "attn.qkv", 3 * hidden, hidden)
        linear(block + "attn.proj", hidden, hidden)
        norm(block + "norm2", hidden)
        linear(block + "mlp.linear_fc1", inner, hidden)
        linear(block + "mlp.linear_fc2", hidden, inner)
    mergers = {base + "merger.": hidden}
    mergers |= {f"{base}deepstack_merger_list.{i}.": merged for i in range(len(vision["deepstack_visual_indexes"]))}
    for merger, size in mergers.items():
        norm(merger + "norm", size)
        linear(merger + "linear_fc1", merged, merged)
        linear(merger + "linear_fc2", vision["out_hidden_size"], merged)
    return shapes


def finish(writer, tensors, name_of, type_of):
    """Adds tensors (official name: values, or bytes of blocks) in the types that `type_of` gives them, and writes the
    file."""
    for name, values in tensors.items():
        kind = type_of(name, values)
        values = np.ascontiguousarray(values)
        blocks = values if values.dtype == np.uint8 else gguf.quants.quantize(values, kind)
        writer.add_tensor(name_of(name), blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_names(writer, config):
    """A name for each token, so that those of images have one."""
    tokens = [f"<{i}>" for i in range(config["text_config"]["vocab_size"])]
    for key, token in IMAGE_TOKENS.items():
        tokens[config[key]] = token
    writer.add_token_list(tokens)


def write_text(file, config, tensors, type_of, add_tokens=add_names):
    text = config["text_config"]
    writer = gguf.GGUFWriter(file, "qwen3vl")
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name("Qwen3-VL of the tests")
    writer.add_block_count(text["num_hidden_layers"])
    writer.add_context_length(text["max_position_embeddings"])
    writer.add_embedding_length(text["hidden_size"])
    writer.add_feed_forward_length(text["intermediate_size"])
    writer.add_head_count(text["num_attention_heads"])
    writer.add_head_count_kv(text["num_key_value_heads"])
    writer.add_key_length(text["head_dim"])
    writer.add_value_length(text["head_dim"])
    writer.add_rope_freq_base(text["rope_theta"])
    writer.add_rope_dimension_sections([*text["rope_scaling"]["mrope_section"], 0])
    writer.add_layer_norm_rms_eps(text["rms_norm_eps"])
    writer.add_num_deepstack_layers(len(config["vision_config"]["deepstack_visual_indexes"]))
    add_tokens(writer, config)
    writer.add_eos_token_id(text["eos_token_id"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3VL, text["num_hidden_layers"])
    finish(writer, tensors,
           lambda name: names.get_name(name.replace("language_model.", ""), (".weight",)), type_of)


def write_projector(file, config, tensors, type_of):
    vision = config["vision_config"]
    writer = gguf.GGUFWriter(file, "clip")
    writer.add_type(gguf.GGUFType.MMPROJ)
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(gguf.VisionProjectorType.QWEN3VL)
    writer.add_vision_projection_dim(config["text_config"]["hidden_size"])
    writer.add_vision_image_size(round(vision["num_position_embeddings"] ** 0.5) * vision["patch_size"])
    writer.add_vision_patch_size(vision["patch_size"])
    writer.add_vision_embedding_length(vision["hidden_size"])
    writer.add_vision_feed_forward_length(vision["intermediate_size"])
    writer.add_vision_block_count(vision["depth"])
    writer.add_vision_head_count(vision["num_heads"])
    writer.add_vision_image_mean([0.5, 0.5, 0.5])
    writer.add_vision_image_std([0.5, 0.5, 0.5])
    writer.add_vision_use_gelu(True)
    writer.add_vision_spatial_merge_size(vision["spatial_merge_size"])
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_is_deepstack_layers([i in vision["deepstack_visual_indexes"] for i in range(vision["depth"])])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, vision["depth"])

    def name_of(name):
        stem, end = name.removeprefix("model.").rsplit(".", 1)
        parts = stem.split(".")
        if parts[1] == "merger":
            kind = {"norm": gguf.TENSOR_NAMES[TENSOR.V_POST_NORM],
                    "linear_fc1": gguf.TENSOR_NAMES[TENSOR.V_MMPROJ].format(bid=0),
                    "linear_fc2": gguf.TENSOR_NAMES[TENSOR.V_MMPROJ].format(bid=2)}[parts[2]]
            return f"{kind}.{end}"
        if parts[1] == "deepstack_merger_list":
            kind = {"norm": TENSOR.V_DS_NORM, "linear_fc1": TENSOR.V_DS_FC1, "linear_fc2": TENSOR.V_DS_FC2}[parts[3]]
            block = vision["deepstack_visual_indexes"][int(parts[2])]
            return f"{gguf.TENSOR_NAMES[kind].format(bid=block)}.{end}"
        if end == "1":  # a frame of the patches' embedding
            return gguf.TENSOR_NAMES[TENSOR.V_ENC_EMBD_PATCH] + ".weight.1"
        return names.get_name(f"{stem}.{end}", (".weight", ".bias"))

    by_frame = {}
    for name, values in tensors.items():
        if values.ndim == 5:
            by_frame[name] = values[:, :, 0]
            by_frame[name + ".1"] = values[:, :, 1]
        else:
            by_frame[name] = values
    finish(writer, by_frame, name_of, type_of)


def main():
    config = json.loads(pathlib.Path(sys.argv[1]).read_text())
    count = 0

    def type_of(name, values):
        nonlocal count
        count += 1
        if "patch_embed" in name:
            return gguf.GGMLQuantizationType.F16 if values.ndim > 1 else gguf.GGMLQuantizationType.F32
        return NUMBERS[1 + count % 2 if count % 7 else 0] if values.ndim > 1 else NUMBERS[0]

    write_text(sys.argv[2], config, {n: hashed(n, s) for n, s in text_shapes(config).items()}, type_of)
    write_projector(sys.argv[3], config, {n: hashed(n, s) for n, s in vision_shapes(config).items()}, type_of)


if __name__ == "__main__":
    main()
