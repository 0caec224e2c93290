"""bench/compare_gguf.py with a small model: files and folders that it writes compute the same, and a difference is told;
skipped without the package gguf. PASCALINE_PROGRAM names pascaline; compare_models is in PASCALINE_BUILD_FOLDER where
benchmarks are built."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

try:
    import unittest

    import gguf
    import numpy  # noqa: F401
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import compare_gguf  # noqa: E402
import gguf_files_test  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("PASCALINE_BUILD_FOLDER", ".")) / "bin"


def small_config(_options):
    return gguf_files_test.small_config()


class CompareGgufTest(unittest.TestCase):
    def test_files_and_folders_answer_alike(self):
        program = os.environ.get("PASCALINE_PROGRAM")
        if not program:
            self.skipTest("PASCALINE_PROGRAM names no program")
        config = gguf_files_test.small_config()
        shapes = compare_gguf.fixture.text_shapes(config) | compare_gguf.fixture.vision_shapes(config)
        for name in ("BF16", "Q8_0", "Q5_1", "Q4_K", "Q5_K"):
            with self.subTest(type=name), tempfile.TemporaryDirectory() as temporary:
                folder, kind = pathlib.Path(temporary), gguf.GGMLQuantizationType[name]
                kinds = {of: (tuple(shape), compare_gguf.kind_of(of, shape, kind)) for of, shape in shapes.items()}
                file = compare_gguf.write_folders(folder / "stored", folder / "numbers", config, kinds, 2)
                compare_gguf.write_files(folder / "text.gguf", folder / "mmproj.gguf", config, kinds, file)
                compare_gguf.models.write_photo(folder / "photo.png")

                def answer(*model, folder=folder):
                    done = subprocess.run(
                        [program, "generate", "--device", "cpu", "--context", "256", "--prompt", "hello you", "--image",
                         folder / "photo.png", "-n", "12", "--greedy", "--json", "--model", *model],
                        capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    return json.loads(done.stdout)["tokens"]

                files = [folder / "text.gguf", "--mmproj", folder / "mmproj.gguf"]
                wide = ["--weights", "float32"]
                self.assertEqual(answer(*files, *wide), answer(folder / "numbers", *wide))
                self.assertEqual(answer(*files), answer(folder / "stored"))

    def compare(self, *words):
        """Exit code, printed text and results of the script with a small model."""
        if not (PROGRAMS / "compare_models").exists():
            self.skipTest("compare_models is not built")
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "results.json"
            argv = ["compare_gguf.py", "--device", "cpu", "--build", str(PROGRAMS), "--image", "40x24", "--tokens", "4",
                    "--context", "512", "--processes", "2", "--folder", folder, "--json", str(results), *words]
            out, errors = io.StringIO(), io.StringIO()
            with (mock.patch.object(sys, "argv", argv), mock.patch.object(compare_gguf, "config_of", small_config),
                  contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors)):
                code = compare_gguf.main()
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), ["results.json"])
            return code, out.getvalue() + errors.getvalue(), json.loads(results.read_text())

    def test_every_type_is_the_same_number_by_number(self):
        code, text, rows = self.compare()
        self.assertEqual(code, 0, text)
        self.assertEqual([row["kind"] for row in rows if row["comparison"] == "in float32"], list(compare_gguf.TYPES))
        self.assertEqual(len(rows), 2 * len(compare_gguf.TYPES) - 2)
        for row in rows:
            self.assertEqual([part["relative_l2"] for part in row["result"]["parts"]], [0, 0], row["kind"])

    def test_a_byte_that_differs_is_told(self):
        write_files = compare_gguf.write_files

        def write_wrongly(text, *others):
            write_files(text, *others)
            with open(text, "r+b") as file:
                file.seek(-100, os.SEEK_END)
                byte = file.read(1)[0]
                file.seek(-100, os.SEEK_END)
                file.write(bytes([byte ^ 0x3F]))

        with mock.patch.object(compare_gguf, "write_files", write_wrongly):
            code, text, rows = self.compare("--types", "Q8_0")
        self.assertEqual(code, 1, text)
        self.assertIn("beyond the limit", text)
        self.assertGreater(rows[0]["result"]["parts"][0]["relative_l2"], 1e-6)

    def test_a_type_that_fails_leaves_the_others(self):
        with mock.patch.dict(compare_gguf.models.SCALES, clear=True):  # which gguf cannot quantize itself
            code, text, rows = self.compare("--types", "Q4_K", "Q4_0", "--weights", "stored")
        self.assertEqual(code, 1, text)
        self.assertIn("Q4_K failed", text)
        self.assertEqual([row["kind"] for row in rows], ["Q4_0"])


if __name__ == "__main__":
    unittest.main()
