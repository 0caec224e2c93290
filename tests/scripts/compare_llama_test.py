"""bench/compare_llama/run.py with a program that stands in for llama-bench, and the real one on the processor."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import unittest
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/model/checkpoint/data/qwen3_untied.gguf"

LLAMA_BENCH = """#!/usr/bin/env python3
import json, sys
if "-m" not in sys.argv or sys.argv[sys.argv.index("-m") + 1].endswith("damaged.gguf"):
    sys.exit("error: failed to load model")
fast = sys.argv[sys.argv.index("-fa") + 1] == "on"
print(json.dumps([
    {"n_prompt": 8, "n_gen": 0, "n_depth": 0, "avg_ts": 0.5, "stddev_ts": 0.25, "backends": "CUDA"},
    {"n_prompt": 0, "n_gen": 4, "n_depth": 5, "avg_ts": 2.0 if fast else 1.0, "stddev_ts": 0, "backends": "CUDA"}]))
"""


class CompareLlamaTest(unittest.TestCase):
    def compare(self, *arguments):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "pack").mkdir()
            program = folder / "pack/llama-bench"
            program.write_text(LLAMA_BENCH)
            program.chmod(0o755)
            (folder / "pack/BUILD.txt").write_text("package stand-in==1\n")
            (folder / "damaged.gguf").write_bytes(b"GGUF")
            done = subprocess.run(
                [sys.executable, ROOT / "bench/compare_llama/run.py", "--pascaline", os.environ["PASCALINE_PROGRAM"],
                 "--llama", folder / "pack", "--out", folder / "out", "--prompts", "8", "--generated", "4", "--depths",
                 "0", "5", "--repeats", "2", "--device", "cpu", "--image", "0",
                 *[word.replace("FOLDER", name) for word in arguments]],
                capture_output=True, text=True, check=False)
            return done.returncode, json.loads((folder / "out/comparison.json").read_text()), done.stdout

    def test_both_programs_are_compared_test_by_test(self):
        code, result, table = self.compare("--types", "F16", "--model-files", f"F16={MODEL}")
        self.assertEqual((code, result["problems"]), (0, []))
        rows = {row["test"]: row for row in result["rows"]}
        self.assertEqual(set(rows), {"pp8", "tg4", "pp8 @ d5", "tg4 @ d5"})
        self.assertEqual(rows["tg4 @ d5"]["llama_best"]["mean"], 2.0, "the faster of both kinds of attention")
        self.assertIsNone(rows["tg4"]["llama_best"])
        self.assertGreater(rows["tg4"]["untuned"]["mean"], 0)
        self.assertEqual(result["llama_cpp"], ["package stand-in==1"])
        self.assertRegex(table, r"\| F16 \| pp8 \| 0\.5 ± 0\.2 \| [0-9.]+ ± [0-9.]+ \| [0-9.]+× \| — \| — \|")

    def test_what_fails_is_told_and_the_rest_still_done(self):
        code, result, table = self.compare("--types", "Q8_0", "F16", "--model-files", f"F16={MODEL}",
                                           "Q8_0=FOLDER/damaged.gguf")
        self.assertEqual(code, 1)
        self.assertEqual({row["model"] for row in result["rows"]}, {"F16"})
        text = "\n".join(result["problems"])
        self.assertIn("Q8_0: llama-bench -fa on: llama-bench: exit code 1: error: failed to load model", text)
        self.assertIn("Q8_0: pascaline, defaults: pascaline: exit code 1: pascaline: ", text)
        self.assertIn("- failed: Q8_0: llama-bench -fa off", table)

    def test_programs_that_are_not_there_are_told_in_a_line(self):
        program = os.environ["PASCALINE_PROGRAM"]
        with tempfile.TemporaryDirectory() as name:
            for words, told in (
                    (["--pascaline", f"{name}/none", "--llama", name], f"run.py: --pascaline {name}/none: there is no such program\n"),
                    (["--pascaline", program, "--llama", name],
                     f"run.py: --llama {name}: there is no program llama-bench in it: make it with build.sh\n"),
                    (["--pascaline", program, "--llama", program], f"run.py: --llama {program}: ")):
                done = subprocess.run([sys.executable, ROOT / "bench/compare_llama/run.py", *words, "--out", f"{name}/out"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertTrue(done.stderr.startswith(told), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
