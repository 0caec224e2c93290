#!/usr/bin/env python3
"""Records what Hugging Face Transformers computes with a text model in a GGUF file, for `pascaline validate`.

Transformers dequantizes the file's weights, to float32, and computes in float32. What is recorded: the logits after each
of the first tokens of a text, and of the tokens that greedy decoding continues them with, one by one. With --question it
is a conversation's first turn instead of a text. Needs the packages torch, transformers and gguf.

  bench/gguf_reference.py model.gguf --text docs/design.md --tokens 256 -o reference.safetensors
  pascaline validate --model model.gguf --reference reference.safetensors --weights float32 --device cpu
"""

import argparse
import pathlib

import safetensors.torch
import torch
import transformers


def prompt_of(tokenizer, options):
    if options.question:
        messages = [{"role": "user", "content": options.question}]
        return tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    return tokenizer.encode(options.text.read_text(), add_special_tokens=False)[:options.tokens]


def record(model, prompt, count):
    with torch.no_grad():
        cache = transformers.DynamicCache()
        logits = model(input_ids=torch.tensor([prompt]), past_key_values=cache, use_cache=True).logits[0]
        last, decoded, steps = logits[-1], [], []
        for _ in range(count):
            decoded.append(int(last.argmax()))
            last = model(input_ids=torch.tensor([decoded[-1:]]), past_key_values=cache, use_cache=True).logits[0, -1]
            steps.append(last)
    return {"input_ids": torch.tensor(prompt, dtype=torch.int32), "logits": logits.contiguous(),
            "decode_ids": torch.tensor(decoded, dtype=torch.int32), "decode_logits": torch.stack(steps)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="GGUF file with its tokenizer")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", type=pathlib.Path)
    source.add_argument("--question")
    parser.add_argument("--tokens", type=int, default=256, help="of the text (default: 256)")
    parser.add_argument("--decode", type=int, default=64, help="tokens that are decoded (default: 64)")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()

    where = {"pretrained_model_name_or_path": options.model.resolve().parent, "gguf_file": options.model.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
    recorded = record(model, prompt_of(tokenizer, options), options.decode)
    safetensors.torch.save_file(recorded, options.output)
    print(f"PyTorch {torch.__version__}, Transformers {transformers.__version__}; {len(recorded['input_ids'])} tokens")
    print(tokenizer.decode(recorded["decode_ids"]))


main()
