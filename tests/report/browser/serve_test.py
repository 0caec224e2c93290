"""`pascaline serve` shows a sweep of the emulated device while it runs."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import urllib.request

import make_night
from browser import BrowserTest, main

PROGRAM = os.environ.get("PASCALINE_PROGRAM", "")


class ServeTest(BrowserTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.database = str(pathlib.Path(folder.name) / "tuned.db")

    def make_database(self):
        """One session, which has ended."""
        night = make_night.Night(self.database)
        night.session(night.device(), night.toolkit())
        night.close()

    def sweep(self, trials):
        """A sweep that goes on until it is ended."""
        return subprocess.Popen(
            [PROGRAM, "sweep", "--device", "emulator", "--kernel", "elementwise", "--problem", "COUNT=4096", "--trials", str(trials),
             "--warm-cache", "--rounds", "2", "--max-samples", "10", "--jobs", "1", "--searcher", "random", "--quiet",
             "--db", self.database])

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        return process.wait(60)

    def trials(self):
        return [int(text.replace(",", "").replace("\u202f", "")) for text in self.column("problems", "trials")]

    def serve(self):
        """The process and its address."""
        serve = subprocess.Popen([PROGRAM, "serve", "--db", self.database, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: serve.poll() is None and serve.kill())
        self.addCleanup(serve.stdout.close)
        return serve, re.match(r"(http://127\.0\.0\.1:\d+/) shows ", serve.stdout.readline()).group(1)

    def alive(self, address):
        with urllib.request.urlopen(address + "document.json", timeout=30) as answer:
            return [session["alive"] for session in json.load(answer)["sessions"]]

    def test_a_sweep_that_dies_without_a_word_is_told(self):
        self.make_database()
        process = subprocess.Popen(["sleep", "600"])
        self.addCleanup(lambda: process.poll() is None and process.kill())
        start = int(pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19])
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        with contextlib.closing(sqlite3.connect(self.database)) as database, database:
            database.execute("UPDATE sessions SET state = 'running', finished_unix_ms = NULL, process_id = ?, "
                             "process_start = ?, boot_id = ?", (process.pid, start, boot))
        serve, address = self.serve()
        self.assertEqual(self.alive(address), [True])
        process.kill()
        process.wait()
        self.wait(lambda: self.alive(address) == [False])
        self.assertEqual(self.end(serve), 0)

    def test_while_the_database_is_locked_the_last_report_is_given(self):
        self.make_database()
        serve, address = self.serve()
        begin = time.monotonic()
        self.assertEqual(len(self.alive(address)), 1)
        time.sleep(2 + 5 * (time.monotonic() - begin))  # a report is kept for four times as long as it took to make
        with contextlib.closing(sqlite3.connect(self.database, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = DELETE")  # with a write-ahead log writers lock no reader out
            database.execute("BEGIN EXCLUSIVE")
            database.execute("UPDATE sessions SET command_line = 'changed'")
            os.utime(self.database)
            first = threading.Thread(target=self.alive, args=(address,))  # this one waits for a new report
            first.start()
            time.sleep(1)
            self.assertTrue(first.is_alive())
            begin = time.monotonic()
            self.assertEqual(len(self.alive(address)), 1)
            self.assertLess(time.monotonic() - begin, 5)
            database.execute("COMMIT")
        first.join(60)
        self.assertFalse(first.is_alive())
        self.assertEqual(self.end(serve), 0)

    def test_a_client_that_sends_without_end_does_not_hold_it(self):
        self.make_database()
        serve, address = self.serve()
        port = int(address.rsplit(":", 1)[1].rstrip("/"))
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            serve.send_signal(signal.SIGINT)
            while serve.poll() is None:
                with contextlib.suppress(OSError):
                    client.sendall(b"x")
                time.sleep(0.2)
        self.assertEqual(serve.returncode, 0)

    def test_a_sweep_is_watched(self):
        self.assertEqual(self.sweep(2).wait(120), 0)
        serve, address = self.serve()
        self.browser.get(address + "#/kernels/elementwise")
        self.wait(lambda: self.all("main h1"))
        before = self.trials()
        self.assertEqual(len(before), 1)
        self.assertGreaterEqual(before[0], 2)
        sweep = self.sweep(60)
        try:
            self.wait(lambda: self.trials()[0] > before[0])
            self.assertIn("live", self.one("#live-state").text)
        finally:
            self.end(sweep)
        self.assertEqual(self.end(serve), 0)
        self.wait(lambda: "The server does not answer" in self.one("#live-state").text)
        self.browser.get("about:blank")  # it would ask the server again
        self.assertEqual([e for e in self.complaints() if "ERR_CONNECTION_REFUSED" not in e["message"]], [])


if __name__ == "__main__":
    main()
