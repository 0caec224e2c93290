#!/usr/bin/env python3
"""Trains a small Qwen3 text model on documentation installed on this machine, for measuring what quantization costs.

Random weights say little of that: trained ones have outliers, and their logits are far from uniform. Minutes on a GPU
give a model whose perplexity a format of weights can spoil. What it learns is README files and the docstrings of
Python's own library and of the packages beside it; what it says is of no use to anyone.

The folder is one that Pascaline loads: config.json, model.safetensors (bfloat16, as checkpoints of this family are),
tokenizer.json (byte-level BPE, trained here), tokenizer_config.json, generation_config.json; and beside them
held_out.txt, documents that were not trained on, and reference.safetensors, the logits that PyTorch computes in float32
for the beginning of it.

  bench/train_sample_model.py sample --minutes 5
  pascaline validate --model sample --reference sample/reference.safetensors --device cpu
  pascaline validate --model sample --text sample/held_out.txt --device cpu --weights int8

Needs torch, tokenizers and safetensors. The same texts, options and machine give much the same model, not the same
bits.
"""
import argparse
import ast
import gzip
import hashlib
import json
import math
import pathlib
import site
import sysconfig
import time
import warnings

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from torch.nn import functional

END, TURN, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = [END, TURN, TURN_END]
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
           r"\s+(?!\S)|\s+")
CHAT = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
        "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
EPSILON, THETA = 1e-6, 10000.0
SHORTEST, LONGEST = 200, 200_000  # characters of a document
HELD_OUT = 50  # one document in so many


# ---- texts

def python_docstrings(path):
    """The docstrings of a Python source, as one text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    return "\n\n".join(text for text in texts if text)


def document_of(path):
    """What a file says to a reader, or nothing."""
    try:
        if path.suffix == ".py":
            return python_docstrings(path)
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as file:
                return file.read(LONGEST)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError, EOFError):
        return ""


def is_document(path):
    name = path.name.lower()
    return path.suffix in (".py", ".md", ".rst", ".txt") or name.startswith(("readme", "news", "changelog"))


def documents(folders, most):
    """Different texts from the folders, of `most` characters together at most, in an order that mixes them."""
    paths = sorted({path for folder in folders for path in pathlib.Path(folder).rglob("*")
                    if path.is_file() and is_document(path)},
                   key=lambda path: hashlib.sha256(str(path).encode()).digest())
    seen, texts, size = set(), [], 0
    for path in paths:
        text = document_of(path)[:LONGEST].strip()
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        if len(text) < SHORTEST or digest in seen or "\0" in text:
            continue
        seen.add(digest)
        texts.append(text)
        size += len(text)
        if size >= most:
            break
    return texts


def usual_folders():
    """Python's own library, the packages installed for it, and the system's documentation."""
    paths = sysconfig.get_paths()
    folders = [paths["stdlib"], paths["purelib"], paths["platlib"], *site.getsitepackages(), "/usr/share/doc"]
    return [folder for folder in dict.fromkeys(folders) if pathlib.Path(folder).is_dir()]


# ---- tokenizer

def train_tokenizer(texts, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode_all(tokenizer, texts):
    """The tokens of all texts, each followed by the token that ends one."""
    end = tokenizer.token_to_id(END)
    return torch.tensor([token for part in tokenizer.encode_batch(texts) for token in [*part.ids, end]],
                        dtype=torch.int32)


# ---- model, with the names of Hugging Face Transformers

class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON) * self.weight).to(x.dtype)


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.heads, self.kv_heads, self.dim = sizes.heads, sizes.kv_heads, sizes.head_dim
        self.q_proj = linear(sizes.hidden, self.heads * self.dim)
        self.k_proj = linear(sizes.hidden, self.kv_heads * self.dim)
        self.v_proj = linear(sizes.hidden, self.kv_heads * self.dim)
        self.o_proj = linear(self.heads * self.dim, sizes.hidden)
        self.q_norm, self.k_norm = Norm(self.dim), Norm(self.dim)

    def forward(self, x, turn):
        batch, length, _ = x.shape

        def split(values, heads):
            return values.view(batch, length, heads, self.dim).transpose(1, 2)

        group = self.heads // self.kv_heads
        q = turn(self.q_norm(split(self.q_proj(x), self.heads)))
        k = turn(self.k_norm(split(self.k_proj(x), self.kv_heads))).repeat_interleave(group, 1)
        v = split(self.v_proj(x), self.kv_heads).repeat_interleave(group, 1)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.gate_proj = linear(sizes.hidden, sizes.intermediate)
        self.up_proj = linear(sizes.hidden, sizes.intermediate)
        self.down_proj = linear(sizes.intermediate, sizes.hidden)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(sizes.hidden), Norm(sizes.hidden)
        self.self_attn, self.mlp = Attention(sizes), Mlp(sizes)

    def forward(self, x, turn):
        x = x + self.self_attn(self.input_layernorm(x), turn)
        return x + self.mlp(self.post_attention_layernorm(x))


class Qwen3(nn.Module):
    """The decoder, whose head is its embedding."""

    def __init__(self, sizes):
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = Norm(sizes.hidden)
        rates = THETA ** (-torch.arange(0, sizes.head_dim, 2) / sizes.head_dim)
        angles = torch.outer(torch.arange(sizes.context), rates)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * sizes.layers) if deep else 0.02)

    def forward(self, tokens):
        length = tokens.shape[1]
        cosines, sines = self.cosines[:length], self.sines[:length]

        def turn(x):
            low, high = x.float().chunk(2, -1)
            return torch.cat((low * cosines - high * sines, high * cosines + low * sines), -1).to(x.dtype)

        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, turn)
        return functional.linear(self.norm(x), self.embed_tokens.weight)


# ---- training

def autocast(device):
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def drawn_batch(tokens, sizes, generator, device):
    starts = torch.randint(len(tokens) - sizes.context - 1, (sizes.batch,), generator=generator).tolist()
    rows = torch.stack([tokens[start:start + sizes.context + 1] for start in starts]).to(device).long()
    return rows[:, :-1], rows[:, 1:]


def train(model, tokens, options, device):
    """AdamW; the rate rises for a hundredth of the time or steps, and falls as a cosine does to a tenth."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=options.rate, betas=(0.9, 0.95))
    generator = torch.Generator().manual_seed(options.seed)
    begin = shown = time.monotonic()
    step, done = 0, 0.0
    while done < 1:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1, (done + 0.001) / 0.01) * (0.55 + 0.45 * math.cos(math.pi * done))
        inputs, targets = drawn_batch(tokens, options, generator, device)
        with autocast(device):
            loss = functional.cross_entropy(model(inputs).float().flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        now = time.monotonic()
        done = step / options.steps if options.steps else (now - begin) / (60 * options.minutes)
        if now - shown > 10 or done >= 1:
            shown = now
            print(f"step {step}, {now - begin:.0f} s: loss {loss.item():.3f} nats per token", flush=True)


@torch.no_grad()
def held_out_loss(model, tokens, options, device):
    """Mean loss over windows of the context, at most 64 of them."""
    losses = []
    for start in range(0, min(len(tokens) - options.context - 1, 64 * options.context), options.context):
        row = tokens[start:start + options.context + 1].to(device).long()
        losses.append(functional.cross_entropy(model(row[None, :-1])[0], row[1:]).item())
    return sum(losses) / len(losses) if losses else math.nan


# ---- the folder

def write_json(path, content):
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_settings(folder, tokenizer, options):
    turn_end, end = tokenizer.token_to_id(TURN_END), tokenizer.token_to_id(END)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", {"chat_template": CHAT, "eos_token": TURN_END})
    write_json(folder / "generation_config.json", {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8,
                                                   "eos_token_id": [turn_end, end]})
    write_json(folder / "config.json", {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": options.hidden,
        "num_hidden_layers": options.layers, "num_attention_heads": options.heads,
        "num_key_value_heads": options.kv_heads, "head_dim": options.head_dim,
        "intermediate_size": options.intermediate, "hidden_act": "silu", "vocab_size": options.vocabulary,
        "max_position_embeddings": options.context, "rms_norm_eps": EPSILON, "rope_theta": THETA, "rope_scaling": None,
        "attention_bias": False, "tie_word_embeddings": True, "use_sliding_window": False, "eos_token_id": end,
        "dtype": "bfloat16"})


@torch.no_grad()
def write_reference(folder, model, tokens, device):
    """In the format of `pascaline validate`."""
    logits = model(tokens.to(device).long()[None])[0].float().cpu()
    save_file({"input_ids": tokens.to(torch.int32).contiguous(), "logits": logits.contiguous()},
              str(folder / "reference.safetensors"))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the model goes; made if it is not there")
    parser.add_argument("--minutes", type=float, default=5, help="how long to train (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="train for so many steps instead")
    parser.add_argument("--text", action="append", help="folder of texts, repeatable (default: installed docs)")
    parser.add_argument("--megabytes", type=float, default=128, help="of text at most (default: %(default)s)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    sizes = (("hidden", 512), ("layers", 8), ("heads", 8), ("kv-heads", 4), ("head-dim", 64), ("intermediate", 1536),
             ("vocabulary", 4096), ("context", 1024), ("batch", 32), ("seed", 1))
    for name, value in sizes:
        parser.add_argument(f"--{name}", type=int, default=value, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=1e-3, help="highest learning rate (default: %(default)s)")
    options = parser.parse_args()
    if options.heads % options.kv_heads != 0:
        parser.error("--heads must be a multiple of --kv-heads")
    return options


def main():
    options = parsed()
    device = torch.device(options.device)
    torch.manual_seed(options.seed)
    texts = documents(options.text or usual_folders(), options.megabytes * 1e6)
    if len(texts) < 2 * HELD_OUT:
        raise SystemExit(f"only {len(texts)} documents were found; name folders with more by --text")
    kept, trained = texts[::HELD_OUT], [text for i, text in enumerate(texts) if i % HELD_OUT != 0]
    print(f"{len(texts)} documents, {sum(map(len, texts)) / 1e6:.1f} million characters", flush=True)
    tokenizer = train_tokenizer(trained, options.vocabulary)
    if tokenizer.get_vocab_size() != options.vocabulary:
        raise SystemExit(f"the texts give {tokenizer.get_vocab_size()} tokens; choose a smaller --vocabulary")
    tokens, unseen = encode_all(tokenizer, trained), encode_all(tokenizer, kept)
    if len(tokens) < 2 * options.context:
        raise SystemExit(f"the texts have only {len(tokens)} tokens; name folders with more by --text")
    model = Qwen3(options).to(device)
    print(f"{sum(parameter.numel() for parameter in model.parameters()) / 1e6:.1f} million parameters, "
          f"{len(tokens) / 1e6:.1f} million tokens", flush=True)
    train(model, tokens, options, device)

    options.folder.mkdir(parents=True, exist_ok=True)
    weights = {f"model.{name}": value.detach().to(torch.bfloat16).cpu().contiguous()
               for name, value in model.named_parameters()}
    save_file(weights, str(options.folder / "model.safetensors"))
    model.load_state_dict({name: value.to(torch.bfloat16).float() for name, value in model.state_dict().items()})
    write_settings(options.folder, tokenizer, options)
    (options.folder / "held_out.txt").write_text("\n\n".join(kept) + "\n", encoding="utf-8")
    write_reference(options.folder, model, unseen[:min(256, options.context)], device)
    loss = held_out_loss(model, unseen, options, device)
    print(f"held out: {loss:.3f} nats per token, perplexity {math.exp(loss):.1f}; {options.folder}")


if __name__ == "__main__":
    main()
