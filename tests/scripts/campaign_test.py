"""What the campaign makes of parts that skip, fail and break, with parts that stand in for its own."""
import argparse
import contextlib
import io
import pathlib
import sys
import tempfile

try:
    import unittest
except ImportError:
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/robustness"))
import campaign  # noqa: E402, ends with 77 where there is no sqlite3
from workbench import Failure, Skipped  # noqa: E402


class Part:
    name = "part"
    title = "a part"
    counts = {"short": 4, "long": 4}

    def __init__(self, prepared=None, cases=()):
        self.prepared = prepared
        self.cases = cases

    def prepare(self, bench):
        if self.prepared:
            raise self.prepared

    def case(self, bench, random, tally):
        if fault := self.cases[bench.number]:
            raise fault


class CampaignTest(unittest.TestCase):
    def run_part(self, part):
        with tempfile.TemporaryDirectory() as folder:
            options = argparse.Namespace(folder=folder, count=None, short=True, jobs=2, first=0, seed="1")
            settings = campaign.Settings(sys.executable, folder, 60, 2048)
            self.printed = io.StringIO()
            with contextlib.redirect_stdout(self.printed):
                result = campaign.run_part(part, settings, options)
                campaign.print_table([result])
            return result

    def test_skipped_cases_are_not_tried(self):
        result = self.run_part(Part(cases=(None, Skipped("no room"), None, Skipped("no room"))))
        self.assertEqual((result.tried, result.skips, result.failures), (2, 2, []))
        self.assertIn("| a part | 2 | 0 | 2 |", self.printed.getvalue())
        self.assertEqual(campaign.exit_code([result]), 0, "something was tried")

    def test_nothing_tried_is_told_apart(self):
        skipped = self.run_part(Part(cases=(Skipped("no room"),) * 4))
        unprepared = self.run_part(Part(prepared=Skipped("no mount")))
        self.assertEqual((skipped.tried, unprepared.tried), (0, 0))
        self.assertEqual(campaign.exit_code([skipped, unprepared]), 77)
        good = self.run_part(Part(cases=(None,) * 4))
        self.assertEqual(campaign.exit_code([skipped, good]), 0)

    def test_a_fault_counts_though_all_else_was_skipped(self):
        result = self.run_part(Part(cases=(Skipped("no room"), Failure("wrong"), ValueError("own"), None)))
        self.assertEqual((result.tried, result.skips, len(result.failures)), (3, 1, 2))
        self.assertEqual(campaign.exit_code([result]), 1)

    def test_what_breaks_before_the_first_case_keeps_the_table(self):
        for fault in (ValueError("a mistake"), FileNotFoundError("no such program"), Failure("refused")):
            result = self.run_part(Part(prepared=fault))
            self.assertEqual((result.tried, len(result.failures)), (0, 1))
            self.assertIn(str(fault), self.printed.getvalue())
            self.assertIn("| a part | 0 | 1 | 0 |", self.printed.getvalue())
            self.assertEqual(campaign.exit_code([result]), 1)


if __name__ == "__main__":
    unittest.main()
