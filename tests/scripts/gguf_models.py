"""What goes with the numbers of a Qwen3-VL made up for tests and comparisons: tokenizer, chat template and preprocessor, in
a folder and in a GGUF file; an image; random blocks. Needs NumPy and the package gguf."""
import json
import pathlib
import struct
import zlib

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIND = gguf.GGMLQuantizationType
# Ids that the configuration must have with this tokenizer, which needs a vocabulary of at least 747.
TOKENS = {"image_token_id": 741, "video_token_id": 743, "vision_start_token_id": 739, "vision_end_token_id": 740}
END_TOKEN = 738
TEMPLATE = json.loads((ROOT / "examples/tiny_qwen3_vl/chat_template.json").read_text())["chat_template"]


def tokenizer():
    """The tests' own, with a token that stands for videos."""
    content = json.loads((ROOT / "tests/model/text/data/tokenizer.json").read_text())
    for token in content["added_tokens"]:
        if token["id"] == TOKENS["video_token_id"]:
            token["content"] = "<|video_pad|>"
    return content


def add_tokenizer(writer, config):
    """Tokenizer and chat template of a GGUF file."""
    content, size = tokenizer(), config["text_config"]["vocab_size"]
    tokens = [f"[PAD{i}]" for i in range(size)]
    types = [gguf.TokenType.UNUSED] * size
    for token, number in content["model"]["vocab"].items():
        tokens[number], types[number] = token, gguf.TokenType.NORMAL
    for token in content["added_tokens"]:
        tokens[token["id"]] = token["content"]
        types[token["id"]] = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(merge) if isinstance(merge, list) else merge
                             for merge in content["model"]["merges"]])
    writer.add_chat_template(TEMPLATE)


def write_texts(folder, config):
    """All files of a model's folder but the weights."""
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    vision = config.get("vision_config")
    if vision is None:
        return
    area = (vision["patch_size"] * vision["spatial_merge_size"]) ** 2
    # The limits that a projector without image_min_pixels and image_max_pixels has.
    (folder / "preprocessor_config.json").write_text(json.dumps(
        {"size": {"shortest_edge": 8 * area, "longest_edge": 4096 * area}, "patch_size": vision["patch_size"],
         "temporal_patch_size": vision["temporal_patch_size"], "merge_size": vision["spatial_merge_size"],
         "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "image_processor_type": "Qwen2VLImageProcessorFast"}))


def write_photo(file, width=24, height=16):
    """A PNG of so many pixels."""
    rows = b"".join(b"\0" + bytes((7 * x + 13 * y + 29 * c + x * y) % 256 for x in range(width) for c in range(3))
                    for y in range(height))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    file.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# Of blocks that gguf does not make, by the byte that they begin with: the scale of values, and that of what is subtracted,
# so that the values of a block have a mean near 0 and a deviation near 0.02.
SCALES = {KIND.Q2_K: {80: 9.6e-4, 82: 1.44e-3}, KIND.Q3_K: {108: 3.1e-4}, KIND.Q4_K: {0: 5e-5, 2: 3.75e-4},
          KIND.Q5_K: {0: 2.5e-5, 2: 3.875e-4}, KIND.Q6_K: {208: 1e-5}, KIND.IQ4_NL: {0: 2e-4}, KIND.IQ4_XS: {0: 1.06e-5}}


def random_blocks(generator, shape, kind):
    """Rows of blocks of a kind of SCALES, as bytes."""
    count, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (shape[0], shape[1] // count, size), dtype=np.uint8)
    for place, scale in SCALES[kind].items():
        half = (scale * (1 + generator.random(blocks.shape[:2], dtype=np.float32))).astype(np.float16)
        blocks[:, :, place:place + 2] = half[:, :, None].view(np.uint8)
    return blocks.reshape(shape[0], -1)
