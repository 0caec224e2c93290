#!/usr/bin/env python3
"""Writes data/gguf_tokenizer.json: a small vocabulary cut out of SmolLM2's, and the ids that the Python package
tokenizers gives for difficult texts, with it in every known splitting and with the whole vocabulary in its own.

    pip install gguf tokenizers && python3 make_gguf_fixture.py SmolLM2-135M-Instruct.Q4_1.gguf
"""
import json
import pathlib
import sys

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

FIRST_MERGES = 220
ALONE = "xqzj"  # a token that no merges give
USERS = "<think>"
UNUSED = "[PAD0]"

# As the tokenizer.json of Qwen3 and of Llama 3 have them.
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)"
         r"|\s+")
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
# As llama.cpp splits where a file names no splitting of its own.
DEFAULT = [r"[\p{P}\$\+<=>\^~\|]+", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
           r"\p{N}+", r"[0-9][0-9][0-9]"]

KEPT_TEXTS = [
    "The cat sat on the mat, and it's been there for 1234567 days.",
    "I'll say we've DON'T they're I'm he'd 'twas it'S O'Neil's ''s",
]
TEXTS = KEPT_TEXTS + [
    "", " ", "a", "0", "10 200 3000 40000 x1y22z333", "3.14159e-10 0x7fff", "½ ² ٣٤٥ Ⅷ ৩ 一二三", " 7", "a  8  b   9",
    "  two leading", "trailing two  ", "a    b\t\tc\n\n\nd \n e\r\n\r\nf", " " * 100, "\n" * 50, " \t \n" * 20,
    "x" + " " * 63 + "y" + " " * 64 + "7", "a\u00a0b\u3000c\u2003d\u0085e\u2028f\u200bg\ufeffh",
    "漢字かな交じり文、句読点。", "안녕하세요 세계", "שלום עולם مرحبا بالعالم", "नमस्ते दुनिया ไทยไม่มีช่องว่าง",
    "😀😃 👩‍👩‍👧‍👦 🇩🇪 👍🏽 ☃️", "e\u0301 é n\u0303 ñ \u0301 A\u030a Å ﬁ ǅ ß ẞ İ", "𝒳𝓎 𐍈 \U00020000 \U00040000 \U0010ffff",
    "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x13\x14\x16\x1b\x1d\x1f\x7f", "a\x04b th\x06e\x13 cat",
    "a\U00040000b", "\x04", "\x80\u009f\u00ad", "C++ == c && !x || y->z; // <b> $5 + 6 = ~11 ^ |", "don’t ‘quoted’ “text” — …",
    "snake_case camelCase HTTPServer2Go", "https://example.org/a?b=c&d=%20#e", "!!!???...---===***", "\\n \\t \\u0041",
    "'s 't 're 've 'm 'll 'd 'S 'LL 'ſ", "xqzj xqzj1 axqzj xqzjb", "<|im_start|>user\nHi there<|im_end|>\n",
    "a <think>\n b</think> <|endoftext|><|im_start", "def f(x):\n    return x  # 2\n\n\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * 3,
    "thethethethe the the  the", "Übung Ærø Łódź Ελληνικά Привет, мир!", "1️⃣ 2⃣ ①②③",
]


def spelled_bytes():
    """The character that stands for each byte in byte-level vocabularies."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    out, following = {}, 0x100
    for byte in range(256):
        if byte in visible:
            out[byte] = chr(byte)
        else:
            out[byte], following = chr(following), following + 1
    return out


def tokenizer_of(tokens, types, merges, splitting):
    """The tokenizer of these tokens, built from the package's own parts."""
    vocabulary = {token: i for i, token in enumerate(tokens) if types[i] in (1, 3)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    out = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=splitting == "llama-bpe"))
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    with_words = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)

    def split(*patterns):
        return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    if splitting == "qwen2":
        out.normalizer = normalizers.NFC()
    out.pre_tokenizer = pre_tokenizers.Sequence({
        "smollm": [pre_tokenizers.Digits(individual_digits=True), with_words],
        "gpt-2": [with_words],
        "qwen2": split(QWEN2) + [bytes_only],
        "llama-bpe": split(LLAMA3) + [bytes_only],
        "default": split(*DEFAULT) + [bytes_only]}[splitting])
    out.add_special_tokens([AddedToken(t, special=True, normalized=False) for i, t in enumerate(tokens)
                            if types[i] == 3])
    for i, token in enumerate(tokens):
        if types[i] == 4:
            out.add_tokens([AddedToken(token, special=False, normalized=False)])
            assert out.token_to_id(token) == i, "the package numbers added tokens in order"
    return out


def encodings(tokenizer):
    return [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in TEXTS]


def main():
    fields = gguf.GGUFReader(sys.argv[1]).fields
    tokens, types, merges = (fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "token_type", "merges"))
    whole = tokenizer_of(tokens, types, merges, "smollm")
    parents = {}
    for merge in merges:
        parents.setdefault(merge.replace(" ", ""), merge)
    wanted, open_tokens = set(merges[:FIRST_MERGES]), []
    for text in KEPT_TEXTS:
        open_tokens += whole.encode(text, add_special_tokens=False).tokens
    while open_tokens:
        merge = parents.get(open_tokens.pop())
        if merge is not None and merge not in wanted:
            wanted.add(merge)
            open_tokens += merge.split(" ")
    cut_merges = [merge for merge in merges if merge in wanted]
    letters = set(spelled_bytes().values())
    kept = letters | {merge.replace(" ", "") for merge in cut_merges}
    pairs = [(token, kind) for token, kind in zip(tokens, types) if kind == 3 or token in kept]
    pairs += [(ALONE, 1), (USERS, 4), (UNUSED, 5)]
    cut_tokens, cut_types = [token for token, _ in pairs], [kind for _, kind in pairs]
    out = {"tokens": cut_tokens, "types": cut_types, "merges": cut_merges,
           "encodings": {name: encodings(tokenizer_of(cut_tokens, cut_types, cut_merges, name))
                         for name in ("smollm", "gpt-2", "qwen2", "llama-bpe", "default")},
           "smollm2": encodings(whole)}
    path = pathlib.Path(__file__).parent / "data" / "gguf_tokenizer.json"
    path.write_text(json.dumps(out, ensure_ascii=True, separators=(",", ":")).replace("},{", "},\n{") + "\n")
    print(f"{path}: {len(cut_tokens)} tokens, {len(cut_merges)} merges, {len(TEXTS)} texts")


if __name__ == "__main__":
    main()
