#!/usr/bin/env python3
"""Compares Pascaline with Hugging Face Transformers on the same GPU: a Qwen3-VL model of random weights.

Has Transformers save a model (bfloat16) of the configuration, runs it in Transformers in float32 without TF32, records
logits with and without an image and of steps after them, has `pascaline validate` compare its own, and times prompts,
decoding steps and the vision tower of both in one run. Times are medians of wall time around a synchronised pass. With
--tokenizer and --template, Transformers saves the processor too, so that the folder serves for `generate`.

  bench/compare_transformers.py --build build/release/bin --db gpu.db --target sm_61 [--folder /tmp/model] [--skip-speed]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

import torch
import transformers
from safetensors.torch import save_file

DEVICE = "cuda"
IMAGE, VISION_START, VISION_END = 151655, 151652, 151653
TEXT = {"model_type": "qwen3_vl_text", "hidden_size": 2048, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 6144, "hidden_act": "silu",
        "vocab_size": 151936, "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 5000000,
        "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
        "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
        "initializer_range": 0.02, "tie_word_embeddings": True, "use_cache": True, "dtype": "bfloat16"}
VISION = {"model_type": "qwen3_vl", "hidden_size": 1024, "depth": 24, "num_heads": 16, "intermediate_size": 4096,
          "hidden_act": "gelu_pytorch_tanh", "in_channels": 3, "patch_size": 16, "temporal_patch_size": 2,
          "spatial_merge_size": 2, "out_hidden_size": 2048, "num_position_embeddings": 2304,
          "deepstack_visual_indexes": [5, 11, 17], "initializer_range": 0.02}
CONFIG = {"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "image_token_id": IMAGE,
          "video_token_id": 151656, "vision_start_token_id": VISION_START, "vision_end_token_id": VISION_END,
          "tie_word_embeddings": True, "text_config": TEXT, "vision_config": VISION}


def make_model(folder):
    """A model of random weights that bfloat16 holds exactly, in float32 on the GPU, and its checkpoint."""
    config = transformers.Qwen3VLConfig(**json.loads(json.dumps(CONFIG)))
    config._attn_implementation = "sdpa"
    with torch.device(DEVICE):
        model = transformers.Qwen3VLForConditionalGeneration(config).float().eval()
    generator = torch.Generator(device=DEVICE).manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator, device=DEVICE) * 0.02
            is_norm_weight = "norm" in name.rsplit(".", 2)[-2] and name.endswith("weight")
            parameter.copy_((values + 1 if is_norm_weight else values).to(torch.bfloat16))
    model.tie_weights()
    model.to(torch.bfloat16).save_pretrained(folder)  # which rounds frequencies, too: what is compared is read again
    return transformers.Qwen3VLForConditionalGeneration.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa").to(DEVICE).eval()


def save_processor(tokenizer, template, folder):
    """The tokenizer's and the image processor's files, from a tokenizer.json and a chat template of Qwen3-VL's."""
    transformers.Qwen3VLProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(
            size={"shortest_edge": 65536, "longest_edge": 16777216}, patch_size=16, merge_size=2,
            image_mean=[0.5] * 3, image_std=[0.5] * 3),
        tokenizer=transformers.Qwen2Tokenizer(tokenizer_file=str(tokenizer)),
        video_processor=transformers.Qwen3VLVideoProcessor(),
        chat_template=template.read_text()).save_pretrained(folder)


def image_input(rows, columns):
    """Patches of random pixels, and their grid."""
    generator = torch.Generator().manual_seed(2)
    pixels = torch.rand(rows * columns, 3 * 2 * 16 * 16, generator=generator) * 2 - 1
    return pixels.to(DEVICE), torch.tensor([[1, rows, columns]], device=DEVICE)


def prompt(tokens, image_tokens=0):
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(0, 150000, (tokens,), generator=generator)
    if image_tokens:
        ids = torch.cat([ids[:4], torch.tensor([VISION_START]), torch.full((image_tokens,), IMAGE),
                         torch.tensor([VISION_END]), ids[4:]])
    return ids[None].to(DEVICE)


@torch.no_grad()
def run(model, ids, steps, pixels=None, grid=None):
    """Logits of a prompt, then of `steps` tokens chosen greedily: (logits [S, V], ids [T], logits [T, V])."""
    extra = {"pixel_values": pixels, "image_grid_thw": grid} if pixels is not None else {}
    if pixels is not None:
        extra["mm_token_type_ids"] = (ids == IMAGE).int()
    cache = transformers.DynamicCache()
    accepted = model.forward.__wrapped__ if hasattr(model.forward, "__wrapped__") else model.forward
    if "mm_token_type_ids" not in accepted.__code__.co_varnames:
        extra.pop("mm_token_type_ids", None)
    first = model(input_ids=ids, attention_mask=torch.ones_like(ids), past_key_values=cache, use_cache=True, **extra)
    chosen, logits, token = [], [], first.logits[0, -1].argmax()
    for _ in range(steps):
        out = model(input_ids=token[None, None], past_key_values=cache, use_cache=True)
        chosen.append(int(token))
        logits.append(out.logits[0, -1])
        token = out.logits[0, -1].argmax()
    return first.logits[0], chosen, torch.stack(logits)


def record(model, file, ids, steps, pixels=None, grid=None):
    logits, chosen, decoded = run(model, ids, steps, pixels, grid)
    tensors = {"input_ids": ids[0].to(torch.int32), "logits": logits, "decode_logits": decoded,
               "decode_ids": torch.tensor(chosen, dtype=torch.int32)}
    if pixels is not None:
        tensors |= {"pixel_values": pixels, "image_grid_thw": grid.to(torch.int32)}
    save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, str(file))


def median_ms(work, repeats=10):
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


@torch.no_grad()
def time_transformers(model, prompts, context, image):
    times = {}
    for tokens in prompts:
        ids = prompt(tokens)
        times["prefill", tokens] = median_ms(lambda: model(input_ids=ids, use_cache=True, logits_to_keep=1))
    ids = prompt(context)
    cache = transformers.DynamicCache()
    model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
    token = ids[:, :1]
    times["decode", context] = median_ms(
        lambda: model(input_ids=token, past_key_values=cache, use_cache=True, logits_to_keep=1), repeats=20)
    pixels, grid = image_input(image // 16, image // 16)
    times["image on the GPU", image] = median_ms(lambda: model.model.visual(pixels, grid_thw=grid))
    on_host = pixels.cpu()  # as a processor leaves them, and as the own time counts them
    times["image", image] = median_ms(lambda: model.model.visual(on_host.to(DEVICE), grid_thw=grid))
    return times


class Pascaline:
    def __init__(self, options):
        self.options = options

    def run(self, command, *arguments, check=True):
        words = [f"{self.options.build}/pascaline", command, "--model", str(self.options.folder), "--device", "cuda:0",
                 *arguments]
        words += ["--db", self.options.db] if self.options.db else ["--untuned"]
        words += ["--target", self.options.target] if self.options.target else []
        result = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        if check and result.returncode not in (0, 3):
            sys.exit(f"{' '.join(words)}: exit code {result.returncode}")
        return json.loads(result.stdout)


def compare_accuracy(model, pascaline, folder):
    pixels, grid = image_input(16, 24)
    record(model, folder / "text.safetensors", prompt(128), 32)
    record(model, folder / "image.safetensors", prompt(32, image_tokens=96), 32, pixels, grid)
    print("\n| reference | weights | part | relative L2 | largest error | cosine | same best token | of clear ones |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for name in ("text", "image"):
        for kind in ("float32", "float16"):
            result = pascaline.run("validate", "--json", "--reference", str(folder / f"{name}.safetensors"),
                                   "--weights", kind, "--kv-cache", kind)
            for part in result["parts"]:
                print(f"| {name} | {kind} | {part['part']} | {part['relative_l2']:.2e} | {part['max_abs']:.2e} | "
                      f"{part['cosine']:.7f} | {100 * part['top1_agreement']:.1f} % of {part['rows']} | "
                      f"{part['clear_rows_agreeing']} of {part['clear_rows']} |")
    sys.stdout.flush()


def compare_speed(model, pascaline, options):
    prompts = (512, 1024)
    before = time_transformers(model, prompts, 512, options.image)
    own = {}
    for kind in ("float32", "float16"):
        result = pascaline.run("bench-model", "--json", "--weights", kind, "--kv-cache", kind, "--prompt-tokens",
                               *map(str, prompts), "--image-size", str(options.image), str(options.image))
        print(f"\n{kind}: copying {result['copy_gb_per_s']:.0f} GB/s, weights {result['weights_bytes'] / 1e9:.2f} GB")
        print("| pass | ms | untuned ms | speedup | TFLOP/s | of its limit |\n|---|---:|---:|---:|---:|---:|")
        for entry in result["passes"]:
            own.setdefault((kind, entry["pass"]), []).append(entry["time_ms"])
            untuned = f"{entry['untuned_ms']:.3f} | {entry['speedup']:.3f}" if "untuned_ms" in entry else " | "
            share = entry.get("of_bandwidth_limit", entry.get("of_flop_limit"))
            limit = f"{100 * share:.1f} %" if share is not None else ""
            print(f"| {entry['per']} | {entry['time_ms']:.3f} | {untuned} | {entry.get('tflops', 0):.2f} | {limit} |")
    after = time_transformers(model, prompts, 512, options.image)
    print("\n| pass | Transformers float32 ms, before / after | float32 ms | ratio | float16 weights ms | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    place = {("prefill", 512): 0, ("prefill", 1024): 1, ("decode", 512): 0, ("image", options.image): 0,
             ("image on the GPU", options.image): 0}
    for key, index in place.items():
        peer = (before[key] + after[key]) / 2
        full, half = (own[kind, key[0].split()[0]][index] for kind in ("float32", "float16"))
        print(f"| {key[0]} {key[1]} | {before[key]:.2f} / {after[key]:.2f} | {full:.2f} | {peer / full:.2f} | {half:.2f} | "
              f"{peer / half:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--db", default="", help="tuned database; without one the defaults run")
    parser.add_argument("--target", default="")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/pascaline-random-2b"))
    parser.add_argument("--tokenizer", type=pathlib.Path, help="a tokenizer.json of Qwen3-VL")
    parser.add_argument("--template", type=pathlib.Path, help="its chat template, as text")
    parser.add_argument("--image", type=int, default=1024, help="edge of the image that is timed, in pixels")
    parser.add_argument("--skip-accuracy", action="store_true")
    parser.add_argument("--skip-speed", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, Transformers {transformers.__version__}, "
          f"float32 without TF32, SDPA; target {options.target or 'native'}")
    begin = time.perf_counter()
    model = make_model(options.folder)
    if options.tokenizer:
        save_processor(options.tokenizer, options.template, options.folder)
    print(f"made and wrote the model in {time.perf_counter() - begin:.1f} s")
    sys.stdout.flush()
    pascaline = Pascaline(options)
    if not options.skip_accuracy:
        compare_accuracy(model, pascaline, options.folder)
    if not options.skip_speed:
        compare_speed(model, pascaline, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
