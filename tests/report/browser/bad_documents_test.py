"""Poor and wrong documents: a page that says what is missing, or one clear error."""

import os
import subprocess
import unittest

import sample_document
from browser import BrowserTest, main

PAGES = ["#/overview", "#/kernels", "#/kernels/matmul", "#/problem/0", "#/thermal", "#/failures", "#/devices", "#/comparison"]


class PoorDocumentsTest(BrowserTest):
    def texts_of(self, document):
        page = self.write(document, "poor.html")
        texts = {}
        for fragment in PAGES:
            self.open(fragment, page)
            texts[fragment] = self.one("main").text
            self.assertNotIn("could not be shown", texts[fragment], fragment)
            self.assertNotRegex(texts[fragment], r"undefined|NaN|Infinity|\[object", fragment)
            self.assertGreater(len(texts[fragment]), 20, fragment)
        return texts

    def test_empty_database(self):
        texts = self.texts_of(sample_document.empty())
        self.assertIn("tuned.db holds no trials yet", texts["#/overview"])
        self.assertIn("holds no session", texts["#/thermal"])
        self.assertIn("There are no trials, so none failed", texts["#/failures"])
        self.assertIn("--against", texts["#/comparison"])
        self.assertIn("no trials of a kernel with this name", texts["#/kernels/matmul"])

    def test_sessions_without_a_trial(self):
        session = sample_document.Maker(False).session(1, "GeForce GTX 1080", "auto", telemetry=False, context=None, trials=0,
                                                        samples=0, discarded={})
        texts = self.texts_of(sample_document.empty(sessions=[session], database={"file": "t.db", **sample_document.counts(0), "sessions": 1}))
        self.assertIn("GeForce GTX 1080", texts["#/overview"])
        self.assertIn("No session has readings", texts["#/thermal"])

    def test_only_failures(self):
        texts = self.texts_of(sample_document.only_failures())
        self.assertIn("6 crashed", texts["#/overview"])
        self.assertIn("No problem has both a default and a best time yet", texts["#/overview"])
        self.assertIn("nothing usable: 6 crashed", texts["#/kernels/matmul"])
        self.assertIn("no configuration worked", texts["#/problem/0"])
        self.assertIn("peak rates unknown", texts["#/problem/0"])
        self.assertIn("no best-so-far", texts["#/problem/0"])
        self.assertIn("No session has readings", texts["#/thermal"])

    def test_filter_that_lets_nothing_through(self):
        document = sample_document.empty(kernel_filter="nothing", database={"file": "t.db", **sample_document.counts(9), "sessions": 0})
        texts = self.texts_of(document)
        self.assertIn("Only kernel nothing is reported", texts["#/overview"])
        self.assertIn("The database has no trials of the kernel", texts["#/overview"])

    def test_a_problem_without_configurations_searches_and_parameters(self):
        document = sample_document.only_failures()
        problem = document["contexts"][0]["kernels"][0]["problems"][0]
        problem.update(configurations={"shown": 0, "of": 0, "columns": [], "rows": []}, parameters=[], flops=0, bytes=0, statuses={})
        texts = self.texts_of(document)
        self.assertIn("No configurations were tried", texts["#/problem/0"])

    def test_times_of_nothing_have_no_logarithm(self):
        document = sample_document.full()
        problem = document["contexts"][0]["kernels"][0]["problems"][0]
        for row, time in zip(problem["configurations"]["rows"], (0, -1, 5e-324)):
            row.update(median_us=time, low_us=time, high_us=time)
        problem["parameters"][0]["best_us"][0] = 0
        texts = self.texts_of(document)
        self.assertIn("Parallel coordinates", texts["#/problem/0"])

    def test_telemetry_of_one_reading_and_comparison_of_nothing(self):
        document = sample_document.full()
        document["sessions"] = document["sessions"][1:]
        session = document["sessions"][0]
        session["telemetry"] = {**{name: [None] for name in ("temperature_c", "sm_clock_mhz", "memory_clock_mhz", "canary_us")},
                                "unix_ms": [sample_document.START], "power_w": [30], "states": [], "discarded": [], "readings": 1}
        document["comparison"].update(rows=[], summary={**{name: 0 for name in document["comparison"]["summary"]},
                                                        "geometric_mean_ratio": None})
        texts = self.texts_of(document)
        self.assertIn("Not reported by the device: temperature", texts["#/thermal"])
        self.assertIn("Neither side has a problem", texts["#/comparison"])

    def test_addresses_that_lead_nowhere(self):
        page = self.write(sample_document.full())
        for fragment, said in (("#/nowhere", "No such page"), ("#/problem/999", "No such problem"), ("#/problem/x", "No such problem"),
                               ("#/problem/", "No such problem"), ("#/kernels/%E0%A4%A", "no trials of a kernel with this name"),
                               ("#/thermal/999", "Thermal log"), ("#/problem/0/nonsense", "Side by side"), ("#", "Night of the card"),
                               ("#/kernels/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "<img src=x onerror=alert(1)>")):
            self.open(fragment, page)
            self.assertIn(said, self.one("main").text, fragment)


class WrongDocumentsTest(BrowserTest):
    def test_what_is_no_report_is_said(self):
        for text, said in (("{}", "not a Pascaline report"), ("null", "not a Pascaline report"), ("[]", "not a Pascaline report"),
                           ('{"format": "pascaline-report", "version": 2}', "version 2"), ('{"title": 5}', "not a Pascaline report")):
            page = self.write(text, "wrong.html")
            self.open("", page)
            self.assertEqual(self.one("h1").text, "This report cannot be shown")
            self.assertIn(said, self.one("main").text)


class BytesTest(unittest.TestCase):
    def test_what_is_no_json_is_one_clear_error(self):
        done = subprocess.run([os.environ["PASCALINE_RENDER_REPORT"]], input=b"{", capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"no page: ", done.stderr)


if __name__ == "__main__":
    main()
