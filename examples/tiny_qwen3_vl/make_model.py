#!/usr/bin/env python3
"""Writes the files of this folder: a Qwen3-VL of 2 + 2 layers with random weights, and an image to ask it about.

    examples/tiny_qwen3_vl/make_model.py [FOLDER]     default: the folder of this script

It has the form of Qwen3-VL-2B-Instruct (names, layouts, deepstack features, tied embeddings) at a thousandth of its
size, so that everything can be tried in seconds and without a GPU. It was never trained: what it says is noise. The
tokenizer is the one of the tests, of 747 tokens. The same bytes come out on every machine.
"""

import json
import os
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER = os.path.join(HERE, "..", "..", "tests", "model", "text", "data", "tokenizer.json")

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCABULARY = 64, 2, 4, 2, 16, 128, 752
V_HIDDEN, V_DEPTH, V_HEADS, V_INTERMEDIATE, PATCH, MERGE, POSITIONS = 32, 2, 2, 64, 8, 2, 64
DEEPSTACK = [0]

CONFIG = {
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "model_type": "qwen3_vl",
    "image_token_id": 741,
    "video_token_id": 743,
    "vision_start_token_id": 739,
    "vision_end_token_id": 740,
    "tie_word_embeddings": True,
    "text_config": {
        "model_type": "qwen3_vl_text",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "intermediate_size": INTERMEDIATE,
        "hidden_act": "silu",
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-06,
        "rope_theta": 5000000.0,
        "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [4, 2, 2]},
        "attention_bias": False,
        "tie_word_embeddings": True,
        "eos_token_id": 738,
        "dtype": "bfloat16",
    },
    "vision_config": {
        "model_type": "qwen3_vl",
        "hidden_size": V_HIDDEN,
        "depth": V_DEPTH,
        "num_heads": V_HEADS,
        "intermediate_size": V_INTERMEDIATE,
        "hidden_act": "gelu_pytorch_tanh",
        "in_channels": 3,
        "patch_size": PATCH,
        "temporal_patch_size": 2,
        "spatial_merge_size": MERGE,
        "out_hidden_size": HIDDEN,
        "num_position_embeddings": POSITIONS,
        "deepstack_visual_indexes": DEEPSTACK,
    },
}
GENERATION = {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "eos_token_id": [738, 736]}
PREPROCESSOR = {
    "image_processor_type": "Qwen2VLImageProcessorFast",
    "size": {"shortest_edge": 1024, "longest_edge": 16384},
    "patch_size": PATCH,
    "temporal_patch_size": 2,
    "merge_size": MERGE,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
# What the released models' template does with texts and images, without its tools and videos.
CHAT_TEMPLATE = {
    "chat_template":
        "{%- for message in messages %}{%- if message.role != 'system' or loop.first %}"
        "{{- '<|im_start|>' + message.role + '\\n' }}{%- if message.content is string %}{{- message.content }}"
        "{%- else %}{%- for part in message.content %}{%- if part.type == 'image' %}"
        "{{- '<|vision_start|><|image_pad|><|vision_end|>' }}{%- else %}{{- part.text }}{%- endif %}{%- endfor %}"
        "{%- endif %}{{- '<|im_end|>\\n' }}{%- endif %}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
}


def tensors():
    """Names and shapes of all weights, as the checkpoints of Qwen3-VL have them."""
    text = "model.language_model."
    yield text + "embed_tokens.weight", [VOCABULARY, HIDDEN]
    for i in range(LAYERS):
        layer = f"{text}layers.{i}."
        yield layer + "input_layernorm.weight", [HIDDEN]
        yield layer + "self_attn.q_proj.weight", [HEADS * HEAD_DIM, HIDDEN]
        yield layer + "self_attn.k_proj.weight", [KV_HEADS * HEAD_DIM, HIDDEN]
        yield layer + "self_attn.v_proj.weight", [KV_HEADS * HEAD_DIM, HIDDEN]
        yield layer + "self_attn.q_norm.weight", [HEAD_DIM]
        yield layer + "self_attn.k_norm.weight", [HEAD_DIM]
        yield layer + "self_attn.o_proj.weight", [HIDDEN, HEADS * HEAD_DIM]
        yield layer + "post_attention_layernorm.weight", [HIDDEN]
        yield layer + "mlp.gate_proj.weight", [INTERMEDIATE, HIDDEN]
        yield layer + "mlp.up_proj.weight", [INTERMEDIATE, HIDDEN]
        yield layer + "mlp.down_proj.weight", [HIDDEN, INTERMEDIATE]
    yield text + "norm.weight", [HIDDEN]

    def linear(name, *shape):
        yield name + ".weight", list(shape)
        yield name + ".bias", [shape[0]]

    vision = "model.visual."
    merged = V_HIDDEN * MERGE * MERGE
    yield from linear(vision + "patch_embed.proj", V_HIDDEN, 3, 2, PATCH, PATCH)
    yield vision + "pos_embed.weight", [POSITIONS, V_HIDDEN]
    for i in range(V_DEPTH):
        block = f"{vision}blocks.{i}."
        yield from linear(block + "norm1", V_HIDDEN)
        yield from linear(block + "attn.qkv", 3 * V_HIDDEN, V_HIDDEN)
        yield from linear(block + "attn.proj", V_HIDDEN, V_HIDDEN)
        yield from linear(block + "norm2", V_HIDDEN)
        yield from linear(block + "mlp.linear_fc1", V_INTERMEDIATE, V_HIDDEN)
        yield from linear(block + "mlp.linear_fc2", V_HIDDEN, V_INTERMEDIATE)
    mergers = [("merger.", V_HIDDEN)] + [(f"deepstack_merger_list.{k}.", merged) for k in range(len(DEEPSTACK))]
    for name, norm in mergers:
        yield from linear(vision + name + "norm", norm)
        yield from linear(vision + name + "linear_fc1", merged, merged)
        yield from linear(vision + name + "linear_fc2", HIDDEN, merged)


def bytes_of_noise(name):
    """Bytes without end, the same for a name wherever this runs: a xorshift of 64 bits, seeded by the name."""
    state = zlib.crc32(name.encode()) << 32 | zlib.adler32(name.encode()) | 1
    while True:
        state ^= state << 13 & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= state << 17 & 0xFFFFFFFFFFFFFFFF
        yield from state.to_bytes(8, "little")


def bfloat16(value):
    """The upper half of a float32; the values drawn here need no rounding."""
    return struct.pack("<f", value)[2:]


def unreadable_tokens():
    """Ids that are no text by themselves: single bytes of longer UTF-8 sequences, control characters, and gaps."""
    with open(TOKENIZER, encoding="utf-8") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    # How byte-level tokenizers write bytes: printable ones as they are, the others from U+0100 on.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
    readable = set()
    for token, number in vocabulary.items():
        raw = bytes(byte_of[character] for character in token)
        if raw.isascii() and raw.decode().isprintable():
            readable.add(number)
    return set(range(VOCABULARY)) - readable


def values_of(name, shape):
    """A tensor's bytes: norms about 1, biases small, matrices so that the sum over a row keeps its size."""
    count = 1
    for extent in shape:
        count *= extent
    noise = bytes_of_noise(name)
    if "norm" in name and name.endswith(".weight"):
        table = [bfloat16(1 + ((byte >> 3) - 16) / 64) for byte in range(256)]
    elif name.endswith(".bias"):
        table = [bfloat16((byte - 128) / 2048) for byte in range(256)]
    elif "merger" in name and "linear_fc2" in name:
        table = [bfloat16((byte - 128) / 8192) for byte in range(256)]  # of the size of a token's embedding
    else:
        table = [bfloat16((byte - 128) / 512) for byte in range(256)]
    values = b"".join(table[next(noise)] for _ in range(count))
    if name.endswith("embed_tokens.weight"):
        row = 2 * HIDDEN
        hidden = unreadable_tokens()
        values = b"".join(bytes(row) if i in hidden else values[i * row:(i + 1) * row] for i in range(VOCABULARY))
    return values


def write_weights(path):
    header, data = {}, b""
    for name, shape in tensors():
        values = values_of(name, shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_image(path, width=96, height=64):
    """A PNG: a disc before a sky that darkens."""
    rows = b""
    for y in range(height):
        rows += b"\0"
        for x in range(width):
            inside = (x - 60) ** 2 + (y - 26) ** 2 < 15 ** 2
            rows += bytes((250, 210, 60) if inside else (60 + y, 110 + y // 2, 230 - y))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    # Stored, not compressed: compressors differ from version to version.
    blocks = b"".join(
        struct.pack("<BHH", i + 65535 >= len(rows), len(rows[i:i + 65535]), 0xFFFF ^ len(rows[i:i + 65535])) +
        rows[i:i + 65535] for i in range(0, len(rows), 65535))
    stream = b"\x78\x01" + blocks + struct.pack(">I", zlib.adler32(rows))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", stream) + chunk(b"IEND", b""))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    os.makedirs(folder, exist_ok=True)
    for name, content in (("config.json", CONFIG), ("generation_config.json", GENERATION),
                          ("preprocessor_config.json", PREPROCESSOR), ("chat_template.json", CHAT_TEMPLATE)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=2) + "\n")
    with open(TOKENIZER, "rb") as source, open(os.path.join(folder, "tokenizer.json"), "wb") as file:
        file.write(source.read())
    write_weights(os.path.join(folder, "model.safetensors"))
    write_image(os.path.join(folder, "image.png"))


if __name__ == "__main__":
    main()
