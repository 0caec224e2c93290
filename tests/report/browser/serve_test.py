"""`pascaline serve` shows a sweep of the host device while it runs."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile

from browser import BrowserTest, main

PROGRAM = os.environ.get("PASCALINE_PROGRAM", "")


class ServeTest(BrowserTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.database = str(pathlib.Path(folder.name) / "tuned.db")

    def sweep(self, trials):
        """A sweep that goes on until it is ended."""
        return subprocess.Popen(
            [PROGRAM, "sweep", "--device", "host", "--kernel", "elementwise", "--problem", "COUNT=4096", "--trials", str(trials),
             "--warm-cache", "--rounds", "2", "--max-samples", "10", "--jobs", "1", "--searcher", "random", "--quiet",
             "--db", self.database])

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        return process.wait(60)

    def trials(self):
        return [int(text.replace(",", "").replace("\u202f", "")) for text in self.column("problems", "trials")]

    def test_a_sweep_is_watched(self):
        self.assertEqual(self.sweep(2).wait(120), 0)
        serve = subprocess.Popen([PROGRAM, "serve", "--db", self.database, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: serve.poll() is None and serve.kill())
        address = re.match(r"(http://127\.0\.0\.1:\d+/) shows ", serve.stdout.readline()).group(1)
        self.browser.get(address + "#/kernels/elementwise")
        self.wait(lambda: self.all("main h1"))
        before = self.trials()
        self.assertEqual(len(before), 1)
        self.assertGreaterEqual(before[0], 2)
        sweep = self.sweep(60)
        try:
            self.wait(lambda: self.trials()[0] > before[0], 60)
            self.assertIn("live", self.one("#live-state").text)
        finally:
            self.end(sweep)
        self.assertEqual(self.end(serve), 0)
        self.wait(lambda: "The server is gone" in self.one("#live-state").text, 20)
        self.assertEqual([e for e in self.complaints() if "ERR_CONNECTION_REFUSED" not in e["message"]], [])


if __name__ == "__main__":
    main()
