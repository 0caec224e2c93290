#!/usr/bin/env python3
"""Writes a GGUF file of Qwen3-VL-2B's sizes with random numbers in F16, and with --mmproj its projector.

  bench/compare_llama/make_models.py FOLDER [--mmproj] [--layers N] [--vocabulary N]

Needs NumPy and the package gguf (llama.cpp's source has it in gguf-py). text.gguf has the architecture qwen3vl, mmproj.gguf
the projector qwen3vl_merger. The vocabulary is made up: ids matter, texts do not. llama-quantize makes the other types.
"""

import argparse
import pathlib

import gguf
import numpy as np

HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD = 2048, 6144, 16, 8, 128
VISION = {"hidden": 1024, "intermediate": 4096, "heads": 16, "depth": 24, "patch": 16, "merge": 2, "positions": 2304,
          "deepstack": (5, 11, 17)}


class Numbers:
    """Numbers with the deviation 0.02, cut out of one pool at places that differ."""

    def __init__(self):
        self.pool = (np.random.default_rng(22).standard_normal(1 << 24, dtype=np.float32) * 0.02).astype(np.float16)
        self.place = 0

    def matrix(self, *shape):
        self.place = (self.place + 7919) % (self.pool.size // 2)
        count = int(np.prod(shape))
        numbers = self.pool[self.place:self.place + count]
        return np.resize(numbers, count).reshape(shape) if numbers.size < count else numbers.reshape(shape)

    def vector(self, size, middle=0.0):
        return (self.matrix(size).astype(np.float32) + middle).astype(np.float32)


def add_vocabulary(writer, size):
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
                "<|video_pad|>"]
    letters = [chr(code) for code in list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))]
    letters += [chr(256 + i) for i in range(256 - len(letters))]
    tokens = letters + [f"t{i}" for i in range(size - len(letters) - len(specials))] + specials
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * (size - len(specials)) + [gguf.TokenType.CONTROL] * len(specials))
    writer.add_token_merges(["t 0"])
    writer.add_eos_token_id(size - len(specials) + specials.index("<|im_end|>"))
    writer.add_bos_token_id(size - len(specials))
    writer.add_add_bos_token(False)


def write_text(file, layers, vocabulary):
    numbers = Numbers()
    writer = gguf.GGUFWriter(file, "qwen3vl")
    writer.add_name("random")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_block_count(layers)
    writer.add_context_length(262144)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(5e6)
    writer.add_rope_dimension_sections([24, 20, 20, 0])
    writer.add_uint32("qwen3vl.n_deepstack_layers", len(VISION["deepstack"]))
    add_vocabulary(writer, vocabulary)
    writer.add_tensor("token_embd.weight", numbers.matrix(vocabulary, HIDDEN))
    writer.add_tensor("output_norm.weight", numbers.vector(HIDDEN, 1))
    for layer in range(layers):
        name = f"blk.{layer}."
        writer.add_tensor(name + "attn_norm.weight", numbers.vector(HIDDEN, 1))
        writer.add_tensor(name + "attn_q.weight", numbers.matrix(HEADS * HEAD, HIDDEN))
        writer.add_tensor(name + "attn_k.weight", numbers.matrix(KV_HEADS * HEAD, HIDDEN))
        writer.add_tensor(name + "attn_v.weight", numbers.matrix(KV_HEADS * HEAD, HIDDEN))
        writer.add_tensor(name + "attn_output.weight", numbers.matrix(HIDDEN, HEADS * HEAD))
        writer.add_tensor(name + "attn_q_norm.weight", numbers.vector(HEAD, 1))
        writer.add_tensor(name + "attn_k_norm.weight", numbers.vector(HEAD, 1))
        writer.add_tensor(name + "ffn_norm.weight", numbers.vector(HIDDEN, 1))
        writer.add_tensor(name + "ffn_gate.weight", numbers.matrix(INTERMEDIATE, HIDDEN))
        writer.add_tensor(name + "ffn_up.weight", numbers.matrix(INTERMEDIATE, HIDDEN))
        writer.add_tensor(name + "ffn_down.weight", numbers.matrix(HIDDEN, INTERMEDIATE))
    finish(writer)


def write_mmproj(file):
    numbers = Numbers()
    hidden, wide, patch = VISION["hidden"], VISION["intermediate"], VISION["patch"]
    merged = hidden * VISION["merge"] ** 2
    writer = gguf.GGUFWriter(file, "clip")
    writer.add_name("random")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(gguf.VisionProjectorType.QWEN3VL)
    writer.add_vision_use_gelu(True)
    writer.add_vision_image_size(int(VISION["positions"] ** 0.5) * patch)
    writer.add_vision_patch_size(patch)
    writer.add_vision_embedding_length(hidden)
    writer.add_vision_feed_forward_length(wide)
    writer.add_vision_block_count(VISION["depth"])
    writer.add_vision_head_count(VISION["heads"])
    writer.add_vision_projection_dim(HIDDEN)
    writer.add_vision_spatial_merge_size(VISION["merge"])
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean([0.5, 0.5, 0.5])
    writer.add_vision_image_std([0.5, 0.5, 0.5])
    writer.add_vision_is_deepstack_layers([layer in VISION["deepstack"] for layer in range(VISION["depth"])])

    def linear(name, outputs, inputs):
        writer.add_tensor(name + ".weight", numbers.matrix(outputs, inputs))
        writer.add_tensor(name + ".bias", numbers.vector(outputs))

    def norm(name, size):
        writer.add_tensor(name + ".weight", numbers.vector(size, 1))
        writer.add_tensor(name + ".bias", numbers.vector(size))

    for suffix in ("weight", "weight.1"):
        writer.add_tensor("v.patch_embd." + suffix, numbers.matrix(hidden, 3, patch, patch))
    writer.add_tensor("v.patch_embd.bias", numbers.vector(hidden))
    writer.add_tensor("v.position_embd.weight", numbers.matrix(VISION["positions"], hidden).astype(np.float32))
    for layer in range(VISION["depth"]):
        name = f"v.blk.{layer}."
        norm(name + "ln1", hidden)
        linear(name + "attn_qkv", 3 * hidden, hidden)
        linear(name + "attn_out", hidden, hidden)
        norm(name + "ln2", hidden)
        linear(name + "ffn_up", wide, hidden)
        linear(name + "ffn_down", hidden, wide)
    for layer in VISION["deepstack"]:
        name = f"v.deepstack.{layer}."
        norm(name + "norm", merged)
        linear(name + "fc1", merged, merged)
        linear(name + "fc2", HIDDEN, merged)
    norm("v.post_ln", hidden)
    linear("mm.0", merged, merged)
    linear("mm.2", HIDDEN, merged)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mmproj", action="store_true", help="write the projector, too")
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--vocabulary", type=int, default=151936)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_text(options.folder / "text.gguf", options.layers, options.vocabulary)
    if options.mmproj:
        write_mmproj(options.folder / "mmproj.gguf")


main()
