#!/usr/bin/env python3
"""Writes the Llama models of the tests, and what Hugging Face Transformers computes with them.

llama_scaled: a folder's config.json, with the frequencies of rotary embedding scaled as Llama 3.1's, and the same model
as llama_scaled.gguf, written by the package `gguf` with queries and keys in the order of llama.cpp's converter. The
weights are hashes of their names and places, as `hash_weights` of the runtime draws them. llama_small.gguf: a model of
SmolLM2's form in Q4_1 and Q8_0 with a small tokenizer and SmolLM2's chat template; what is recorded is computed by
Transformers from that file. References are in the format of `pascaline validate`.

  tests/model/make_llama_fixture.py tests/model/checkpoint/data tests/model/text/data/chat_templates.json
"""

import json
import math
import pathlib
import sys

import gguf
import numpy
import torch
import transformers

from make_qwen3_fixture import hashed, record

Q4_1, Q8_0 = gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0
F16, BF16, F32 = gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16, gguf.GGMLQuantizationType.F32
FACTOR, LOW, HIGH, TRAINED = 8.0, 1.0, 4.0, 64
THETA = 10000.0
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = [("h", "e"), ("l", "l"), ("Ġ", "t"), ("Ġt", "he"), ("he", "ll"), ("hell", "o")]


def make_model(vocabulary, tied, epsilon, rope):
    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=96, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3,
        num_key_value_heads=1, head_dim=32, max_position_embeddings=512, rms_norm_eps=epsilon, tie_word_embeddings=tied,
        rope_parameters={"rope_theta": THETA, **rope}, bos_token_id=1, eos_token_id=2)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(hashed(name, parameter.numel()).reshape(parameter.shape))
    return model


# As convert_hf_to_gguf.py: the two halves of each head in turn.
def permute(values, heads):
    rows = values.shape[0]
    return values.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(values.shape)


def byte_tokens():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def add_tokenizer(writer, template):
    tokens = SPECIAL + byte_tokens() + [a + b for a, b in MERGES]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL for token in tokens])
    writer.add_token_merges([f"{a} {b}" for a, b in MERGES])
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(True)
    writer.add_chat_template(template)
    return len(tokens)


def write_gguf(model, file, matrix_types, factors=None, template=None):
    config = model.config
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("Llama of the tests")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(THETA)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_eos_token_id(config.eos_token_id)
    if template:
        add_tokenizer(writer, template)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for number, (name, tensor) in enumerate(sorted(model.named_parameters())):
        values = tensor.detach().float().numpy()
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in name:
                values = permute(values, heads)
        kind = F32 if values.ndim == 1 else matrix_types(name, number)
        writer.add_tensor(names.get_name(name, (".weight",)), gguf.quants.quantize(values, kind), raw_dtype=kind)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", numpy.array(factors, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# What convert_hf_to_gguf.py stores of Llama 3.1's scaling.
def llama3_factors(slots):
    factors = []
    for slot in range(slots):
        wave = 2 * math.pi * THETA ** (slot / slots)
        if wave < TRAINED / HIGH:
            factors.append(1.0)
        elif wave > TRAINED / LOW:
            factors.append(FACTOR)
        else:
            smooth = (TRAINED / wave - LOW) / (HIGH - LOW)
            factors.append(1 / ((1 - smooth) / FACTOR + smooth))
    return factors


def write_scaled(folder):
    model = make_model(128, False, 0.002, {"rope_type": "llama3", "factor": FACTOR, "low_freq_factor": LOW,
                                           "high_freq_factor": HIGH, "original_max_position_embeddings": TRAINED})
    name = folder / "llama_scaled"
    name.mkdir(exist_ok=True)
    model.config.save_pretrained(name)
    write_gguf(model, folder / "llama_scaled.gguf", lambda _, number: (F16, BF16)[number % 2],
               factors=llama3_factors(model.config.head_dim // 2))
    record(model, name / "reference.safetensors", PROMPT, DECODED)


def write_small(folder, template):
    file = folder / "llama_small.gguf"
    model = make_model(len(SPECIAL) + 256 + len(MERGES), True, 1e-5, {"rope_type": "default"})
    write_gguf(model, file, lambda name, _: Q8_0 if "embed" in name else Q4_1, template=template)
    read = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name, dtype=torch.float32)
    record(read.eval(), folder / "llama_small.safetensors", PROMPT, DECODED)


PROMPT = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 100, 7]
DECODED = [100, 20, 44]


def main():
    folder = pathlib.Path(sys.argv[1])
    templates = {text["name"]: text["text"] for text in json.loads(pathlib.Path(sys.argv[2]).read_text())["texts"]}
    write_scaled(folder)
    write_small(folder, templates["smollm2"])
    print(f"PyTorch {torch.__version__}, Transformers {transformers.__version__}, gguf {gguf.__file__}")


if __name__ == "__main__":
    main()
