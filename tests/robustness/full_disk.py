"""A disk that gets full while something is written: a clean fault, nothing half written, and with room it goes on."""

import os
import shutil
import subprocess

import samples
from kills import expect_kept, expect_once, expect_whole, rows, stored
from workbench import Failure, Skipped

# `$1` is the size, `$2` the folder; `$3…` are the words of the program. The disk is seen by this shell and what it starts
# only, so what is on it is copied before it ends.
SCRIPT = """
mount -t tmpfs -o size=$1 none "$2/disk" || exit 99
cp -r "$2/before/." "$2/disk/" || exit 98
[ -e "$2/fill" ] && cat /dev/zero > "$2/disk/filling" 2>/dev/null
size=$1; folder=$2; shift 2
"$@"
code=$?
rm -f "$folder/disk/filling"
cp -r "$folder/disk/." "$folder/after/"
exit $code
"""


class FullDisk:
    """A case: one command that writes to a small disk."""

    name = "full_disk"
    title = "full disks"
    counts = {"short": 10, "long": 600}

    def prepare(self, bench):
        os.makedirs(bench.path("disk"))
        check = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=64k", "none", bench.path("disk")],
                               capture_output=True, check=False)
        if check.returncode != 0:
            raise Skipped("no file system can be mounted here: " + check.stderr.decode(errors="replace").strip())
        samples.swept_database(bench)

    def on_disk(self, bench, size, words, environment=None, fill=False):
        """Runs it with the folder `before` on the disk; what is there in the end is in `after`."""
        shutil.rmtree(bench.path("after"), ignore_errors=True)
        for name in ("disk", "before", "after"):
            os.makedirs(bench.path(name), exist_ok=True)
        if fill:
            bench.write("fill", b"")
        shell = ["-rm", "sh", "-c", SCRIPT, "sh", str(size), bench.folder, bench.settings.program, *words]
        outcome = bench.finish(bench.start(shell, environment, program="/usr/bin/unshare"), words, 120)
        if outcome.code in (98, 99):
            raise Skipped("the disk could not be made ready")
        return outcome

    def case(self, bench, random, tally):
        what = random.choice(sorted(self.KINDS))
        tally(what, 1)
        os.makedirs(bench.path("before"), exist_ok=True)
        try:
            self.KINDS[what](self, bench, random)
            bench.expect_nobody_left()
        except Failure as failure:
            raise Failure(f"{what}: {failure}") from failure

    def size(self, random):
        return random.choice((4, 16, 32, 64, 100, 150, 200, 300, 500, 1000)) * 1024

    def database(self, bench, random):
        """Of a sweep: what was stored stays, and with room it is resumed."""
        words = samples.short_sweep(bench, bench.path("disk/tuned.db"), ["--trials", "8", "--searcher", "random"])
        limited = self.on_disk(bench, self.size(random), words)
        bench.expect_clean(limited, {0, 1})
        if limited.code == 1 and b"tuned.db" not in limited.error:
            raise Failure(f"does not say which file: {limited}")
        expect_whole(bench.path("after/tuned.db"))
        before = stored(bench.path("after/tuned.db"))
        shutil.rmtree(bench.path("before"))
        shutil.copytree(bench.path("after"), bench.path("before"))
        again = self.on_disk(bench, 100 << 20, words if not rows(bench.path("after/tuned.db"), "SELECT 1 FROM sessions") or
                             limited.code == 0 else ["sweep", "--resume", *samples.write_toy(bench), "--db", bench.path("disk/tuned.db")])
        bench.expect_clean(again, {0})
        expect_whole(bench.path("after/tuned.db"))
        expect_once(bench.path("after/tuned.db"))
        expect_kept(before, bench.path("after/tuned.db"))

    def cache(self, bench, random):
        """Of compiled kernels: a convenience, which costs nothing but time."""
        words = samples.short_sweep(bench, bench.path("tuned.db"), ["--trials", "2"])
        outcome = self.on_disk(bench, self.size(random), words, {"PASCALINE_CACHE_DIR": bench.path("disk/cache")})
        bench.expect_clean(outcome, {0, 1})
        expect_whole(bench.path("tuned.db"))

    def temporary(self, bench, random):
        """Where compilers work."""
        words = samples.short_sweep(bench, bench.path("tuned.db"), ["--trials", "2"])
        outcome = self.on_disk(bench, self.size(random), words, {"TMPDIR": bench.path("disk"),
                                                                "PASCALINE_CACHE_DIR": bench.path("cold")})
        bench.expect_clean(outcome, {0, 1, 3})
        expect_whole(bench.path("tuned.db"))

    def log(self, bench, random):
        """A night's work is not given up for a line of its log."""
        words = samples.short_sweep(bench, bench.path("tuned.db"), ["--trials", "4", "--log", bench.path("disk/sweep.log")])
        outcome = self.on_disk(bench, 4096, words, fill=True)
        bench.expect_clean(outcome, {0})
        expect_whole(bench.path("tuned.db"))

    def written(self, bench, random, words, name, size=None):
        """A file that is there whole, as it was before, or not at all."""
        old = random.random() < 0.5
        if old:
            bench.write("before/" + name, b"as it was")
        outcome = self.on_disk(bench, size or self.size(random), words, fill=random.random() < 0.3)
        bench.expect_clean(outcome, {0, 1})
        left = bench.content("after/" + name)
        if outcome.code == 1 and left != (b"as it was" if old else b""):
            raise Failure(f"{len(left)} bytes of {name} are left: {outcome}")
        if outcome.code == 0 and len(left) < 20:
            raise Failure(f"it says that {name} was written: {outcome}")
        rest = sorted(set(os.listdir(bench.path("after"))) - {name})
        if rest:
            raise Failure(f"left beside it: {rest}: {outcome}")

    def report(self, bench, random):
        form = random.choice(("md", "html", "csv", "json"))
        database = samples.swept_database(bench)
        self.written(bench, random, ["report", "--db", database, "-f", form, "-o", bench.path("disk/report.out")], "report.out")

    def export(self, bench, random):
        database = samples.swept_database(bench)
        form = random.choice(("t4", "csv"))
        self.written(bench, random, ["export", "--format", form, "--db", database, "-o", bench.path("disk/out.x")], "out.x",
                     random.choice((4096, 8192, None)))

    def bundle(self, bench, random):
        toys = samples.write_toy(bench)
        self.written(bench, random, ["bundle", "--untuned", "--arch", "emulator", *toys, "-o", bench.path("disk/made.pasc")],
                     "made.pasc")

    def workload(self, bench, random):
        model = samples.write_model(bench)
        self.written(bench, random, ["workload", "--model", model, "--device", "emulator", "--untuned",
                                     "--context", "64", "-o", bench.path("disk/work.json")], "work.json")

    def merge(self, bench, random):
        """What it would have brought is there whole, or not at all."""
        database = samples.swept_database(bench)
        outcome = self.on_disk(bench, self.size(random), ["merge", database, "--db", bench.path("disk/all.db")])
        bench.expect_clean(outcome, {0, 1})
        expect_whole(bench.path("after/all.db"))
        count, whole = len(stored(bench.path("after/all.db"))), len(stored(database))
        if count != (whole if outcome.code == 0 else 0):
            raise Failure(f"{count} of {whole} trials came: {outcome}")

    def imported(self, bench, random):
        path = bench.write("results.csv", samples.TABLE)
        outcome = self.on_disk(bench, self.size(random), ["import", path, "--db", bench.path("disk/all.db")])
        bench.expect_clean(outcome, {0, 1})
        expect_whole(bench.path("after/all.db"))
        count = len(stored(bench.path("after/all.db")))
        if (count > 0) != (outcome.code == 0):
            raise Failure(f"{count} trials came: {outcome}")

    def emitted(self, bench, random):
        toys = samples.write_toy(bench)
        outcome = self.on_disk(bench, self.size(random), ["compile", *toys, "--kernel", "toy", "--arch", "emulator", "--emit",
                                                          bench.path("disk/out")])
        bench.expect_clean(outcome, {0, 1, 3})

    KINDS = {"database": database, "cache": cache, "temporary": temporary, "log": log, "report": report, "export": export,
             "bundle": bundle, "workload": workload, "merge": merge, "import": imported, "emit": emitted}
