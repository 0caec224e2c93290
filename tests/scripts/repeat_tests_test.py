"""Repeats tests of a build folder that is made up, as CTest would find it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import unittest
except ImportError:
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = """
add_test(good true)
add_test(bad false)
add_test(missing /nonexistent/program)
add_test(skips sh -c "exit 77")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
add_test(says_so sh -c "echo skipped")
set_tests_properties(says_so PROPERTIES SKIP_REGULAR_EXPRESSION skipped)
add_test(many sh -c "printf '[  FAILED  ] Suite.Case (1 ms)\\n[  FAILED  ] All/Other.Case/3, where GetParam() = 3\\n'; false")
add_test(off true)
set_tests_properties(off PROPERTIES DISABLED TRUE)
"""


@unittest.skipUnless(shutil.which("ctest"), "there is no ctest")
class RepeatTestsTest(unittest.TestCase):
    def repeat(self, only):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "CTestTestfile.cmake").write_text(TESTS)
            result = subprocess.run([sys.executable, ROOT / "tests/robustness/repeat_tests.py", folder, "--times", "2",
                                     "--parallel", "1", "--load", "0", "--keep", folder, "--only", only],
                                    capture_output=True, text=True)
        return result.returncode, result.stdout

    def test_tests_that_pass_or_skip_themselves_are_no_failures(self):
        code, out = self.repeat("good|skips|says_so|off")
        self.assertEqual(code, 0, out)
        self.assertIn("2 tests in 2 runs, 0 failures of 0 tests, 6 skipped", out)

    def test_a_program_that_is_missing_is_a_failure(self):
        code, out = self.repeat("good|missing")
        self.assertEqual(code, 1, out)
        self.assertIn("2 tests in 2 runs, 2 failures of 1 tests, 0 skipped", out)
        self.assertIn("missing: Unable to find executable", out)

    def test_a_test_that_fails_is_one(self):
        code, out = self.repeat("good|bad")
        self.assertEqual(code, 1, out)
        self.assertIn("4 tests in 2 runs, 2 failures of 1 tests", out)

    def test_of_a_program_with_one_entry_the_cases_are_named(self):
        code, out = self.repeat("many")
        self.assertEqual(code, 1, out)
        self.assertIn("2 of 2  many: Suite.Case  (runs 1, 2)", out)
        self.assertIn("2 of 2  many: All/Other.Case/3  (runs 1, 2)", out)

    def test_no_test_at_all_is_no_success(self):
        for only in ("a-typing-error", "skips"):
            code, out = self.repeat(only)
            self.assertEqual(code, 1, out)
            self.assertIn("no test ran", out)


if __name__ == "__main__":
    unittest.main()
