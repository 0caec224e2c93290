#!/usr/bin/env python3
"""What `pascaline.torch` gives and costs on a GPU: calls, captured graphs, and a Transformers model with its modules replaced.

calls    what a call takes of the processor until it returns, beside PyTorch's own and the same launch in C++, and the memory
         that it leaves behind
graphs   captures calls and modules by torch.cuda.graph, and compares replays on new numbers with plain calls
model    runs Qwen3-VL-2B with random weights in float32 before and after `pascaline.torch.optimize`: greedy tokens, a prompt
         of 512, a step of decoding
Kernels are compiled on first use, so the first run of each shape is not timed. To tune what the model calls, write it down,
on whatever device and with few layers, and sweep it:

  bench/compare_torch_modules.py --layers 2 --device cpu --capture model.json
  pascaline sweep --workload model.json --db gpu.db --budget 2m
  bench/compare_torch_modules.py [--parts calls,graphs,model] [--layers 28] [--db gpu.db] [--device cuda]

Needs PyTorch, Transformers for the model, and the package pascaline. With `--device cpu` it only shows that it runs.
"""
import argparse
import json
import pathlib
import statistics
import time
import warnings

import torch

import pascaline
import pascaline.torch as tuned
from pascaline import _native, ops

CONFIG = pathlib.Path(__file__).resolve().parents[1] / "tests" / "model" / "checkpoint" / "data" / "qwen3_vl_2b.json"


class Bench:
    def __init__(self, device):
        self.device = device
        self.on_gpu = device.startswith("cuda")

    def draw(self, *shape):
        return torch.randn(*shape, device=self.device)

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def held(self):
        return torch.cuda.memory_allocated() if self.on_gpu else 0

    def host_us(self, call, calls=500, rounds=15):
        return self.host_us_in_turn({"": call}, calls, rounds)[""][0]

    def host_us_in_turn(self, calls, count=500, rounds=15):
        """Of each call the time until it returns and the time that its thread had the processor, which other programs do not
        lengthen: medians over rounds, in turn, of fewer calls at a time than the GPU's queue holds."""
        times = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                self.wait()
                begin, thread_begin = time.perf_counter(), time.thread_time()
                for _ in range(count):
                    call()
                thread_us = 1e6 * (time.thread_time() - thread_begin) / count
                times[name].append((1e6 * (time.perf_counter() - begin) / count, thread_us))
        self.wait()
        return {name: tuple(map(statistics.median, zip(*of))) for name, of in times.items()}

    def median_ms(self, work, repeats=10):
        times = []
        for repeat in range(repeats + 3):
            self.wait()
            begin = time.perf_counter()
            work()
            self.wait()
            if repeat >= 3:
                times.append(1e3 * (time.perf_counter() - begin))
        return statistics.median(times)

    # ---- Calls ----

    @torch.no_grad()
    def compare_calls(self):
        x, weight, gate = self.draw(8, 64), self.draw(48, 64), torch.ones(64, device=self.device)
        x3 = x[None]
        out, transposed, normed = torch.empty(8, 48, device=self.device), weight.T, torch.empty_like(x)
        linear, plain_linear = torch.nn.Linear(64, 48, bias=False).to(self.device), torch.nn.Linear(64, 48, bias=False)
        plain_linear.to(self.device)
        tuned.optimize(holder := torch.nn.Sequential(linear))
        tuned_linear = holder[0]
        calls = {
            "torch.matmul(x, w.T, out=out)": lambda: torch.matmul(x, transposed, out=out),
            "ops.matmul(x, w, out=out)": lambda: ops.matmul(x, weight, out=out),
            "torch.matmul(x, w.T)": lambda: torch.matmul(x, transposed),
            "ops.matmul(x, w)": lambda: ops.matmul(x, weight),
            "torch.nn.functional.linear(x, w)": lambda: torch.nn.functional.linear(x, weight),
            "x.new_empty(8, 48)": lambda: x.new_empty((8, 48)),
            "pascaline.torch.linear(x, w)": lambda: tuned.linear(x, weight),
            "pascaline.torch.linear(x[None], w)": lambda: tuned.linear(x3, weight),
            "torch.nn.Linear(x)": lambda: plain_linear(x3),
            "pascaline.torch.Linear(x)": lambda: tuned_linear(x3),
            "torch.nn.functional.rms_norm(x)": lambda: torch.nn.functional.rms_norm(x, (64,), gate, 1e-6),
            "ops.rmsnorm(x, w, out=out)": lambda: ops.rmsnorm(x, gate, out=normed),
            "pascaline.torch.rms_norm(x, w)": lambda: tuned.rms_norm(x, gate),
        }
        grown = {}
        for name, call in calls.items():
            call()
            self.wait()
            held = self.held()
            call()
            grown[name] = self.held() - held
        for name, (taken_us, thread_us) in self.host_us_in_turn(calls).items():
            print(f"{name}: {taken_us:.2f} us a call, {thread_us:.2f} us of its thread, "
                  f"{grown[name]} bytes more allocated behind it")
        where = None if self.on_gpu else "emulator"
        in_cpp = {
            "matmul": ((x, weight, None, None, out, 0), ["a", "b", "bias", "residual", "out", "epilogue"]),
            "rmsnorm": ((x, gate, None, normed, 1e-6), ["x", "weight", "residual", "out", "epsilon"]),
        }
        for name, (arguments, names) in in_cpp.items():
            operation = _native.Operation(name, names)
            times = []
            for _ in range(15):
                self.wait()
                times.append(operation.time(arguments, where, 500 if self.on_gpu else 5))
            print(f"ops::run of {name} in C++: {statistics.median(times):.2f} us a call")

    # ---- Graphs ----

    @torch.no_grad()
    def compare_graphs(self):
        x, weight, norm = self.draw(64, 256), self.draw(256, 256) / 16, self.draw(256)
        normed, out = torch.empty_like(x), torch.empty_like(x)
        model = torch.nn.Sequential(torch.nn.RMSNorm(256, eps=1e-6), torch.nn.Linear(256, 512), torch.nn.Linear(512, 256))
        tuned.optimize(model.to(self.device).eval())

        def step():
            for _ in range(10):
                ops.rmsnorm(x, norm, out=normed)
                ops.matmul(normed, weight, out=out)
            return model(x)

        plain = step()
        self.wait()
        if not self.on_gpu:
            print("graph: CUDA graphs are of a GPU")
            return
        graph = torch.cuda.CUDAGraph()
        held = torch.cuda.memory_allocated()
        with torch.cuda.graph(graph):
            captured = step()
        same = True
        for _ in range(3):
            x.copy_(torch.randn_like(x))
            out.zero_()
            graph.replay()
            self.wait()
            replayed = out.clone(), captured.clone()
            plain = step()
            same = same and torch.equal(replayed[0], out) and torch.equal(replayed[1], plain)
        print(f"graph of 20 operations and a model: replays on new numbers {'equal' if same else 'DIFFER FROM'} plain calls, "
              f"{torch.cuda.memory_allocated() - held} bytes more allocated")
        print(f"  replay: {self.host_us(graph.replay, 20):.2f} us of the processor, plain calls {self.host_us(step, 20):.2f} us; "
              f"with the GPU's time {1e3 * self.median_ms(graph.replay):.1f} us and {1e3 * self.median_ms(step):.1f} us")
        new, new_weight, new_out = self.draw(3, 160), self.draw(80, 160), torch.empty(3, 80, device=self.device)
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                ops.matmul(new, new_weight, out=new_out)
            print("  a shape that was never called: CAPTURED, which it must not be")
        except pascaline.Error as error:
            print(f"  a shape that was never called: {error}")
        ops.matmul(new, new_weight, out=new_out)
        difference = (new_out.double() - new.double() @ new_weight.double().T).abs().max().item()
        print(f"  and called after that: greatest difference {difference:.1e}")

    # ---- Model ----

    def greedy(self, model, ids, steps):
        import transformers
        cache, chosen, logits = transformers.DynamicCache(), [], []
        out = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        for _ in range(steps):
            logits.append(out.logits[0, -1])
            chosen.append(int(out.logits[0, -1].argmax()))
            out = model(input_ids=torch.tensor([[chosen[-1]]], device=self.device), past_key_values=cache, use_cache=True)
        return chosen, torch.stack(logits)

    def times(self, model, ids):
        import transformers
        cache = transformers.DynamicCache()
        model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        token = ids[:, :1]
        prompt_ms = self.median_ms(lambda: model(input_ids=ids, use_cache=True, logits_to_keep=1))
        step_ms = self.median_ms(lambda: model(input_ids=token, past_key_values=cache, use_cache=True))
        return prompt_ms, step_ms

    def make_model(self, layers):
        import transformers
        fields = json.loads(CONFIG.read_text())
        fields["text_config"]["num_hidden_layers"] = layers
        if layers < 18:  # features of the vision tower go to the first layers of text
            fields["vision_config"]["depth"] = 2
            fields["vision_config"]["deepstack_visual_indexes"] = [0]
        config = transformers.Qwen3VLConfig(**fields)
        config._attn_implementation = "sdpa"
        torch.manual_seed(1)
        begin = time.perf_counter()
        with torch.device(self.device):
            model = transformers.Qwen3VLForConditionalGeneration(config).float().eval()
        print(f"model of {layers} layers, made in {time.perf_counter() - begin:.1f} s")
        return model

    def draw_ids(self, tokens):
        return torch.randint(0, 150000, (tokens,), generator=torch.Generator().manual_seed(3))[None].to(self.device)

    @torch.no_grad()
    def capture_model(self, layers, tokens, file):
        """Writes what a prompt and a step of decoding of the optimized model call as a workload."""
        import transformers
        model, ids = self.make_model(layers), self.draw_ids(tokens)
        tuned.optimize(model)
        cache = transformers.DynamicCache()
        with pascaline.capture() as shapes:
            model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            model(input_ids=ids[:, :1], past_key_values=cache, use_cache=True)
        shapes.write(file, f"A prompt of {tokens} tokens and a step of decoding of Qwen3-VL-2B's text model, by PyTorch.")
        print(f"{file}: {len(shapes.problems)} problems; {tuned.stats()}")

    @torch.no_grad()
    def compare_models(self, layers, tokens, steps):
        model, ids = self.make_model(layers), self.draw_ids(tokens)
        short = ids[:, :64]
        plain_ms = self.times(model, ids)
        plain, logits = self.greedy(model, short, steps)
        report = tuned.optimize(model)
        tuned.reset_stats()
        begin = time.perf_counter()
        found, after = self.greedy(model, short, steps)
        model(input_ids=ids, use_cache=True, logits_to_keep=1)
        self.wait()
        first_s = time.perf_counter() - begin
        tuned_ms = self.times(model, ids)
        same = sum(a == b for a, b in zip(plain, found))
        apart = ((after - logits).norm() / logits.norm()).item()
        reasons = {}
        for _, kind, why in report.kept:
            reasons[f"{kind}: {why}"] = reasons.get(f"{kind}: {why}", 0) + 1
        print(f"  {len(report.replaced)} modules replaced, {len(report.fused)} fused, {len(report.kept)} kept")
        fused = {}
        for _, kind, what in report.fused:
            fused[f"{kind}: {what}"] = fused.get(f"{kind}: {what}", 0) + 1
        for what, count in fused.items():
            print(f"    {count} x {what}")
        for reason, count in sorted(reasons.items(), key=lambda entry: -entry[1]):
            print(f"    {count} x {reason}")
        print(f"  greedy tokens the same: {same} of {len(plain)}, logits apart by {apart:.1e}; first run {first_s:.1f} s")
        for name, before, now in zip([f"prompt of {tokens}", "step of decoding"], plain_ms, tuned_ms):
            print(f"  {name}: {before:.2f} ms plain, {now:.2f} ms optimized, {before / now:.2f} times as fast")
        print(f"  {tuned.stats()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="calls,graphs,model", help="which, with commas between (default: all)")
    parser.add_argument("--layers", type=int, default=28, help="of the text model (default: 28, all)")
    parser.add_argument("--tokens", type=int, default=512, help="of the prompt that is timed (default: 512)")
    parser.add_argument("--steps", type=int, default=32, help="tokens that are chosen greedily (default: 32)")
    parser.add_argument("--db", help="database with winners for the GPU (default: the user's, if there is one)")
    parser.add_argument("--capture", metavar="FILE", help="only write the shapes that the optimized model calls as a workload")
    parser.add_argument("--device", default="cuda", help="cuda (default), cuda:N or cpu")
    options = parser.parse_args()
    warnings.simplefilter("once")
    torch.backends.cuda.matmul.allow_tf32 = False
    if options.db:
        ops.use_database(options.db)
    bench = Bench(options.device)
    where = torch.cuda.get_device_name(options.device) if bench.on_gpu else "processor"
    print(f"{where}, PyTorch {torch.__version__}, pascaline {pascaline.__version__}")
    if options.capture:
        bench.capture_model(options.layers, options.tokens, options.capture)
        return
    parts = {"calls": bench.compare_calls, "graphs": bench.compare_graphs,
             "model": lambda: bench.compare_models(options.layers, options.tokens, options.steps)}
    for part in options.parts.split(","):
        begin = time.perf_counter()
        parts[part]()
        print(f"[{part}: {time.perf_counter() - begin:.1f} s]", flush=True)


if __name__ == "__main__":
    main()
