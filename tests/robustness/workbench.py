"""Runs the program as a user would, within limits, and judges how it ended."""

import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

MARK = "PASCALINE_CAMPAIGN"
ENDED = {0, 1, 2, 3}  # docs/guides/command_line.md, "Exit codes"; 130 only where it was stopped

# What a message for users never holds: the words of libraries, and of an end that nobody foresaw.
RAW_WORDS = ("terminate called", "Sanitizer", "runtime error:", "[json.exception", "std::", "basic_string", "vector::",
             "stoll", "stoi", "stod", "regex_error", "bad_function_call", "Assertion", "core dumped")


class Failure(Exception):
    """The program did what it must not."""


class Skipped(Exception):
    """It cannot be tried here; the text says why."""


class Outcome:
    """How a run ended. `code` is negative where a signal ended it."""

    def __init__(self, words, code, out, error, seconds, peak_mib, timed_out):
        self.words = words
        self.code = code
        self.out = out
        self.error = error
        self.seconds = seconds
        self.peak_mib = peak_mib
        self.timed_out = timed_out

    def __str__(self):
        lines = self.error.decode("utf-8", "replace").splitlines()
        shown = " / ".join(line[:300] for line in lines[:4])
        ended = "was given up" if self.timed_out else f"ended with {self.code}"
        return f"{shlex.join(self.words)}\n      {ended} after {self.seconds:.1f} s, {self.peak_mib:.0f} MiB: {shown}"


class Workbench:
    """A folder, the program, and the limits it runs within. One for each case."""

    def __init__(self, settings, folder, number=0):
        self.number = number  # of the case
        self.settings = settings
        self.folder = folder
        self.mark = uuid.uuid4().hex
        os.makedirs(self.path("home"), exist_ok=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return path

    def environment(self, changes=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PASCALINE_", "XDG_"))}
        environment.update({"HOME": self.path("home"), "PASCALINE_CACHE_DIR": self.settings.cache, MARK: self.mark,
                            "LC_ALL": "C.UTF-8"})
        environment.update(changes or {})
        return environment

    def _limit(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        if not self.settings.sanitized:
            room = self.settings.address_mib << 20
            resource.setrlimit(resource.RLIMIT_AS, (room, room))

    def start(self, words, environment=None, stdin=subprocess.DEVNULL, out="out", error="error", program=None):
        """The program in a session of its own, its output in files of the folder."""
        with open(self.path(out), "wb") as output, open(self.path(error), "wb") as errors:
            return subprocess.Popen([program or self.settings.program, *words], stdin=stdin, stdout=output, stderr=errors,
                                    env=self.environment(environment), cwd=self.folder, start_new_session=True,
                                    preexec_fn=self._limit)

    def finish(self, process, words, seconds=None, out="out", error="error"):
        """Waits for its end; kills it, and all that it started, if that takes too long."""
        begin = time.monotonic()
        late = threading.Event()

        def give_up():
            late.set()
            self.kill_all()

        timer = threading.Timer(seconds or self.settings.seconds, give_up)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        return Outcome(["pascaline", *words], process.returncode, self.content(out), self.content(error),
                       time.monotonic() - begin, usage.ru_maxrss / 1024, late.is_set())

    def run(self, words, environment=None, data=None, seconds=None):
        if data is None:
            return self.finish(self.start(words, environment), words, seconds)
        with open(self.write("stdin", data), "rb") as file:
            return self.finish(self.start(words, environment, stdin=file), words, seconds)

    def content(self, name):
        """The beginning of a file, empty if there is none."""
        try:
            with open(self.path(name), "rb") as file:
                return file.read(4 << 20)
        except OSError:
            return b""

    def living(self):
        """Processes that this case started, or they did, and that have not ended: by a mark in their environment."""
        mark = f"{MARK}={self.mark}".encode()
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark not in file.read().split(b"\0"):
                        continue
                with open(f"/proc/{name}/stat", "rb") as file:
                    if file.read().rsplit(b")", 1)[1].split()[0] in (b"Z", b"X"):
                        continue
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    found.append((int(name), file.read().replace(b"\0", b" ").decode("utf-8", "replace")))
            except OSError:
                continue  # it has ended meanwhile
        return found

    def kill_all(self):
        for process, _ in self.living():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def expect_nobody_left(self, seconds=10):
        end = time.monotonic() + seconds
        while left := self.living():
            if time.monotonic() > end:
                self.kill_all()
                raise Failure("processes were left behind: " + "; ".join(words[:200] for _, words in left))
            time.sleep(0.01)

    def expect_clean(self, outcome, codes=frozenset(ENDED)):
        """A documented exit code, in time, in little memory, and words for people."""
        text = outcome.error.decode("utf-8", "replace")
        if outcome.timed_out:
            raise Failure(f"hangs: {outcome}")
        if outcome.code not in codes:
            raise Failure(f"exit code is not one of {sorted(codes)}: {outcome}")
        if outcome.peak_mib > self.settings.memory_mib:
            raise Failure(f"takes much memory: {outcome}")
        for word in RAW_WORDS:
            if word in text:
                raise Failure(f"'{word}' is not for users: {outcome}")
        if outcome.code in (1, 2) and not any(line.startswith("pascaline: ") for line in text.splitlines()):
            raise Failure(f"no line says what is wrong: {outcome}")
        return outcome


class Settings:
    """What all cases share."""

    def __init__(self, program, cache, seconds=60.0, memory_mib=2048, address_mib=16384):
        self.program = os.path.abspath(program)
        self.cache = os.path.abspath(cache)
        self.seconds = seconds
        self.memory_mib = memory_mib
        self.address_mib = address_mib
        self.source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(self.program, "rb") as file:
            content = file.read()
        self.sanitized = b"__asan_report_load" in content
        if self.sanitized:
            self.seconds *= 5
            self.memory_mib *= 4
        self.shared = {}  # what a part prepared once for all its cases


def temporary_folder(parent):
    return tempfile.mkdtemp(prefix="pascaline_campaign_", dir=parent)


def remove_folder(folder):
    shutil.rmtree(folder, ignore_errors=True)


def random_of(*seeds):
    """Numbers that depend on the seeds only, alike on every machine."""
    return random.Random(" ".join(map(str, seeds)))
