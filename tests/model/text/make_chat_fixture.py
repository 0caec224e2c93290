#!/usr/bin/env python3
"""Writes data/chat_templates.json: what Jinja2 renders from the chat templates of known models.

    pip install jinja2 && python3 make_chat_fixture.py FOLDER
FOLDER holds a file NAME.jinja for each name below, as the model's folder or GGUF file has its chat template. The text of
a template goes into the fixture only where its licence is Apache-2.0.
"""
import json
import pathlib
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

# File: our name of the template, and whether its text may be stored.
TEMPLATES = {
    "smollm2": ("smollm2", True), "smollm2_escaped": ("smollm2", True), "Qwen-Qwen3-0.6B": ("qwen3", True),
    "unsloth_qwen3_template": ("qwen3", False), "unsloth_qwen3_instruct_template": ("qwen3", False),
    "Qwen-Qwen3-VL-2B-Instruct": ("qwen3-vl", False), "qwen3_vl_short": ("qwen3-vl", True),
    "chatml": ("chatml", True), "chatml_escaped": ("chatml", True),
    "llama3_a": ("llama3", False), "llama3_a_escaped": ("llama3", False), "llama3_b": ("llama3", False),
    "llama3_b_escaped": ("llama3", False), "unsloth_llama3_template": ("llama3", False),
    "meta-llama-Llama-3.1-8B-Instruct": ("llama3.1", False), "meta-llama-Llama-3.2-3B-Instruct": ("llama3.1", False),
    "meta-llama-Llama-3.3-70B-Instruct": ("llama3.1", False)}

CONVERSATIONS = [
    [("user", "Hi")],
    [("user", " \n\u3000Hi\u00a0there \t\n")],
    [("system", " Be brief.\n"), ("user", "Why?")],
    [("user", "One?"), ("assistant", "\nTwo. "), ("user", "  Three?")],
    [("system", "A"), ("user", "B"), ("assistant", "C"), ("system", " D "), ("user", "E")],
    [("user", "B"), ("assistant", "<think>\nhm\n</think>\n\nC"), ("user", "E")],
    [("system", ""), ("user", " ")],
]

# With images: for templates that read them.
IMAGES = [
    ("system", "Be brief."),
    ("user", [{"type": "text", "text": "\n  What is"}, {"type": "image"}, {"type": "text", "text": " and "},
              {"type": "image"}, {"type": "text", "text": "?\n"}]),
    ("assistant", "A cat."), ("system", "Not read."),
    ("user", [{"type": "image"}, {"type": "text", "text": "So?"}])]


def render(template, conversation):
    return template.render(messages=[{"role": role, "content": words} for role, words in conversation],
                           bos_token="<|begin_of_text|>", add_generation_prompt=True)


def main():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    out = {"conversations": CONVERSATIONS, "texts": [], "rendered": {},
           "images": {"conversation": IMAGES, "rendered": {}}}
    for file, (name, is_stored) in TEMPLATES.items():
        text = (pathlib.Path(sys.argv[1]) / f"{file}.jinja").read_text()
        template = environment.from_string(text)
        rendered = [render(template, conversation) for conversation in CONVERSATIONS]
        assert out["rendered"].setdefault(name, rendered) == rendered, f"{file} renders otherwise than others of {name}"
        if name == "qwen3-vl":
            seen = render(template, IMAGES)
            assert out["images"]["rendered"].setdefault(name, seen) == seen, f"{file} renders images otherwise"
        if is_stored:
            out["texts"].append({"name": name, "text": text})
    path = pathlib.Path(__file__).parent / "data" / "chat_templates.json"
    path.write_text(json.dumps(out, indent=1) + "\n")
    print(f"{path}: {len(TEMPLATES)} templates, {len(out['texts'])} of them with their text")


if __name__ == "__main__":
    main()
