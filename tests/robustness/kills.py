"""Signals to a sweep and to its workers at random moments: what was stored stays, and the sweep can go on."""

import os
import signal
import sqlite3
import time

from samples import short_sweep, write_toy
from workbench import Failure

TRIALS = 6
TO_PARENT = {"SIGKILL": 5, "SIGTERM": 3, "SIGINT": 3, "SIGHUP": 2, "SIGINT twice": 1, "SIGSTOP, SIGCONT": 2, "SIGSEGV": 1,
             "SIGQUIT": 1, "SIGPIPE": 1, "SIGKILL with all": 1}
TO_WORKER = {"SIGKILL": 4, "SIGTERM": 2, "SIGINT": 1, "SIGSEGV": 1, "SIGSTOP, SIGCONT": 2, "SIGPIPE": 1, "SIGHUP": 1}


def rows(database, sql):
    """An empty list while there is no database, or no such table yet."""
    if not os.path.exists(database):
        return []
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def stored(database):
    return {row[0]: row[1:] for row in rows(database, "SELECT id, stage, config_text, status, median_us, sample_count,"
                                                      " (SELECT count(*) FROM samples WHERE trial_id = t.id),"
                                                      " (SELECT total(time_us) FROM samples WHERE trial_id = t.id)"
                                                      " FROM trials t")}


def expect_whole(database):
    if os.path.exists(database) and os.path.getsize(database) > 0:
        told = rows(database, "PRAGMA integrity_check")
        if told != [("ok",)]:
            raise Failure(f"integrity_check says {told[:3]}")
        broken = rows(database, "PRAGMA foreign_key_check")
        if broken:
            raise Failure(f"foreign_key_check says {broken[:3]}")


def expect_kept(before, database):
    now = stored(database)
    for trial, row in before.items():
        if now.get(trial) != row:
            raise Failure(f"trial {trial} was stored as {row} and is now {now.get(trial)}")


def expect_once(database):
    twice = rows(database, "SELECT config_text, count(*) FROM trials WHERE stage = 'search' GROUP BY problem_id, config_text"
                           " HAVING count(*) > 1")
    if twice:
        raise Failure(f"stored twice: {twice}")


def send(process, name):
    """Sends the signals of that name; False if the process is not there any more."""
    try:
        if name == "SIGSTOP, SIGCONT":
            os.kill(process, signal.SIGSTOP)
            time.sleep(0.2)
            os.kill(process, signal.SIGCONT)
        elif name == "SIGINT twice":
            os.kill(process, signal.SIGINT)
            time.sleep(0.25)
            os.kill(process, signal.SIGINT)
        else:
            os.kill(process, getattr(signal, name.split()[0]))
        return True
    except ProcessLookupError:
        return False


def expect_words(outcome):
    """The sweep speaks with one voice: a worker whose parent ended says nothing."""
    for line in outcome.error.decode("utf-8", "replace").splitlines():
        if "cannot write to standard output" in line or "child:" in line or "-worker" in line:
            raise Failure(f"a worker spoke: {outcome}")


def pick(random, weights):
    return random.choices(list(weights), list(weights.values()))[0]


class Kills:
    """A case: a sweep, one to three times disturbed, each time resumed, and at last left in peace."""

    name = "kills"
    title = "signals to sweeps and workers"
    counts = {"short": 6, "long": 500}

    def words(self, bench, database):
        return short_sweep(bench, database, ["--searcher", "random", "--trials", str(TRIALS), "--compile-timeout", "20"])

    def prepare(self, bench):
        """How long a sweep takes here, with everything compiled."""
        for _ in range(2):
            for end in ("", "-wal", "-shm"):
                if os.path.exists(bench.path("tuned.db" + end)):
                    os.remove(bench.path("tuned.db" + end))
            outcome = bench.run(self.words(bench, bench.path("tuned.db")))
            if outcome.code != 0:
                raise Failure(f"an undisturbed sweep fails: {outcome}")
        self.seconds = outcome.seconds
        self.plan = {row[0] for row in rows(bench.path("tuned.db"), "SELECT config_text FROM trials WHERE stage='search'")}

    def case(self, bench, random, tally):
        database = bench.path("tuned.db")
        environment = {}
        if random.random() < 0.1:  # compilers run
            environment["PASCALINE_CACHE_DIR"] = bench.path("cold_cache")
        for _ in range(random.randint(1, 3)):
            if random.random() < 0.6:
                self.disturb_parent(bench, random, tally, database, environment)
            else:
                self.disturb_worker(bench, random, tally, database, environment)
            bench.expect_nobody_left()
            expect_whole(database)
            expect_once(database)
        self.go_on(bench, database, environment)

    def next_words(self, bench, database):
        states = rows(database, "SELECT state FROM sessions")
        if states and all(state == ("finished",) for state in states):
            return None
        return ["sweep", "--resume", *write_toy(bench), "--db", database] if states else self.words(bench, database)

    def disturb_parent(self, bench, random, tally, database, environment):
        words = self.next_words(bench, database)
        if words is None:
            return
        name = pick(random, TO_PARENT)
        process = bench.start(words, environment)
        time.sleep(random.uniform(0, self.seconds * 1.1))
        before = stored(database)
        begun = bool(rows(database, f"SELECT 1 FROM sessions WHERE state = 'running' AND process_id = {process.pid}"))
        children = bench.living() if name == "SIGKILL with all" else []
        sent = send(process.pid, name)
        for child, _ in children:
            send(child, "SIGKILL")
        outcome = bench.finish(process, words, 60)
        tally("signals to the sweep", 1 if sent else 0)
        expect_words(outcome)
        allowed = {0} if name in ("SIGSTOP, SIGCONT", "SIGPIPE") else {0, 130, -getattr(signal, name.split()[0])}
        if outcome.code == -signal.SIGPIPE and not begun:
            allowed.add(outcome.code)  # before it minds them
        if outcome.timed_out or outcome.code not in allowed:
            raise Failure(f"after {name}: {outcome}")
        if begun and name in ("SIGTERM", "SIGINT", "SIGHUP") and outcome.code < 0:
            raise Failure(f"{name} ended it before things were in order: {outcome}")
        expect_kept(before, database)

    def disturb_worker(self, bench, random, tally, database, environment):
        words = self.next_words(bench, database)
        if words is None:
            return
        process = bench.start(words, environment)
        sent = 0
        for _ in range(random.randint(1, 3)):
            time.sleep(random.uniform(0, self.seconds * 0.7))
            below = [(child, line) for child, line in bench.living() if child != process.pid]
            if below:
                sent += send(random.choice(below)[0], pick(random, TO_WORKER))
        outcome = bench.finish(process, words, 120)
        tally("signals to workers", sent)
        expect_words(outcome)
        bench.expect_clean(outcome, {0, 3})
        lost = rows(database, "SELECT config_text, status, reason FROM trials WHERE status NOT IN ('ok', 'dropped', 'rejected', 'wrong_result')")
        lost = [row for row in lost if "FAULT=1" not in row[0]]
        known = rows(database, "SELECT count(*) FROM trials WHERE stage = 'search'")[0][0]
        if known > TRIALS:
            raise Failure(f"{known} trials instead of {TRIALS}: {outcome}")
        tally("trials that a worker's end cost", len(lost))

    def go_on(self, bench, database, environment):
        words = self.next_words(bench, database)
        if words is not None:
            before = stored(database)
            outcome = bench.expect_clean(bench.run(words, environment, seconds=180), {0, 3})
            expect_words(outcome)
            expect_kept(before, database)
        bench.expect_nobody_left()
        expect_whole(database)
        expect_once(database)
        done = {row[0] for row in rows(database, "SELECT config_text FROM trials WHERE stage = 'search'")}
        if done != self.plan:
            raise Failure(f"{len(done)} configurations, of which {len(done & self.plan)} are of the {len(self.plan)} planned")
        for sql, wanted in (("SELECT count(*) FROM attempts", 0), ("SELECT count(*) FROM sessions WHERE state <> 'finished'", 0),
                            ("SELECT count(*) FROM winners", 1)):
            count = rows(database, sql)[0][0]
            lost_all = sql.endswith("winners") and not rows(database, "SELECT 1 FROM trials WHERE median_us > 0")
            if count != wanted and not lost_all:
                raise Failure(f"{sql}: {count} instead of {wanted}")
