"""Small, whole examples of everything that the program reads."""

import json
import os
import pathlib
import shutil
import struct
import zlib

TOY_KERNEL = """// out[i] = 3 x[i] + y[i]
constexpr int kFault = FAULT;
extern "C" __global__ void toy(const float* x, const float* y, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x) * BLOCK + static_cast<int>(threadIdx.x);
  if (i < n) {
    out[i] = kFault == 1 && i == 5 ? __int_as_float(0x7fffffff) : 3.0f * x[i] + y[i];
  }
}
#ifdef PASCALINE_REFERENCE
extern "C" __global__ void toy_reference(const float* x, const float* y, double* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    out[i] = 3.0 * x[i] + y[i];
  }
}
#endif
"""


def toy_space(blocks=(32, 64, 128, 256), faults=(0, 1)):
    return {
        "schema": 1, "kernel": "toy", "description": "a small kernel",
        "dimensions": [{"name": "N", "description": "elements", "example": 1000}],
        "types": [],
        "parameters": [
            {"name": "BLOCK", "values": list(blocks), "default": blocks[0], "description": "threads of a block"},
            {"name": "FAULT", "values": list(faults), "default": faults[0], "description": "what it does wrong"}],
        "constraints": [{"require": "BLOCK <= device_max_threads_per_block", "because": "no block has more threads"}],
        "launch": {"function": "toy", "block": ["BLOCK"], "grid": ["ceil_div(N, BLOCK)"]},
        "arguments": [
            {"name": "x", "buffer": "float32", "access": "in", "extent": "N", "fill": "uniform"},
            {"name": "y", "buffer": "float32", "access": "in", "extent": "N", "fill": "normal"},
            {"name": "out", "buffer": "float32", "access": "out", "extent": "N"},
            {"name": "n", "scalar": "int32", "value": "N"}],
        "reference": {"kernel": {"function": "toy_reference", "block": [128], "grid": ["ceil_div(N, 128)"]}},
        "tolerance": {"float32": 1e-6},
        "work": {"flops": "2 * N", "bytes": "12 * N"}}


def write_toy(bench, space=None):
    """The kernel and its space; returns the options that name them."""
    bench.write("toys/toy.cu", TOY_KERNEL)
    bench.write("toys/toy.json", json.dumps(space or toy_space(), indent=1))
    return ["--kernels", bench.path("toys"), "--spaces", bench.path("toys")]


def short_sweep(bench, database, more=()):
    """The words of a sweep of the toy that takes about a second."""
    return ["sweep", *write_toy(bench), "--kernel", "toy", "--problem", "N=5000", "--device", "emulator", "--db", database,
            "--jobs", "1", "--warm-cache", "--min-samples", "100000", "--max-samples", "100000", "--sample-budget-ms",
            "5", "--race-error", "0", "--rounds", "2", "--finalists", "2", *more]


def swept_database(bench):
    """A database with one sweep that ended, made once for all cases; returns a copy of one's own."""
    shared = bench.settings.shared
    if "database" not in shared:
        from workbench import Failure
        outcome = bench.run(short_sweep(bench, bench.path("made.db")))
        if outcome.code != 0:
            raise Failure(f"the example cannot be made: {outcome}")
        with open(bench.path("made.db"), "rb") as file:
            shared["database"] = file.read()
        os.remove(bench.path("made.db"))
    write_toy(bench)
    return bench.write("tuned.db", shared["database"])


MODEL_CONFIG = {
    "model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], "image_token_id": 741,
    "video_token_id": 743, "vision_start_token_id": 739, "vision_end_token_id": 740, "tie_word_embeddings": True,
    "text_config": {
        "model_type": "qwen3_vl_text", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 128, "hidden_act": "silu", "vocab_size": 752,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 5e6, "attention_bias": False,
        "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [4, 2, 2]},
        "tie_word_embeddings": True, "eos_token_id": 738},
    "vision_config": {
        "model_type": "qwen3_vl", "hidden_size": 32, "depth": 2, "num_heads": 2, "intermediate_size": 64,
        "hidden_act": "gelu_pytorch_tanh", "in_channels": 3, "patch_size": 4, "temporal_patch_size": 2,
        "spatial_merge_size": 2, "out_hidden_size": 64, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}}

PREPROCESSOR = {"size": {"shortest_edge": 256, "longest_edge": 4096}, "patch_size": 4, "temporal_patch_size": 2,
                "merge_size": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
                "image_processor_type": "Qwen2VLImageProcessorFast"}

TEMPLATE = json.loads((pathlib.Path(__file__).resolve().parents[2] / "examples/tiny_qwen3_vl/chat_template.json").read_text())["chat_template"]


def model_tensors():
    """Name and shape of every tensor of the model above."""
    text, vision = MODEL_CONFIG["text_config"], MODEL_CONFIG["vision_config"]
    hidden, inner, head = text["hidden_size"], text["intermediate_size"], text["head_dim"]
    q, kv = text["num_attention_heads"] * head, text["num_key_value_heads"] * head
    tensors = {"model.language_model.embed_tokens.weight": [text["vocab_size"], hidden],
               "model.language_model.norm.weight": [hidden]}
    for layer in range(text["num_hidden_layers"]):
        shapes = {"input_layernorm": [hidden], "self_attn.q_proj": [q, hidden], "self_attn.k_proj": [kv, hidden],
                  "self_attn.v_proj": [kv, hidden], "self_attn.q_norm": [head], "self_attn.k_norm": [head],
                  "self_attn.o_proj": [hidden, q], "post_attention_layernorm": [hidden],
                  "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden], "mlp.down_proj": [hidden, inner]}
        for name, shape in shapes.items():
            tensors[f"model.language_model.layers.{layer}.{name}.weight"] = shape
    width, out = vision["hidden_size"], vision["out_hidden_size"]
    merged = width * vision["spatial_merge_size"] ** 2
    pairs = {"patch_embed.proj": [width, 3, 2, vision["patch_size"], vision["patch_size"]]}
    for block in range(vision["depth"]):
        for name, shape in {"norm1": [width], "attn.qkv": [3 * width, width], "attn.proj": [width, width],
                            "norm2": [width], "mlp.linear_fc1": [vision["intermediate_size"], width],
                            "mlp.linear_fc2": [width, vision["intermediate_size"]]}.items():
            pairs[f"blocks.{block}.{name}"] = shape
    for prefix, norm in (("merger", width), ("deepstack_merger_list.0", merged)):
        pairs |= {f"{prefix}.norm": [norm], f"{prefix}.linear_fc1": [merged, merged],
                  f"{prefix}.linear_fc2": [out, merged]}
    for name, shape in pairs.items():
        tensors[f"model.visual.{name}.weight"] = shape
        tensors[f"model.visual.{name}.bias"] = shape[:1]
    tensors["model.visual.pos_embed.weight"] = [vision["num_position_embeddings"], width]
    return tensors


def safetensors(tensors, ids=()):
    """A file of float32 tensors with small numbers, and `input_ids` if there are ids."""
    header, body = {}, bytearray()
    if ids:
        body += struct.pack(f"<{len(ids)}i", *ids)
        header["input_ids"] = {"dtype": "I32", "shape": [len(ids)], "data_offsets": [0, len(body)]}
    for name, shape in tensors.items():
        count = 1
        for extent in shape:
            count *= extent
        begin = len(body)
        for i in range(count):
            body += struct.pack("<f", ((i * 2654435761 + begin) % 1001 - 500) / 5000)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(body)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(body)


def write_model(bench):
    """A whole model folder with the tests' own tokenizer."""
    shared = bench.settings.shared
    if "weights" not in shared:
        shared["weights"] = safetensors(model_tensors())
    bench.write("model/model.safetensors", shared["weights"])
    for name, content in {"config": MODEL_CONFIG, "preprocessor_config": PREPROCESSOR,
                          "generation_config": {"eos_token_id": [738, 736], "do_sample": True, "temperature": 0.7},
                          "chat_template": {"chat_template": TEMPLATE}}.items():
        bench.write(f"model/{name}.json", json.dumps(content))
    shutil.copy(os.path.join(bench.settings.source, "tests/model/text/data/tokenizer.json"), bench.path("model"))
    return bench.path("model")


def png(width=24, height=16):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + bytes((x * 7 + y * 13 + c * 31) % 256 for x in range(width) for c in range(3))
                    for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def jpeg():
    """A gray square of 8 x 8, baseline; the tables are short, and its one block is flat."""
    def segment(marker, content):
        return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content
    lengths = bytes([0, 1] + [0] * 14)
    return (b"\xff\xd8" + segment(0xDB, b"\0" + bytes([8] * 64)) +
            segment(0xC0, struct.pack(">BHHB", 8, 8, 8, 1) + bytes((1, 0x11, 0))) +
            segment(0xC4, b"\0" + lengths + b"\0") + segment(0xC4, b"\x10" + lengths + b"\0") +
            segment(0xDA, bytes((1, 1, 0, 0, 63, 0))) + b"\x0f\xff\xd9")


SENSOR_TRACE = {"steps": [
    {"at_s": 0, "temperature_c": 45, "temperature_limit_c": 83, "sm_clock_mhz": 1500, "throttle_reasons": 0},
    {"at_s": 20, "temperature_c": 84, "throttle_reasons": 64, "canary_scale": 1.2},
    {"at_s": 40, "temperature_c": 60, "throttle_reasons": 0, "canary_scale": None, "power_w": None}], "repeat_s": 60}

TABLE = "BLOCK,UNROLL,time_ms,status,eval_cost_ms\n" + "".join(
    f"{block},{unroll},{block * 0.5 + unroll},ok,12.5\n" for block in (32, 64, 128, 256) for unroll in range(1, 17))

WORKLOAD = {
    "schema": 1, "name": "work", "description": "small shapes", "source": "nowhere",
    "phases": [{"name": "prompt", "per": "prompt of S tokens", "symbols": {"S": [100, 200]}},
               {"name": "token", "per": "token"}],
    "entries": [{"kernel": "toy", "name": "first", "phase": "prompt", "dimensions": {"N": "2 * S"}, "count": 2},
                {"kernel": "toy", "name": "second", "phase": "prompt", "dimensions": {"N": "S + 1"}, "count": 3},
                {"kernel": "toy", "name": "both", "phase": "prompt", "dimensions": {"N": "4 * S"}, "count": 2,
                 "alternative_of": ["first", "second"]},
                {"kernel": "toy", "name": "last", "phase": "token", "dimensions": {"N": 7}, "count": 7}]}
