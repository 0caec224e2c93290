"""Checks files of winners with a program that stands in for pascaline."""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import unittest
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANT = {"config": {"BLOCK": 32}, "registers": 8, "local_bytes": 0, "local_loads": 0, "local_stores": 0}


class CheckWinnersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "pascaline"
        self.program.write_text("#!/bin/sh\necho '" + json.dumps({"source": "a" * 64, "variants": [VARIANT]}) + "'\n")
        self.program.chmod(0o755)

    def check(self, *options, kernel="gather", source="a" * 64):
        file = self.folder / "winners.json"
        winners = [{"problem": f"{kernel} N=1", "config": "BLOCK=32"}]
        file.write_text(json.dumps({"device": {"sm_count": 1}, "kernels": {kernel: {"source": source}},
                                    "winners": winners}))
        result = subprocess.run([sys.executable, ROOT / "bench/check_winners.py", file, "--pascaline", self.program,
                                 "--jobs", "1", *options], capture_output=True, text=True)
        return result.returncode, result.stdout, result.stderr

    def check_text(self, text):
        file = self.folder / "winners.json"
        file.write_text(text)
        result = subprocess.run([sys.executable, ROOT / "bench/check_winners.py", file, "--pascaline", self.program],
                                capture_output=True, text=True)
        return result.returncode, result.stdout, result.stderr

    def expect_one_line(self, result, *parts):
        code, _, error = result
        self.assertEqual((code, error.count("\n")), (1, 1), error)
        for part in parts:
            self.assertIn(part, error)

    def test_the_source_that_was_tuned_is_fine(self):
        for source in ("a" * 64, "a" * 8):
            code, output, error = self.check(source=source)
            self.assertEqual((code, error), (0, ""), output)

    def test_another_source_is_a_fault_of_the_file(self):
        for source in ("b" * 64, "b" * 8, "a" * 63 + "b"):
            code, output, _ = self.check(source=source)
            self.assertEqual(code, 3, output)
            self.assertIn("gather: tuned with source", output)
            self.assertIn("1 winners, 0 with faults; 1 kernels with another source", output)

    def test_a_later_source_that_gives_the_same_code_is_fine(self):
        kernels = {"gather": {"source": "b" * 64, "same_code": ["c" * 64, "a" * 64]}}
        winner = {"problem": "gather N=1", "config": "BLOCK=32"}
        whole = {"device": {"sm_count": 1}, "kernels": kernels, "winners": [winner]}
        self.assertEqual(self.check_text(json.dumps(whole))[0], 0)
        kernels["gather"]["same_code"].pop()
        self.assertEqual(self.check_text(json.dumps(whole))[0], 3)

    def test_the_beginning_of_a_source_must_tell_something(self):
        for source in ("", "a" * 7):
            self.assertEqual(self.check(source=source)[0], 3)

    def test_configuration_of_another_space(self):
        self.program.write_text(self.program.read_text().replace("32}", "32, \"UNROLL\": 1}"))
        code, output, _ = self.check()
        self.assertEqual(code, 3, output)
        self.assertIn("compiled was BLOCK=32 UNROLL=1", output)

    def test_damaged_files(self):
        winner = {"problem": "gather N=1", "config": "BLOCK=32"}
        kernels = {"gather": {"source": "a" * 64}}
        whole = {"device": {"sm_count": 1}, "kernels": kernels, "winners": [winner]}
        self.assertEqual(self.check_text(json.dumps(whole))[0], 0)
        for damage in ({"device": {}}, {"kernels": {}}, {"kernels": {"gather": {}}}, {"winners": [{}]},
                       {"winners": []}, {"winners": [{"problem": "", "config": ""}]}, {"winners": 3}):
            self.expect_one_line(self.check_text(json.dumps({**whole, **damage})), "winners.json")
        for text in ("", "[]", "{", json.dumps([whole])):
            self.expect_one_line(self.check_text(text), "winners.json")

    def test_kernel_without_winners(self):
        self.expect_one_line(self.check("--kernel", "nosuch"), "'nosuch'", "(it has: gather)")
        self.assertEqual(self.check("--kernel", "gather")[0], 0)

    def test_missing_programs(self):
        self.expect_one_line(self.check("--pascaline", "/nonexistent/pascaline"), "/nonexistent/pascaline")
        missing = ("--nvdisasm", "/nonexistent/nvdisasm")
        self.expect_one_line(self.check(*missing, kernel="matmul"), "/nonexistent/nvdisasm")
        self.assertEqual(self.check(*missing)[0], 0)


if __name__ == "__main__":
    unittest.main()
