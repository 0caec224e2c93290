#!/usr/bin/env python3
"""What `pascaline.torch` gives and costs on a GPU: calls, captured graphs, and a Transformers model with its modules replaced.

Times what a call takes of the processor until it returns; runs Qwen3-VL-2B with random weights in float32 before and after
`pascaline.torch.optimize`: greedy tokens and a prompt of 512; and captures a graph of calls, if they can be.
Kernels are compiled on first use, so the first run of each shape is not timed.

  bench/compare_torch_modules.py [--layers 28] [--no-model]

Needs PyTorch with a GPU, Transformers, and the package pascaline.
"""
import argparse
import statistics
import time
import warnings

import torch

import pascaline
import pascaline.torch as tuned
from pascaline import ops


def host_us(call, calls=2000, rounds=7):
    """Median over rounds of the processor's time of a call that does not wait for the GPU."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append(1e6 * (time.perf_counter() - begin) / calls)
        torch.cuda.synchronize()
    return statistics.median(times)


def compare_calls():
    x, weight, gate = torch.randn(8, 64, device="cuda"), torch.randn(48, 64, device="cuda"), torch.ones(64, device="cuda")
    out, transposed, normed = torch.empty(8, 48, device="cuda"), weight.T, torch.empty_like(x)
    calls = {
        "torch.matmul(x, w.T, out=out)": lambda: torch.matmul(x, transposed, out=out),
        "ops.matmul(x, w, out=out)": lambda: ops.matmul(x, weight, out=out),
        "torch.matmul(x, w.T)": lambda: torch.matmul(x, transposed),
        "ops.matmul(x, w)": lambda: ops.matmul(x, weight),
        "pascaline.torch.linear(x, w)": lambda: tuned.linear(x, weight),
        "torch.nn.functional.rms_norm(x)": lambda: torch.nn.functional.rms_norm(x, (64,), gate, 1e-6),
        "ops.rmsnorm(x, w, out=out)": lambda: ops.rmsnorm(x, gate, out=normed),
    }
    with torch.no_grad():
        for name, call in calls.items():
            call()
            torch.cuda.synchronize()
            held = torch.cuda.memory_allocated()
            call()
            grown = torch.cuda.memory_allocated() - held
            print(f"{name}: {host_us(call):.2f} us a call, {grown} bytes more allocated behind it")


def compare_graphs():
    x, weight = torch.randn(64, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    out = torch.empty(64, 256, device="cuda")
    with torch.no_grad():
        ops.matmul(x, weight, out=out)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                ops.matmul(x, weight, out=out)
        x.copy_(torch.randn_like(x))
        out.zero_()
        graph.replay()
        torch.cuda.synchronize()
        difference = (out.double() - x.double() @ weight.double().T).abs().max().item()
    print(f"graph of 20 products: replayed on new numbers, greatest difference {difference:.1e}")


@torch.no_grad()
def greedy(model, ids, steps):
    import transformers
    cache, chosen, logits = transformers.DynamicCache(), [], []
    out = model(input_ids=ids, past_key_values=cache, use_cache=True)
    for _ in range(steps):
        logits.append(out.logits[0, -1])
        chosen.append(int(out.logits[0, -1].argmax()))
        out = model(input_ids=torch.tensor([[chosen[-1]]], device="cuda"), past_key_values=cache, use_cache=True)
    return chosen, torch.stack(logits)


def compare_models(layers):
    import transformers
    from compare_transformers import CONFIG, median_ms, prompt
    config = transformers.Qwen3VLConfig(**{**CONFIG, "text_config": {**CONFIG["text_config"], "num_hidden_layers": layers}})
    config._attn_implementation = "sdpa"
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = transformers.Qwen3VLForConditionalGeneration(config).float().eval()
    ids = prompt(512)
    with torch.no_grad():
        plain_ms = median_ms(lambda: model(input_ids=ids, use_cache=True, logits_to_keep=1))
        plain, logits = greedy(model, ids[:, :64], 32)
        report = tuned.optimize(model)
        begin = time.perf_counter()
        found, after = greedy(model, ids[:, :64], 32)
        model(input_ids=ids, use_cache=True, logits_to_keep=1)
        first_s = time.perf_counter() - begin
        tuned_ms = median_ms(lambda: model(input_ids=ids, use_cache=True, logits_to_keep=1))
    same = sum(a == b for a, b in zip(plain, found))
    apart = ((after - logits).norm() / logits.norm()).item()
    reasons = {}
    for _, kind, why in report.kept:
        reasons[f"{kind}: {why}"] = reasons.get(f"{kind}: {why}", 0) + 1
    print(f"model of {layers} layers: {len(report.replaced)} modules replaced, {len(report.kept)} kept")
    for reason, count in sorted(reasons.items(), key=lambda entry: -entry[1]):
        print(f"  {count} x {reason}")
    print(f"  greedy tokens the same: {same} of {len(plain)}, logits apart by {apart:.1e}; first run {first_s:.1f} s")
    print(f"  prompt of 512: {plain_ms:.2f} ms plain, {tuned_ms:.2f} ms optimized, {plain_ms / tuned_ms:.2f} times as fast")
    print(f"  {tuned.stats()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=28, help="of the text model (default: 28, all)")
    parser.add_argument("--no-model", action="store_true", help="calls and graphs only")
    options = parser.parse_args()
    warnings.simplefilter("once")
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    compare_calls()
    if not options.no_model:
        compare_models(options.layers)
    try:  # last: a capture that fails leaves nothing usable
        compare_graphs()
    except (pascaline.Error, RuntimeError) as error:
        print(f"graph of 20 products: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
