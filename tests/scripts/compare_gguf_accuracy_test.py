"""Compares the accuracy of formats with that of the package gguf on the example model; skipped without that package."""
import contextlib
import io
import os
import pathlib
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
SCRIPT = ROOT / "bench/compare_gguf_accuracy.py"
sys.path.insert(0, str(SCRIPT.parent))
import compare_gguf_accuracy as script  # noqa: E402


def result(perplexity, divergence):
    return {"perplexity": perplexity, "kl_mean": divergence}


class CompareGgufAccuracyTest(unittest.TestCase):
    def test_files_come_back_as_they_were_written(self):
        halves = np.array([[1.5, -2.0, 65504.0]], np.float16)
        with tempfile.TemporaryDirectory() as folder:
            like = pathlib.Path(folder) / "like"
            like.mkdir()
            (like / "config.json").write_text("{}")
            (like / "model.safetensors.index.json").write_text("{}")
            script.write_folder(like.with_name("new"), like, {
                "b": ("BF16", [2], [np.array([0x3FC0, 0xC000], np.uint16)]),
                "h": ("F16", [1, 3], [halves[:, :1], halves[:, 1:]]),
                "q": ("U8", [1, 2], [np.array([7, 8], np.uint8)])}, {script.NOTE + "q": "q8_0 [1, 2]"})
            self.assertEqual(sorted(os.listdir(like.with_name("new"))), ["config.json", "model.safetensors"])
            tensors = script.read_folder(like.with_name("new"))
            self.assertEqual([list(values) for values in script.numbers_of(tensors["b"])], [[1.5, -2.0]])
            self.assertEqual([list(values) for values in script.numbers_of(tensors["h"])], [[1.5, -2.0, 65504.0]])
            self.assertEqual(script.noted(tensors["q"]), ("q8_0", [1, 2]))
            self.assertEqual(list(tensors["q"].data), [7, 8])
            with self.assertRaisesRegex(SystemExit, "b: its values are not as many as its shape says"):
                script.write_folder(like.with_name("bad"), like, {"b": ("F32", [2], [halves])}, {})

    def test_rows_are_filled_up_to_whole_blocks(self):
        values = np.linspace(-1, 1, 3 * 40, dtype=np.float32).reshape(3, 40)
        stored = script.Stored("F32", [3, 40], values.reshape(-1).view(np.uint8), None)
        kind = gguf.GGMLQuantizationType.Q8_0
        blocks = np.concatenate(list(script.quantized_by_gguf(stored, kind, [3, 40])))
        self.assertEqual(blocks.shape, (3, 2 * 34))
        rounded = np.concatenate(list(script.dequantized_by_gguf([blocks], kind, [3, 40])))
        self.assertEqual(rounded.shape, (3, 40))
        self.assertLessEqual(np.abs(rounded - values).max(), 0.51 / 127)
        self.assertGreater(np.abs(rounded - values).max(), 0)

    def test_findings_are_beyond_the_limit(self):
        def findings(readers, own_run):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                good = script.print_findings(
                    {"q8_0": script.Measured(result(10, 0.01), result(10, 0.0099), None, own_run, readers)}, 1)
            return good, out.getvalue()

        self.assertEqual(findings(0, result(10.05, 0.01005))[0], True)
        self.assertNotIn("more than", findings(0, result(10.05, 0.01005))[1])
        self.assertIn("q8_0 as run is more than 1 % from gguf in float32: in all +0.500 % of perplexity and +5.0 % of "
                      "KL; weights +0.000 % of perplexity and -1.0 % of KL; activations +0.500 % of perplexity and "
                      "+6.1 % of KL.", findings(0, result(10.05, 0.0105))[1])
        self.assertIn("+2.000 % of perplexity", findings(0, result(10.2, 0.01))[1])
        good, text = findings(1e-9, result(10, 0.01))
        self.assertFalse(good)
        self.assertIn("otherwise in q8_0.", text)

    def test_the_example_model(self):
        program = os.environ.get("PASCALINE_PROGRAM")
        if not program:
            self.skipTest("PASCALINE_PROGRAM names no program")
        words = [sys.executable, SCRIPT, ROOT / "examples/tiny_qwen3_vl", "--text", ROOT / "README.md", "--tokens",
                 "200", "--window", "100", "--build", pathlib.Path(program).parent]
        done = subprocess.run([*words, "--formats", "q4_0,q6_k,int4"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("200 tokens in windows of 100; perplexity in float32 ", done.stdout)
        self.assertIn("- gguf reads Pascaline's blocks of q4_0, q6_k as Pascaline does: divergence 0.", done.stdout)
        rows = [line.split("|")[2:-1] for line in done.stdout.splitlines() if line.startswith("| q4_0 ")]
        self.assertEqual(len(rows), 2)
        for row in rows:
            theirs, own = float(row[1]), float(row[3])
            self.assertGreater(own, 0)
            self.assertLess(abs(own / theirs - 1), 0.5, "formats of the same bits")
            self.assertNotEqual(own, theirs, "scales are searched for here")
        unknown = subprocess.run([*words, "--formats", "q5_0"], capture_output=True, text=True)
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("q5_0 is none of int8, q8_0", unknown.stderr)


if __name__ == "__main__":
    unittest.main()
