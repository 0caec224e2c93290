"""Every case of every test program that is built is run by exactly one entry of CTest."""
import collections
import json
import os
import subprocess
import sys

try:
    import unittest
except ImportError:
    sys.exit(77)

BUILD = os.environ.get("PASCALINE_BUILD_FOLDER", "")
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}


def cases(program, *arguments):
    listed = subprocess.run([program, "--gtest_list_tests", *arguments], capture_output=True, text=True, check=True,
                            env=ENVIRONMENT).stdout
    suite, found = "", []
    for line in listed.splitlines():
        line = line.split("#")[0].rstrip()
        if line.endswith(".") and not line.startswith(" "):
            suite = line
        elif line.startswith("  ") and suite:
            found.append(suite + line.strip())
    return found


@unittest.skipUnless(BUILD, "PASCALINE_BUILD_FOLDER is not set")
class TestEntriesTest(unittest.TestCase):
    def test_every_case_has_one_entry(self):
        shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True)
        entries = collections.defaultdict(collections.Counter)
        for test in json.loads(shown.stdout)["tests"]:
            program, *arguments = test.get("command") or [""]
            filters = [argument for argument in arguments if argument.startswith("--gtest_filter=")]
            if filters and os.path.exists(program):
                # An entry of one case names it; only the others have to be asked what they run.
                one = filters[0].removeprefix("--gtest_filter=")
                entries[program].update([one] if not set("*:-?") & set(one) else cases(program, *filters))
        self.assertTrue(entries, "no test program is built")
        for program, runs in entries.items():
            with self.subTest(os.path.basename(program)):
                self.assertEqual(dict(runs), dict.fromkeys(cases(program), 1))


if __name__ == "__main__":
    unittest.main()
