"""GGUF files against the package gguf: those that it writes are read, and those that `pascaline convert` writes are read by
it; skipped without that package. PASCALINE_PROGRAM names pascaline."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import unittest

    import gguf
    import numpy as np
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/model"))
import make_projector_fixture as fixture  # noqa: E402
from gguf_models import END_TOKEN, KIND, SCALES, TOKENS, add_tokenizer, random_blocks, write_photo, write_texts  # noqa: E402

VOCABULARY = 752
BLOCKS = ("Q8_0", "Q6_K", "Q5_K", "Q5_1", "Q5_0", "Q4_K", "IQ4_NL", "IQ4_XS", "Q4_1", "Q4_0", "MXFP4", "Q3_K", "Q2_K")
BY_WEIGHTS = {"float32": KIND.F32, "float16": KIND.F16, "bfloat16": KIND.BF16, **{name.lower(): KIND[name] for name in BLOCKS}}


def small_config():
    """A Qwen3-VL whose rows are whole blocks of all types."""
    text = {"model_type": "qwen3_vl_text", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 256, "hidden_act": "silu",
            "vocab_size": VOCABULARY, "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "rope_theta": 5e6,
            "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [12, 10, 10]},
            "attention_bias": False, "tie_word_embeddings": True, "eos_token_id": END_TOKEN}
    vision = {"model_type": "qwen3_vl", "hidden_size": 256, "depth": 2, "num_heads": 4, "intermediate_size": 256,
              "hidden_act": "gelu_pytorch_tanh", "in_channels": 3, "patch_size": 4, "temporal_patch_size": 2,
              "spatial_merge_size": 2, "out_hidden_size": 256, "num_position_embeddings": 16,
              "deepstack_visual_indexes": [0]}
    return {"model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"], **TOKENS,
            "tie_word_embeddings": True, "text_config": text, "vision_config": vision}


def write_folder(folder, config, tensors):
    """A model folder with float32 weights."""
    folder.mkdir()
    write_texts(folder, config)
    header, offset = {}, 0
    for name, values in tensors.items():
        size = values.size * 4
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(values.astype("<f4").tobytes())


def read_folder(folder):
    """Its tensors, which are float32."""
    data = (folder / "model.safetensors").read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, tensor in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            assert tensor["dtype"] == "F32", name
            begin, end = (8 + length + at for at in tensor["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(tensor["shape"])
    return tensors


def scaled_frequencies(config):
    """By what Llama 3.1's scaling divides them, as Transformers describes it."""
    rope, slots = config["rope_scaling"], config["head_dim"] // 2
    waves = rope["original_max_position_embeddings"] * config["rope_theta"] ** (-np.arange(slots) / slots) / (2 * np.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    share = np.clip((waves - low) / (high - low), 0, 1)
    return 1 / ((1 - share) / rope["factor"] + share)


class GgufFilesTest(unittest.TestCase):
    def setUp(self):
        self.program = os.environ.get("PASCALINE_PROGRAM")
        if not self.program:
            self.skipTest("PASCALINE_PROGRAM names no program")
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.config = small_config()
        write_photo(self.folder / "photo.png")

    def run_program(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def answer(self, *model):
        return json.loads(self.run_program(
            "generate", "--device", "cpu", "--context", 256, "--prompt", "hello you", "--image",
            self.folder / "photo.png", "-n", 12, "--greedy", "--json", "--model", *model))["tokens"]

    def test_what_convert_writes_is_read_by_the_package(self):
        shapes = fixture.text_shapes(self.config) | fixture.vision_shapes(self.config)
        generator = np.random.default_rng(1)
        tensors = {name: (generator.standard_normal(shape) * 0.05 + (name.endswith("norm.weight"))).astype(np.float32)
                   for name, shape in shapes.items()}
        model = self.folder / "model"
        write_folder(model, self.config, tensors)
        for weights, kind in BY_WEIGHTS.items():
            file, projector = self.folder / f"{weights}.gguf", self.folder / f"mmproj-{weights}.gguf"
            self.run_program("convert", model, file, "--weights", weights)
            wide = self.folder / f"wide_{weights}"
            self.run_program("convert", file, wide, "--mmproj", projector, "--weights", "float32")
            expected = read_folder(wide)
            seen = {}
            kinds = {}
            for path in (file, projector):
                for tensor in gguf.GGUFReader(path).tensors:
                    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
                    seen[tensor.name] = values.reshape(list(reversed(tensor.shape)))
                    kinds[tensor.name] = tensor.tensor_type
            self.assertEqual(kinds["blk.0.ffn_down.weight"], kind)
            self.assertEqual(kinds["blk.1.attn_norm.weight"], KIND.F32)
            names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3VL, 2)
            tower = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, 2)
            found = 0
            for name, values in expected.items():
                stem, end = name.removeprefix("model.").rsplit(".", 1)
                other = (names.get_name(f"model.{stem.removeprefix('language_model.')}.{end}", (".weight",))
                         if "visual" not in name else tower.get_name(f"{stem}.{end}", (".weight", ".bias")))
                if other and values.ndim < 5:
                    np.testing.assert_array_equal(seen[other], values, f"{weights}: {other}")
                    found += 1
            self.assertGreaterEqual(found, 50)
            conv = expected["model.visual.patch_embed.proj.weight"]
            np.testing.assert_array_equal(seen["v.patch_embd.weight"], conv[:, :, 0])
            np.testing.assert_array_equal(seen["v.patch_embd.weight.1"], conv[:, :, 1])
            np.testing.assert_array_equal(seen["mm.2.weight"], expected["model.visual.merger.linear_fc2.weight"])
            np.testing.assert_array_equal(seen["v.deepstack.0.fc1.weight"],
                                          expected["model.visual.deepstack_merger_list.0.linear_fc1.weight"])
            if weights == "float32":
                for name, values in tensors.items():
                    np.testing.assert_array_equal(expected[name], values, name)
            fields = gguf.GGUFReader(file).fields
            self.assertEqual(fields["tokenizer.ggml.pre"].contents(), "qwen2")
            self.assertEqual(fields["qwen3vl.rope.dimension_sections"].contents(), [12, 10, 10, 0])
            fields = gguf.GGUFReader(projector).fields
            self.assertEqual(fields["clip.vision.is_deepstack_layers"].contents(), [True, False])
            self.assertEqual(fields["clip.projector_type"].contents(), "qwen3vl_merger")

    def test_rows_and_frequencies_of_llama_are_those_that_the_package_expects(self):
        text = dict(self.config["text_config"], model_type="llama", architectures=["LlamaForCausalLM"],
                    rms_norm_eps=1e-5, rope_theta=5e5, rope_scaling={
                        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                        "original_max_position_embeddings": 8192})
        shapes = {name.replace("language_model.", ""): shape
                  for name, shape in fixture.text_shapes(self.config).items() if "q_norm" not in name and "k_norm" not in name}
        generator = np.random.default_rng(2)
        tensors = {name: (generator.standard_normal(shape) * 0.05).astype(np.float32) for name, shape in shapes.items()}
        model = self.folder / "model"
        write_folder(model, text, tensors)
        names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, text["num_hidden_layers"])

        def in_turn(values):  # the two halves of each head, as llama.cpp's converter has them
            heads = len(values) // text["head_dim"]
            return values.reshape(heads, 2, text["head_dim"] // 2, -1).swapaxes(1, 2).reshape(values.shape)

        for weights, kind in BY_WEIGHTS.items():
            file, wide = self.folder / f"llama-{weights}.gguf", self.folder / f"llama-wide-{weights}"
            self.run_program("convert", model, file, "--weights", weights)
            self.run_program("convert", file, wide, "--weights", "float32")
            seen = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(
                list(reversed(tensor.shape))) for tensor in gguf.GGUFReader(file).tensors}
            expected = read_folder(wide)
            self.assertEqual(set(expected), set(tensors))
            for name, values in expected.items():
                if weights == "float32":
                    np.testing.assert_array_equal(values, tensors[name], name)
                turned = in_turn(values) if "q_proj" in name or "k_proj" in name else values
                np.testing.assert_array_equal(seen.pop(names.get_name(name, (".weight",))), turned, f"{weights}: {name}")
            factors = seen.pop("rope_freqs.weight")
            self.assertFalse(seen)
            np.testing.assert_allclose(factors, scaled_frequencies(text), rtol=1e-6)
            self.assertEqual(json.loads((wide / "config.json").read_text())["rope_scaling"], text["rope_scaling"])
        fields = gguf.GGUFReader(file).fields
        self.assertEqual(fields["general.architecture"].contents(), "llama")
        self.assertEqual(fields["llama.rope.dimension_count"].contents(), text["head_dim"])

    def test_tokenizers_of_every_splitting_become_files_that_split_alike(self):
        try:
            import tokenizers
        except ImportError:
            self.skipTest("the package tokenizers is not there")
        data = json.loads((ROOT / "tests/model/text/data/gguf_tokenizer.json").read_text())
        size = len(data["tokens"])
        for splitting, encodings in data["encodings"].items():
            file = self.folder / f"{splitting}.gguf"
            writer = gguf.GGUFWriter(file, "qwen3")
            writer.add_block_count(1)
            writer.add_context_length(64)
            writer.add_embedding_length(32)
            writer.add_feed_forward_length(32)
            writer.add_head_count(2)
            writer.add_head_count_kv(1)
            writer.add_key_length(16)
            writer.add_value_length(16)
            writer.add_rope_freq_base(1e6)
            writer.add_layer_norm_rms_eps(1e-6)
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre(splitting)
            writer.add_token_list(data["tokens"])
            writer.add_token_types(data["types"])
            writer.add_token_merges(data["merges"])
            writer.add_bos_token_id(1)
            writer.add_eos_token_id(2)
            layer = {"attn_norm": [32], "attn_q": [32, 32], "attn_k": [16, 32], "attn_v": [16, 32],
                     "attn_output": [32, 32], "attn_q_norm": [16], "attn_k_norm": [16], "ffn_norm": [32],
                     "ffn_gate": [32, 32], "ffn_up": [32, 32], "ffn_down": [32, 32]}
            for name, shape in layer.items():
                writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float32))
            writer.add_tensor("token_embd.weight", np.zeros([size, 32], np.float32))
            writer.add_tensor("output_norm.weight", np.zeros([32], np.float32))
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            folder = self.folder / splitting
            self.run_program("convert", file, folder)
            written = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.assertEqual(written.get_vocab_size(), size - data["types"].count(int(gguf.TokenType.UNUSED)))
            for entry in encodings:
                ids = written.encode(entry["text"], add_special_tokens=False).ids
                self.assertEqual(ids, entry["ids"], f"{splitting}: {entry['text']!r}")
            begins = written.encode("the", add_special_tokens=True).ids[0] == 1
            self.assertEqual(begins, splitting == "llama-bpe")

    def test_what_the_package_writes_computes_as_a_folder_of_the_same_numbers(self):
        for kind in BY_WEIGHTS.values():
            with self.subTest(kind=kind.name):
                self.compare(kind)

    def compare(self, kind):
        generator = np.random.default_rng(int(kind))
        stored, numbers = {}, {}

        def draw(name, shape):
            values = (generator.standard_normal(shape) * 0.05 + name.endswith("norm.weight")).astype(np.float32)
            if len(shape) != 2 or "pos_embed" in name:
                if len(shape) == 5 and kind == KIND.F16:
                    values = values.astype(np.float16).astype(np.float32)
                return values, values
            if kind in SCALES:
                blocks = random_blocks(generator, shape, kind)
                return blocks, gguf.quants.dequantize(blocks, kind)
            return values, gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind)

        text, vision = fixture.text_shapes(self.config), fixture.vision_shapes(self.config)
        for name, shape in (text | vision).items():
            stored[name], numbers[name] = draw(name, shape)

        def kind_of(name, values):
            if values.ndim == 4:
                return kind if kind == KIND.F16 else KIND.F32
            return kind if values.ndim == 2 and "pos_embed" not in name else KIND.F32

        file, projector = self.folder / f"{kind.name}.gguf", self.folder / f"mmproj-{kind.name}.gguf"
        fixture.write_text(file, self.config, {name: stored[name] for name in text}, kind_of, add_tokenizer)
        fixture.write_projector(projector, self.config, {name: stored[name] for name in vision}, kind_of)
        folder = self.folder / kind.name
        write_folder(folder, self.config, {name: values.astype(np.float32) for name, values in numbers.items()})
        as_file = [file, "--mmproj", projector]
        self.assertEqual(self.answer(*as_file, "--weights", "float32"), self.answer(folder, "--weights", "float32"))
        compared = json.loads(self.run_program(
            "validate", "--device", "cpu", "--context", 256, "--json", "--reference", folder, "--weights", "float32",
            "--model", *as_file))
        self.assertLess(abs(compared["kl_mean"]), 1e-9)
        self.assertEqual(compared["top1_agreement"], 1)


if __name__ == "__main__":
    unittest.main()
