"""Databases that somebody made to do harm, and names that are no files: nothing is done that was not asked for."""

import json
import os
import re
import socket
import sqlite3
import stat
import struct

import samples
from files import readers_of_database
from workbench import Failure, Skipped

# What a terminal would obey instead of showing: C0 but for tab and newline, DEL, C1, and changes of direction.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NASTY = "evil\x1b[2J\x07\u202e<script>alert(1)</script>|`%s%n\r\n../../x"


def changed(path, *statements):
    """Runs statements on the file, whatever its constraints say; those for another schema than the file's are passed over."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute("PRAGMA foreign_keys = 0")
        connection.execute("PRAGMA writable_schema = 1")
        passed_over = None
        for statement in statements:
            sql, values = statement if isinstance(statement, tuple) else (statement, ())
            try:
                connection.execute(sql, values)
            except sqlite3.OperationalError as reason:
                passed_over = reason
                statements = [other for other in statements if other is not statement]
        if passed_over and not statements:
            raise Skipped(f"the schema has changed: {passed_over}")
        connection.execute("PRAGMA writable_schema = 0")
    finally:
        connection.close()


def triggers(bench, path):
    """Rows that make rows: a deletion of what was stored, and an endless doubling."""
    changed(path, "CREATE TRIGGER t1 AFTER INSERT ON trials BEGIN DELETE FROM samples;"
                  " UPDATE trials SET median_us = 1e-9 WHERE median_us > 0; END",
            "CREATE TRIGGER t2 AFTER UPDATE ON sessions BEGIN DELETE FROM winners; END",
            "CREATE TRIGGER t3 AFTER INSERT ON telemetry BEGIN INSERT INTO telemetry (session_id, unix_ms, governor_state)"
            " SELECT session_id, unix_ms, governor_state FROM telemetry; END")


def changed_by_triggers(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT count(*) FROM trials WHERE median_us < 1e-6").fetchone()[0] > 0
    finally:
        connection.close()


def view_for_table(bench, path):
    """A table's place is taken by a view that never ends."""
    changed(path, "ALTER TABLE trials RENAME TO was_trials",
            "CREATE VIEW trials AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT was_trials.* FROM n, was_trials")


def endless_view(bench, path):
    changed(path, "DROP VIEW IF EXISTS trial_details",
            "CREATE VIEW trial_details AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")


def circular_view(bench, path):
    changed(path, "DROP VIEW IF EXISTS trial_details", "CREATE VIEW trial_details AS SELECT * FROM x",
            "CREATE VIEW x AS SELECT * FROM trial_details")


UNFINISHED = "UPDATE sessions SET state = 'interrupted', finished_unix_ms = 1"


def stored_paths(bench, path):
    """`sweep --resume` is led to write to a log and to run a kernel that the database names: neither may be."""
    bench.write("planted/toy.cu", samples.TOY_KERNEL)
    bench.write("planted/toy.json", json.dumps(samples.toy_space()))
    paths = {"--log": "canary", "--cache": "canary-cache", "--nvrtc": "canary.so", "--sensors": "canary.json",
             "--kernels": "planted", "--spaces": "planted"}
    changed(path, UNFINISHED, "UPDATE plans SET trials = 8", "DELETE FROM plan_paths",
            *(("INSERT INTO plan_paths SELECT run_uuid, ?, ? FROM plans", (option, bench.path(name)))
              for option, name in paths.items()), ("UPDATE sessions SET command_line = ?", ("pascaline sweep " + NASTY,)))


def stored_words(bench, path):
    """Values of a plan that would be options, paths or nonsense if they were words of a command."""
    log = "--log=" + bench.path("canary")
    column, value = bench.random.choice((
        ("kernel", log), ("kernel", "../../../../tmp/canary"), ("kernel", NASTY), ("devices", log), ("devices", "host,host"),
        ("target", log), ("target", NASTY), ("searcher", log), ("searcher", "none"), ("trials", (1 << 63) - 1),
        ("budget_s", 1e308), ("until_unix_s", (1 << 63) - 1), ("compile_memory_mib", (1 << 63) - 1), ("jobs", (1 << 63) - 1),
        ("compile_timeout_s", 1e308), ("kernel_timeout_s", 1e-300), ("half_width", -1), ("rounds", -(1 << 63)),
        ("finalists", (1 << 63) - 1), ("drift", -1e308), ("max_samples", (1 << 63) - 1), ("preheat_s", 1e308)))
    changed(path, UNFINISHED, (f"UPDATE plans SET {column} = ?", (value,)))


def words_that_steer(bench, path):
    changed(path, ("UPDATE devices SET name = ?", (NASTY,)), ("UPDATE trials SET reason = ?, status = status", (NASTY,)),
            ("UPDATE sessions SET command_line = ?, searcher = ?, device_uuid = ?", (NASTY, NASTY, NASTY)),
            ("UPDATE problems SET text = 'toy ' || ?", (NASTY,)), ("UPDATE trials SET config_text = config_text || ?", (NASTY,)))


def names_without_utf8(bench, path):
    changed(path, "UPDATE devices SET name = CAST(x'ff41fe' AS TEXT)", "UPDATE toolkits SET version = CAST(x'c0af' AS TEXT)",
            "UPDATE sessions SET command_line = CAST(x'eda080' AS TEXT)", "UPDATE trials SET reason = CAST(x'80' AS TEXT)")


def forged_numbers(bench, path):
    changed(path, "UPDATE trials SET median_us = 1e308 * 10, low_us = -1, high_us = -1e308 WHERE median_us > 0",
            "UPDATE samples SET time_us = CASE ordinal % 3 WHEN 0 THEN -1 WHEN 1 THEN 0 ELSE 1e308 END",
            "UPDATE devices SET sm_count = -5, memory_bytes = -9223372036854775808",
            "UPDATE sessions SET started_unix_ms = 9223372036854775807, spent_ms = -9223372036854775808",
            "UPDATE problems SET flops = -1e308, bytes = 1e308",
            "UPDATE telemetry SET temperature_c = 1e308, unix_ms = -9223372036854775808",
            "UPDATE trials SET sample_count = 9223372036854775807 WHERE sample_count IS NOT NULL")


def forged_documents(bench, path):
    deep = "[" * 900 + "]" * 900
    changed(path, ("UPDATE problems SET dimensions = ?, types = ?", ('{"N": -5, "M": 1e99}', '{"T": 7}')),
            ("UPDATE trials SET config = ?", ('{"BLOCK": 9223372036854775807, "FAULT": "x"}',)),
            ("UPDATE sessions SET progress = ?, options = ?", (deep, '{"a": ' + deep + "}")),
            ("UPDATE spaces SET json = ?", ('{"schema": 1}',)), ("UPDATE devices SET limits = ?", ("[]",)))


def broken_documents(bench, path):
    changed(path, "UPDATE sessions SET options = '{broken', progress = '{'",
            "UPDATE problems SET dimensions = ']', types = ''", "UPDATE trials SET config = 'no'",
            "UPDATE devices SET limits = '{'", "UPDATE spaces SET json = ''")


def broken_options(bench, path):
    changed(path, "UPDATE sessions SET options = '{broken'")


def anything_forged(bench, path):
    """Whatever columns there are: some of them hold what they never should."""
    connection = sqlite3.connect(path)
    columns = [(table, column[1]) for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
               for column in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    values = (NASTY, "", "[" * 900, '{"a": {}}', "x" * 100_000, -1, 0, (1 << 63) - 1, -(1 << 63), 1e308, None, b"\xff\0")
    for table, column in bench.random.sample(columns, 3):
        try:
            changed(path, (f"UPDATE {table} SET {column} = ?", (bench.random.choice(values),)))
        except (sqlite3.IntegrityError, Skipped):
            pass  # a constraint that cannot be switched off


def paths_for_names(bench, path):
    changed(path, "UPDATE kernels SET name = '../../../../tmp/canary'", "UPDATE problems SET kernel = '/etc/passwd'",
            "UPDATE spaces SET kernel = '../canary'", ("UPDATE imports SET source = ?", (NASTY,)))


def huge_text(bench, path):
    changed(path, "UPDATE trials SET reason = hex(zeroblob(30000000)) WHERE id = 1",
            "UPDATE sessions SET command_line = hex(zeroblob(30000000))")


def blobs(bench, path):
    changed(path, "CREATE TABLE loose AS SELECT * FROM samples", "DROP TABLE samples",
            "CREATE TABLE samples (trial_id, ordinal, time_us, temperature_c, sm_clock_mhz, mark, power_w)",
            "INSERT INTO samples SELECT trial_id, ordinal, zeroblob(1000000), 'x', mark, time_us, -1 FROM loose LIMIT 50")


def circle_of_trials(bench, path):
    changed(path, "UPDATE trials SET shared_trial_id = id", "UPDATE winners SET trial_id = 999999")


def dangling_rows(bench, path):
    changed(path, "DELETE FROM sessions", "DELETE FROM devices", "DELETE FROM problems")


def missing_columns(bench, path):
    changed(path, "DROP VIEW trial_details", "DROP TABLE telemetry", "CREATE TABLE telemetry (id INTEGER PRIMARY KEY)")


def other_versions(bench, path):
    changed(path, "PRAGMA user_version = 99")


def development_version(bench, path):
    changed(path, "PRAGMA application_id = 1348563811")


def negative_version(bench, path):
    changed(path, "PRAGMA user_version = -1")


def other_program(bench, path):
    changed(path, "PRAGMA application_id = 7")


def broken_schema(bench, path):
    changed(path, "UPDATE sqlite_schema SET sql = 'CREATE TABLE trials (' WHERE name = 'trials'")


def schema_that_calls(bench, path):
    """A default and an index that call functions, which a harmless reading must not run."""
    changed(path, "CREATE INDEX calls ON trials (hex(zeroblob(10)))",
            "CREATE VIEW calls_too AS SELECT load_extension('/tmp/canary.so'), writefile('canary', 'x')")


def many_rows(bench, path):
    changed(path, "INSERT INTO telemetry (session_id, unix_ms, governor_state) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
                  " SELECT i + 1 FROM n WHERE i < 400000) SELECT 1, i, 'steady' FROM n")


def journal_of_another(bench, path):
    """A hot journal that names a file elsewhere to be deleted, which SQLite would do when it rolls it back."""
    magic = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
    page, sector = 4096, 512
    name = bench.path("canary-super").encode()
    total = sum(byte - 256 if byte > 127 else byte for byte in name) & 0xffffffff  # of signed characters
    header = magic + struct.pack(">5I", 0, 1, os.path.getsize(path) // page, sector, page)
    # Read from its end: the page that holds the lock, the name, its length and sum.
    trailer = struct.pack(">I", 0x40000000 // page + 1) + name + struct.pack(">II", len(name), total) + magic
    bench.write("tuned.db-journal", header.ljust(sector, b"\0") + trailer)


def wal_of_another(bench, path):
    bench.write("tuned.db-wal", b"\x37\x7f\x06\x82" + os.urandom(5000))
    bench.write("tuned.db-shm", b"\xff" * 32768)


def replace(path):
    os.remove(path)
    return path


def fifo(bench, path):
    os.mkfifo(replace(path))


def socket_file(bench, path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(replace(path))
    server.close()


def dangling_link(bench, path):
    os.symlink(bench.path("nowhere/else"), replace(path))


def link_to_itself(bench, path):
    os.symlink(path, replace(path))


def folder_for_file(bench, path):
    os.mkdir(replace(path))


def zeros(bench, path):
    os.symlink("/dev/zero", replace(path))


def null(bench, path):
    os.symlink("/dev/null", replace(path))


def nothing(bench, path):
    open(path, "wb").close()


def no_permission(bench, path):
    os.chmod(path, 0)


ATTACKS = (triggers, view_for_table, endless_view, circular_view, stored_paths, stored_words,
           words_that_steer, names_without_utf8, forged_numbers, forged_documents, broken_documents, broken_options,
           anything_forged, paths_for_names, huge_text, blobs, circle_of_trials, dangling_rows, missing_columns,
           other_versions, development_version, negative_version, other_program, broken_schema, schema_that_calls, many_rows,
           journal_of_another, wal_of_another, fifo, socket_file, dangling_link, link_to_itself, folder_for_file, zeros,
           null, nothing, no_permission)
NAMES = ("file:tuned.db?mode=memory", "file:/dev/zero", ":memory:", "", "-x", "a\nb", "x" * 300, "tuned.db?vfs=unix-none",
         "%74uned.db", "/proc/self/mem", "file::memory:?cache=shared", "\x1b[31mred", "/dev/full/x", "tuned.db/x")
MADE = {"tuned.db", "tuned.db-wal", "tuned.db-shm", "tuned.db-journal", "toys", "home", "out", "error", "report.out",
        "exported", "merged.db", "merged.db-wal", "merged.db-shm", "new.db", "new.db-wal", "new.db-shm", "made.pasc", "stdin",
        "nowhere", "planted"}


def contents(folder):
    """What lies there: names, and of the canaries what they hold."""
    return {name for name in os.listdir(folder) if name not in MADE}


class Hostile:
    """A case: one attack, and a command that meets it. Attacks take turns, a name of no file with each round."""

    name = "hostile"
    title = "hostile databases and names"
    counts = {"short": len(ATTACKS) + 1, "long": len(ATTACKS) * 60}

    def prepare(self, bench):
        path = samples.swept_database(bench)
        for words in readers_of_database(bench, path):
            outcome = bench.run(words)
            refuses = words[0] in ("sweep", "replay", "bundle", "rank")  # nothing to resume, too few trials, host only
            if outcome.code not in (0, 3) and not (outcome.code == 1 and refuses):
                raise Failure(f"the whole example is refused: {outcome}")

    def case(self, bench, random, tally):
        attack = (*ATTACKS, None)[bench.number % (len(ATTACKS) + 1)]
        path = samples.swept_database(bench)
        canary = bench.write("canary-super", b"alive")
        name = attack.__name__ if attack else "names"
        if attack:
            attack(bench, path)
        else:
            path = random.choice(NAMES)
            name += " " + repr(path)
        commands = readers_of_database(bench, path)
        if attack in (stored_paths, stored_words) and random.random() < 0.7:
            commands = [words for words in commands if "--resume" in words]
        if attack is triggers and random.random() < 0.7:
            commands = [["N=6000" if word == "N=5000" else word for word in commands[-1]]]  # a sweep that stores
        words = random.choice(commands)
        before = contents(bench.folder) - ({path} if not attack else set())
        tally("attacks" if attack else "names", 1)
        outcome = bench.run(words)
        try:
            self.judge(bench, outcome, before | ({path} if not attack else set()), canary)
            if attack is triggers and outcome.code == 0 and changed_by_triggers(path):
                raise Failure(f"a trigger changed what it stored: {outcome}")
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from failure
        finally:
            if attack is no_permission:
                os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)

    def judge(self, bench, outcome, before, canary):
        bench.expect_clean(outcome)
        bench.expect_nobody_left()
        if not os.path.exists(canary):
            raise Failure(f"another file was removed: {outcome}")
        with open(canary, "rb") as file:
            if file.read() != b"alive":
                raise Failure(f"another file was changed: {outcome}")
        extra = {name for name in contents(bench.folder) - before if name != ":memory:"}
        if extra:
            raise Failure(f"made {sorted(extra)}, which nobody asked for: {outcome}")
        for stream, content in (("standard output", outcome.out), ("standard error", outcome.error)):
            data = outcome.words[1] == "export" and stream == "standard output"  # names as they are, for other programs
            found = (CONTROLS if data else SHOWN).search(content.decode("utf-8", "replace"))
            if found:
                raise Failure(f"sends {found.group()!r} to a terminal, on {stream}: {outcome}")
