"""A fleet on one machine: plan, run, status, gather, and what is refused."""
import contextlib
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from workbench import PROGRAM, REPEATS, SIZES, SPACE, WINNER, FleetTest, main


def descendants(process):
    """The process and all that came from it."""
    found = [process]
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            found += descendants(int(child))
    return found


class PlainFleetTest(FleetTest):
    sizes = SIZES[:4]
    done = None

    def gather(self, *more, code=0):
        result = self.run_program("fleet", "gather", self.fleet, "--db", self.folder / "all.db", "--json", *more, code=code)
        return json.loads(result.stdout)

    def take_done_fleet(self):
        """A copy of a fleet of three shards that has run: once, for all tests that look at what is gathered."""
        if type(self).done is None:
            self.plan(3)
            self.run_program("fleet", "run", self.fleet, *self.own_paths())
            type(self).done = Path(tempfile.mkdtemp(prefix="pascaline-fleet-")) / "fleet"
            self.addClassCleanup(shutil.rmtree, self.done.parent)
            self.fleet.rename(self.done)
        shutil.copytree(self.done, self.fleet)

    def test_shards_by_hand_make_the_whole(self):
        for shard in (1, 2, 3):
            self.run_program("sweep", "--shard", f"{shard}/3", "--db", self.folder / f"part{shard}.db", "--quiet",
                             *self.what_to_tune())
        self.run_program("merge", *[self.folder / f"part{shard}.db" for shard in (1, 2, 3)], "--db", self.folder / "all.db")
        self.expect_whole(self.folder / "all.db")

    def test_a_fleet_is_run_followed_and_gathered(self):
        table = self.plan(3).stdout
        self.assertRegex(table, r"shard +problems")
        self.assertEqual({shard["state"] for shard in self.status().values()}, {"waiting"})
        self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--shard", 2)
        self.assertEqual([shard["state"] for shard in self.status().values()], ["waiting", "done", "waiting"])
        gathered = self.gather(code=3)
        self.assertEqual([one["shard"] for one in gathered["incomplete"]], [1, 3])
        self.run_program("fleet", "run", self.fleet, *self.own_paths())
        gathered = self.gather("--report", self.folder / "night.html")
        self.assertEqual(gathered["incomplete"] + gathered["left_out"], [])
        self.assertIn("<!doctype html", (self.folder / "night.html").read_text()[:100].lower())
        self.expect_whole(self.folder / "all.db")
        self.assertIn("done", self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--shard", 2).stdout)
        self.assertEqual(self.gather()["new"], {"sessions": 0, "trials": 0, "winners": 0})

    def test_shards_share_the_space_of_one_problem(self):
        repeats = [8192, *range(3000, 3038), 200]
        space = json.loads(json.dumps(SPACE))
        space["parameters"][0]["values"] = repeats
        (self.kernels / "crawl.json").write_text(json.dumps(space))
        one = self.what_to_tune([64])
        self.assertRegex(self.run_program("fleet", "plan", self.fleet, "--shards", 2, "--jobs", "1", *one).stdout,
                         r"1 \(1/2 of its space\)")
        # One shard as a sweep by hand, which is killed and resumed by what its database knows.
        database = self.fleet / "shard-0001.db"
        running = subprocess.Popen([PROGRAM, "sweep", "--shard", "1/2", "--db", database, "--quiet", *map(str, one)],
                                   env=self.environment)
        self.wait_for("a trial", lambda: self.trials_so_far(database) >= 3)
        running.kill()
        running.wait()
        self.run_program("sweep", "--resume", "--db", database, "--quiet", *self.own_paths())
        self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--shard", 2)
        self.run_program("merge", database, self.fleet / "shard-0002.db", "--db", self.folder / "all.db")
        tried = Counter(json.loads(config)["REPEAT"] for _, config in self.searched(self.folder / "all.db"))
        self.assertEqual(tried, Counter({repeat: 2 if repeat == 8192 else 1 for repeat in repeats}))
        shares = [len(self.searched(self.fleet / f"shard-000{shard}.db")) for shard in (1, 2)]
        self.assertGreater(min(shares), 10)
        self.assertEqual(list(self.winners(self.folder / "all.db").values()), [WINNER])

    def test_files_of_the_fleet_are_not_written_over(self):
        self.take_done_fleet()
        kept = (self.fleet / "fleet.json").read_bytes()
        for words in (["--db", self.fleet / "shard-0001.db"],
                      ["--db", self.folder / "all.db", "--report", self.fleet / "fleet.json"],
                      ["--db", self.folder / "all.db", "--report", self.fleet / "shard-0002.db"]):
            refused = self.run_program("fleet", "gather", self.fleet, *words, code=1).stderr
            self.assertIn("is one of the fleet's own files", refused)
        self.assertEqual((self.fleet / "fleet.json").read_bytes(), kept)
        self.gather()
        self.expect_whole(self.folder / "all.db")

    def test_what_was_searched_otherwise_than_planned_is_left_out(self):
        self.plan(2)
        self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--shard", 2)
        self.run_program("sweep", "--fleet", self.fleet / "fleet.json", "--shard", "1/2", "--trials", 3, "--quiet",
                         "--db", self.folder / "few.db", *self.own_paths())
        gathered = self.gather("--from", self.folder / "few.db", code=3)
        self.assertEqual([one["reason"] for one in gathered["left_out"]],
                         ["it was searched with --trials 3, and the plan has none"])
        self.assertEqual(gathered["incomplete"], [{"shard": 1, "reason": "its database is left out"}])

    def test_an_interrupted_shard_is_resumed(self):
        self.plan(1)
        database = self.fleet / "shard-0001.db"
        running = subprocess.Popen([PROGRAM, "fleet", "run", self.fleet, *self.own_paths()], env=self.environment, stdout=subprocess.DEVNULL)
        self.wait_for("a trial", lambda: self.trials_so_far(database) >= 3)
        refused = self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--shard", 1, code=1).stderr
        self.assertIn("is worked on by process", refused)
        refused = self.run_program("sweep", "--fleet", self.fleet / "fleet.json", "--shard", "1/1", "--db", database,
                                   *self.own_paths(), code=1).stderr
        self.assertIn("shard 1/1 is being measured into", refused)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(30), 130)
        self.assertEqual(self.status()[1]["state"], "interrupted")
        self.assertIn("so far", self.gather(code=3)["incomplete"][0]["reason"])
        killed = subprocess.Popen([PROGRAM, "fleet", "run", self.fleet, *self.own_paths()], env=self.environment, stdout=subprocess.DEVNULL,
                                  start_new_session=True)
        before = self.trials_so_far(database)
        self.wait_for("a trial more", lambda: self.trials_so_far(database) > before)
        killed.kill()
        killed.wait()
        self.assertEqual(self.status()[1]["state"], "lost")
        self.run_program("fleet", "run", self.fleet, *self.own_paths())
        self.gather()
        self.expect_whole(self.folder / "all.db")

    def test_a_signal_to_every_process_costs_no_trial(self):
        # As Slurm sends it when it preempts a job: to the workers, too.
        self.plan(1)
        database = self.fleet / "shard-0001.db"
        running = subprocess.Popen([PROGRAM, "fleet", "run", self.fleet, *self.own_paths()], env=self.environment, stdout=subprocess.DEVNULL)
        self.wait_for("a trial", lambda: self.trials_so_far(database) >= 2)
        processes = descendants(running.pid)
        self.assertGreaterEqual(len(processes), 4, "fleet run, sweep and its two kinds of workers")
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        self.assertEqual(running.wait(30), 130)
        with sqlite3.connect(database) as connection:
            bad = connection.execute("SELECT config_text, status, reason FROM trials WHERE median_us IS NULL").fetchall()
        self.assertEqual(bad, [])

    def test_what_is_left_out_is_told(self):
        self.take_done_fleet()
        again = self.fleet / "again.db"
        self.run_program("sweep", "--fleet", self.fleet / "fleet.json", "--shard", "1/3", "--db", again, "--quiet",
                         *self.own_paths())
        other = self.fleet / "other.db"
        self.run_program("sweep", "--shard", "1/4", "--db", other, "--quiet", *self.what_to_tune())
        another = self.fleet / "another.db"
        self.run_program("sweep", "--shard", "1/3", "--db", another, "--quiet", *self.what_to_tune(SIZES[:3]))
        plain = self.fleet / "plain.db"
        self.run_program("sweep", "--db", plain, "--quiet", *self.what_to_tune(SIZES[:1]))
        (self.fleet / "torn.db").write_bytes(b"no database")
        reasons = {os.path.basename(one["file"]): one["reason"] for one in self.gather()["left_out"]}
        self.assertIn("was run more than once", reasons.pop("again.db", "") + reasons.pop("shard-0001.db", ""))
        self.assertIn("it is shard 1/4, and this fleet has 3 shards", reasons.pop("other.db"))
        self.assertIn("of fleet", reasons.pop("another.db"))
        self.assertIn("not of a fleet", reasons.pop("plain.db"))
        self.assertIn("the file is not an SQLite database", reasons.pop("torn.db"))
        self.assertEqual(reasons, {})
        self.expect_whole(self.folder / "all.db")

    def test_a_shard_that_is_damaged_inside_is_left_out(self):
        # What looks at shards reads nothing of it; what merges does.
        self.take_done_fleet()
        damaged = self.fleet / "shard-0002.db"
        with sqlite3.connect(damaged) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'samples'").fetchone()[0]
            size = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.close()
        sound = damaged.read_bytes()
        damaged.write_bytes(sound[:(page - 1) * size] + b"Z" * 64 + sound[(page - 1) * size + 64:])
        gathered = self.gather(code=3)
        self.assertEqual([one["shard"] for one in gathered["taken"]], [1, 3])
        self.assertRegex(gathered["left_out"][0]["reason"], "shard-0002.db: .*damaged")
        self.assertEqual(gathered["incomplete"], [{"shard": 2, "reason": "its database is left out"}])
        damaged.write_bytes(sound)
        self.gather()
        self.expect_whole(self.folder / "all.db")

    def test_what_another_machine_is_writing_is_not_opened(self):
        self.take_done_fleet()
        file = self.fleet / "shard-0001.attempt-1.json"
        attempt = json.loads(file.read_text())
        file.write_text(json.dumps({**attempt, "state": "running", "host": "elsewhere", "boot": "another"}))
        gathered = self.gather(code=3)
        self.assertEqual(gathered["incomplete"], [{"shard": 1, "reason": "it is running: gather again"}])
        self.assertEqual([one["shard"] for one in gathered["taken"]], [2, 3])
        self.assertIn("elsewhere", self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--shard", 1, code=1).stderr)
        os.utime(file, (1, 1))
        self.assertEqual(self.status()[1]["state"], "lost")

    def change(self, database, statement):
        with sqlite3.connect(database) as connection:
            self.assertGreater(connection.execute(statement).rowcount, 0)

    def test_clocks_and_versions_are_checked_at_gather(self):
        self.take_done_fleet()
        self.change(self.fleet / "shard-0001.db", "UPDATE sessions SET started_unix_ms = started_unix_ms - 4 * 3600000")
        self.change(self.fleet / "shard-0002.db", "UPDATE sessions SET program_version = '0.0.1'")
        self.change(self.fleet / "shard-0003.db", "UPDATE kernels SET source_hash = 'other'")
        gathered = self.gather(code=3)
        self.assertRegex(gathered["left_out"][0]["reason"], r"its clock is off: it began \d h.* before the fleet was planned")
        self.assertIn("pascaline 0.0.1 measured it", gathered["left_out"][1]["reason"])
        self.assertIn("'crawl' is another version", gathered["left_out"][2]["reason"])
        self.assertEqual(len(gathered["incomplete"]), 3)
        self.assertFalse((self.folder / "all.db").exists())
        self.gather("--accept", "clock", "--accept", "versions")

    def test_other_kernels_clocks_and_versions_are_refused_before_anything_runs(self):
        self.plan(2)
        (self.kernels / "crawl.cu").write_text((self.kernels / "crawl.cu").read_text() + "// changed\n")
        failed = self.run_program("sweep", "--fleet", self.fleet / "fleet.json", "--shard", "1/2", "--db", "x.db",
                                  *self.own_paths(), code=1)
        self.assertIn("the source of kernel 'crawl' here is not that of fleet", failed.stderr)
        self.assertFalse((self.folder / "x.db").exists())
        plan = json.loads((self.fleet / "fleet.json").read_text())
        for change, said in (({"program": "9.9.9"}, "planned by pascaline 9.9.9"),
                             ({"planned_unix_ms": plan["planned_unix_ms"] + 5 * 3600000}, "set the clocks")):
            (self.fleet / "fleet.json").write_text(json.dumps({**plan, **change}))
            self.assertIn(said, self.run_program("fleet", "run", self.fleet, *self.own_paths(), code=1).stderr)
        self.assertEqual(self.status()[1]["attempts"], 0)

    def test_what_is_refused_is_told_once(self):
        self.plan(2)
        sound = (self.kernels / "crawl.cu").read_text()
        (self.kernels / "crawl.cu").write_text(sound + "// changed\n")
        refused = self.run_program("fleet", "run", self.fleet, *self.own_paths(), code=1)
        self.assertEqual(refused.stdout.count("attempt 1 begins"), 2)
        self.assertNotIn("attempt 2", refused.stdout)
        self.assertEqual(refused.stdout.count("the source of kernel 'crawl' here is not that of fleet"), 2)
        self.assertEqual({shard["attempts"] for shard in self.status().values()}, {1})
        (self.kernels / "crawl.cu").write_text(sound)
        (self.fleet / "shard-0001.db").write_bytes(b"no database" * 100)
        refused = self.run_program("fleet", "run", self.fleet, *self.own_paths(), code=1)
        self.assertEqual(refused.stdout.count("not an SQLite database"), 1)
        states = self.status()
        self.assertEqual([states[shard]["state"] for shard in (1, 2)], ["failed", "done"])
        self.assertEqual([states[shard]["attempts"] for shard in (1, 2)], [2, 2])

    def test_a_shard_whose_process_is_killed_is_tried_again(self):
        self.plan(1)
        database = self.fleet / "shard-0001.db"
        running = subprocess.Popen([PROGRAM, "fleet", "run", self.fleet, *self.own_paths()], env=self.environment, stdout=subprocess.DEVNULL)
        self.wait_for("a trial", lambda: self.trials_so_far(database) >= 2)
        os.kill(descendants(running.pid)[1], signal.SIGKILL)
        self.assertEqual(running.wait(60), 0)
        self.assertEqual(self.status()[1]["attempts"], 2)
        self.gather()
        self.expect_whole(self.folder / "all.db")

    def test_wrong_shards_and_folders_are_refused(self):
        for shard, said in (("0/4", "there is no shard 0"), ("5/4", "there is no shard 5"), ("a/b", "is not a shard"),
                            ("1/0", "1 to 10000 shards"), ("1/100000", "1 to 10000 shards"), ("-1/4", "is not a shard")):
            failed = self.run_program("sweep", f"--shard={shard}", "--db", "x.db", *self.what_to_tune(), code=2)
            self.assertIn(said, failed.stderr)
            self.assertEqual(failed.stderr.count("\n"), 1)
        many = self.run_program("sweep", "--shard", "1/5", "--db", "x.db", *self.what_to_tune(), code=1).stderr
        self.assertIn("5 shards are more than there is to divide: the plan has 4 problems", many)
        self.assertIn("no fleet.json", self.run_program("fleet", "status", self.folder, code=1).stderr)
        self.plan(2)
        self.assertIn("has a fleet already", self.run_program(
            "fleet", "plan", self.fleet, "--shards", "2", *self.what_to_tune(), code=1).stderr)
        self.assertIn("has 2 shards", self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--shard", "3", code=1).stderr)
        self.assertIn("has 2 shards", self.run_program("sweep", "--fleet", self.fleet / "fleet.json", "--shard", "1/4",
                                                       code=2).stderr)
        self.assertIn("with --shard", self.run_program("sweep", "--fleet", self.fleet / "fleet.json", code=2).stderr)

    def test_a_shard_is_resumed_as_what_it_is(self):
        words = ["--db", self.folder / "part.db", "--quiet"]
        running = subprocess.Popen([PROGRAM, "sweep", "--shard", "2/2", *words, *map(str, self.what_to_tune())],
                                   env=self.environment)
        self.wait_for("a trial", lambda: self.trials_so_far(self.folder / "part.db") >= 2)
        running.kill()
        running.wait()
        refused = self.run_program("sweep", "--resume", "--shard", "1/2", *words, code=1).stderr
        self.assertIn("it is shard 2/2, not shard 1/2", refused)
        self.run_program("sweep", "--resume", *words, *self.own_paths())
        found = self.searched(self.folder / "part.db")
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(len(found), len(self.sizes) // 2 * len(REPEATS))

    def test_batch_scripts_come_from_templates(self):
        self.plan(4, "--budget", "2h")
        script = self.run_program("fleet", "submit", self.fleet, *self.own_paths(), "--slurm", "--dry-run").stdout
        for line in ("#SBATCH --array=1-4", "#SBATCH --time=130", "#SBATCH --gres=gpu:1", "#SBATCH --requeue"):
            self.assertIn(line, script)
        usual = self.run_program("fleet", "submit", "--print-template").stdout
        template = self.folder / "mine.sh"
        template.write_text(usual.replace("--gres={{gres}}", "--gres=gpu:p40:1"))
        mine = self.run_program("fleet", "submit", self.fleet, *self.own_paths(), "--slurm", "--dry-run", "--template", template).stdout
        self.assertIn("gpu:p40:1", mine)
        for placeholder in ("array", "time", "command"):
            template.write_text(usual.replace("{{" + placeholder + "}}", "1"))
            failed = self.run_program("fleet", "submit", self.fleet, *self.own_paths(), "--slurm", "--dry-run", "--template", template, code=1)
            self.assertIn("lacks the placeholder {{" + placeholder + "}}", failed.stderr)
        template.write_text(usual + "{{tiem}}")
        failed = self.run_program("fleet", "submit", self.fleet, *self.own_paths(), "--slurm", "--dry-run", "--template", template, code=1)
        self.assertIn("no placeholder {{tiem}} (did you mean 'time'?)", failed.stderr)
        self.assertIn("say where", self.run_program("fleet", "submit", self.fleet, code=2).stderr)

    def test_folders_whose_names_mean_something_to_a_shell(self):
        self.plan(4, "--budget", "2h")
        for name in ("two words", "it's", 'say "so"', "50% #1", "a$HOME`id`"):
            folder = self.folder / name
            self.fleet.rename(folder)
            script = self.run_program("fleet", "submit", folder, *self.own_paths(), "--slurm", "--dry-run").stdout
            self.fleet = folder
            output = next(line for line in script.splitlines() if line.startswith("#SBATCH --output="))
            pattern = shlex.split(output.removeprefix("#SBATCH "), posix=True)  # Slurm reads quotes and backslashes alike
            self.assertEqual([word.replace("\\$", "$").replace("\\`", "`") for word in pattern],
                             [f"--output={folder}/slurm-%A_%a.out".replace("50%", "50%%")])
            command = script.splitlines()[-1].removeprefix("exec ").replace('"$SLURM_ARRAY_TASK_ID"', "1")
            self.assertEqual(shlex.split(command)[1:4], ["fleet", "run", str(folder)])
        for name, said in (("line\nbreak", "a line break or another control character"), ("back\\slash", "a backslash")):
            folder = self.folder / name
            self.fleet.rename(folder)
            refused = self.run_program("fleet", "submit", folder, *self.own_paths(), "--slurm", "--dry-run", code=1).stderr
            self.fleet = folder
            self.assertIn(f"its name has {said}", refused)

    def test_mpi_wants_to_be_started_so(self):
        self.plan(2)
        for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"):
            self.environment.pop(name, None)
        self.assertIn("start it with mpirun or srun", self.run_program("fleet", "run", self.fleet, *self.own_paths(), "--mpi", code=2).stderr)


if __name__ == "__main__":
    main()
