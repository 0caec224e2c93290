#!/usr/bin/env python3
"""The files of examples/tiny_qwen3_vl are what its script writes."""

import os
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "tiny_qwen3_vl")


def content(path):
    with open(path, "rb") as file:
        return file.read()


class TinyModel(unittest.TestCase):
    def test_files_are_what_the_script_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, os.path.join(FOLDER, "make_model.py"), folder], check=True)
            written = sorted(os.listdir(folder))
            kept = sorted(name for name in os.listdir(FOLDER) if name != "make_model.py")
            self.assertEqual(written, kept)
            for name in written:
                self.assertEqual(content(os.path.join(folder, name)), content(os.path.join(FOLDER, name)), name)


if __name__ == "__main__":
    unittest.main()
