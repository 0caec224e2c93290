"""A fleet that a stranger wrote: nothing in its files chooses code, paths or hosts."""
import json
import os
import signal
import sqlite3
import subprocess
from pathlib import Path

from workbench import PROGRAM, FleetTest, main

# Only a file option of this list may name anything on the machine; each has a value that would be used at once.
PATHS = ("--kernels", "--spaces", "--cache", "--log", "--sensors", "--nvrtc", "--portfolio", "--model", "--workload", "--db",
         "--mmproj", "--fleet")


class ForeignFleetTest(FleetTest):
    sizes = (64, 128)

    def setUp(self):
        super().setUp()
        self.plan(2)
        self.plan_file = self.fleet / "fleet.json"
        self.sound = json.loads(self.plan_file.read_text())
        self.shard = ["sweep", "--fleet", self.plan_file, "--shard", "1/2", "--db", self.folder / "x.db"]

    def change(self, **keys):
        self.plan_file.write_text(json.dumps({**self.sound, **keys}))

    def fake(self, *names):
        """Programs that note that they were called."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        for name in names:
            (programs / name).write_text(f"#!/bin/sh\necho \"{name} $*\" >> {self.folder}/called\nexit 1\n")
            (programs / name).chmod(0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"

    def called(self):
        file = self.folder / "called"
        return file.read_text().splitlines() if file.exists() else []

    def test_options_of_a_file_choose_no_code_and_no_paths(self):
        before = sorted(self.folder.rglob("*"))
        for option in PATHS:
            self.change(options=self.sound["options"] + [[option, str(self.folder / "stranger")]])
            for words in (["fleet", "run", self.fleet, *self.own_paths()], self.shard, ["fleet", "status", self.fleet]):
                refused = self.run_program(*words, code=1).stderr
                self.assertRegex(refused, f"/options/[0-9]+: {option} (is an option that is not accepted|has the value)")
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_a_stranger_s_kernel_is_not_run(self):
        # As it was planned with one in a folder of its own: only whoever gives that folder runs it.
        marker = self.folder / "ran"
        source = (self.kernels / "crawl.cu").read_text()
        (self.kernels / "crawl.cu").write_text(
            f"#include <cstdlib>\nstatic const int ran = std::system(\"touch {marker}\");\n" + source)
        self.assertIn(["--kernels", str(self.kernels)], self.sound["paths"])
        self.assertNotIn("--kernels", [option for option, _ in self.sound["options"]])
        for words in (["fleet", "run", self.fleet], self.shard, ["fleet", "submit", self.fleet, "--slurm", "--time", "1h"]):
            refused = self.run_program(*words, code=1).stderr
            self.assertIn(f"was planned with --kernels {self.kernels} --spaces {self.kernels}, and no path is ever taken from a "
                          "file", refused)
            self.assertIn(f"--kernels {self.kernels} --spaces {self.kernels}\n", refused)
        self.assertFalse(marker.exists())
        self.assertEqual({shard["attempts"] for shard in self.status().values()}, {0})

    def test_paths_are_given_on_the_command_line(self):
        said = self.run_program("fleet", "plan", self.folder / "other", "--shards", "1", *self.what_to_tune()).stdout
        self.assertIn(f"pascaline fleet run {self.folder}/other --kernels {self.kernels} --spaces {self.kernels}\n", said)
        moved = self.folder / "moved"
        self.kernels.rename(moved)
        self.run_program("fleet", "run", self.fleet, "--kernels", "moved", "--spaces", moved)
        self.assertEqual({shard["state"] for shard in self.status().values()}, {"done"})

    def test_a_file_does_not_start_more_workers_than_there_are_processors(self):
        options = [[name, "1000" if name == "--jobs" else value] for name, value in self.sound["options"]]
        self.change(options=options)
        self.run_program("fleet", "run", self.fleet, "--shard", 1, *self.own_paths())
        with sqlite3.connect(self.fleet / "shard-0001.db") as connection:
            self.assertLessEqual(connection.execute("SELECT max(jobs) FROM plans").fetchone()[0], os.cpu_count())

    def test_ids_are_those_of_the_plan(self):
        for other in ("0123456789abcdef", "../../escaped", "ab\n#SBATCH --wrap=evil", "\x1b[31m", "", self.sound["fleet"] + "0"):
            self.change(fleet=other)
            for words in (["fleet", "run", self.fleet, *self.own_paths()], ["fleet", "gather", self.fleet, "--db", "all.db"],
                          ["fleet", "submit", self.fleet, "--ssh", "alpha", "--dry-run"],
                          ["fleet", "submit", self.fleet, "--slurm", "--time", "1h", "--dry-run"], self.shard):
                refused = self.run_program(*words, code=1)
                self.assertIn("/fleet: ", refused.stderr)
                self.assertNotIn("\x1b", refused.stderr)
                self.assertEqual(refused.stdout, "")
        shards = json.loads(json.dumps(self.sound["shards"]))
        shards[0]["problems"][0]["calls"] = 17
        self.change(shards=shards)
        self.assertIn("the id does not match this plan", self.run_program("fleet", "status", self.fleet, code=1).stderr)
        shards[0]["problems"][0]["kernel"] = "../kernels/crawl"
        self.change(shards=shards)
        self.assertIn("is not a kernel's name", self.run_program("fleet", "status", self.fleet, code=1).stderr)

    def submissions(self, **keys):
        (self.fleet / "submissions.json").write_text(json.dumps({"slurm": [], "hosts": [], **keys}))

    def test_hosts_come_from_the_command_line(self):
        self.fake("ssh", "scp")
        self.submissions(hosts=[{"host": "alpha", "folder": "/tmp/evil; touch x", "shards": [1]},
                                {"host": "beta", "folder": "x", "shards": [2]}])
        gather = ["fleet", "gather", self.fleet, "--db", "all.db"]
        for words in (["fleet", "status", self.fleet], gather, [*gather, "--ssh", "alpha"]):
            refused = self.run_program(*words, code=1).stderr
            self.assertIn("give --ssh alpha,beta if these are yours, or --local", refused)
        self.run_program("fleet", "status", self.fleet, "--local", code=3)
        self.run_program(*gather, "--local", code=3)
        self.assertEqual(self.called(), [])
        # What was given to others is not given out again, and nobody is asked about it.
        self.assertIn("nothing to give out", self.run_program("fleet", "submit", self.fleet, "--slurm", "--time", "1h",
                                                              *self.own_paths()).stdout)
        self.assertEqual(self.called(), [])
        self.run_program("fleet", "status", self.fleet, "--ssh", "alpha,beta", code=3)
        self.environment["PASCALINE_FLEET_HOSTS"] = "alpha,beta"
        self.run_program(*gather, code=3)
        self.assertEqual({line.split()[0] for line in self.called()}, {"ssh", "scp"})
        for line in self.called():  # the folder is the program's own
            self.assertIn(f".pascaline-fleets/{self.sound['fleet']}-", line)
            self.assertNotIn("evil", line)

    def test_names_of_hosts_and_jobs_are_checked(self):
        self.fake("ssh", "scp", "squeue", "sacct")
        for host in ("-oProxyCommand=touch x", "a;touch x", "\x1b[31malpha", "a b", "a\nb", "$(id)", ""):
            self.submissions(hosts=[{"host": host, "folder": "x", "shards": [1]}])
            for words in (["status", self.fleet], ["gather", self.fleet, "--db", "all.db"], ["status", self.fleet, "--ssh", "alpha"]):
                refused = self.run_program("fleet", *words, code=1)
                self.assertIn("/hosts/0/host", refused.stderr)
                self.assertNotIn("\x1b", refused.stderr + refused.stdout)
            if host:
                self.assertIn("is not the name of a host",
                              self.run_program("fleet", "submit", self.fleet, f"--ssh={host}", code=2).stderr)
        self.submissions(hosts=[{"host": "alpha", "folder": "x", "shards": [3]}])
        self.assertIn("there is no shard 3", self.run_program("fleet", "status", self.fleet, code=1).stderr)
        self.submissions(slurm=["1 --evil"])
        self.assertIn("is not the number of a job", self.run_program("fleet", "status", self.fleet, code=1).stderr)
        self.submissions()
        (self.fleet / "shard-0001.attempt-1.json").write_text(json.dumps(
            {"state": "running", "host": "\x1b[31mx", "process": 1, "process_start": "1", "boot": "y", "slurm_job": "1 --evil",
             "slurm_restart": 0, "started_unix_ms": 0, "beat_unix_ms": 0, "program": "x", "note": "\x1b[32m"}))
        os.utime(self.fleet / "shard-0001.attempt-1.json", (1, 1))
        self.assertNotIn("\x1b", self.run_program("fleet", "status", self.fleet, code=3).stdout)
        self.assertEqual(self.called(), [])

    def test_nothing_is_written_through_links(self):
        mine = self.folder / "mine"
        mine.write_text("mine\n")
        for ending in ("log", "out", "db", "db-wal"):
            for make in (os.symlink, os.link):
                link = self.fleet / f"shard-0001.{ending}"
                make(mine, link)
                refused = self.run_program("fleet", "run", self.fleet, "--shard", 1, *self.own_paths(), code=1).stderr
                self.assertIn(f"shard-0001.{ending} is ", refused)
                self.assertIn("remove it, then run this again", refused)
                link.unlink()
                self.assertEqual(mine.read_text(), "mine\n")
        self.fake("sbatch", "scp")
        for name in ("batch.sh", "submissions.json"):
            (self.fleet / name).symlink_to(mine)
        (self.fleet / "submissions.json").unlink()
        self.run_program("fleet", "submit", self.fleet, "--slurm", "--time", "1h", *self.own_paths(), code=1)
        self.assertEqual(mine.read_text(), "mine\n")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (self.fleet / f"from-{self.sound['fleet']}-alpha").symlink_to(elsewhere)
        self.submissions(hosts=[{"host": "alpha", "shards": [1]}])
        refused = self.run_program("fleet", "gather", self.fleet, "--db", "all.db", "--ssh", "alpha", code=1).stderr
        self.assertIn("is not a folder: remove it", refused)
        self.assertFalse(any(line.startswith("scp") for line in self.called()))

    def test_names_of_files_reach_no_terminal_as_they_are(self):
        (self.fleet / "\x1b[31mred.db").write_bytes(b"no database")
        told = self.run_program("fleet", "gather", self.fleet, "--db", "all.db", code=3).stdout
        self.assertIn("red.db", told)
        self.assertNotIn("\x1b", told)

    def test_a_shard_killed_twice_says_why_and_what_to_do(self):
        seen = set()

        def kill_the_sweep():
            for children in Path(f"/proc/{running.pid}/task").glob("*/children"):
                for child in set(children.read_text().split()) - seen:
                    seen.add(child)
                    os.kill(int(child), signal.SIGKILL)
            return running.poll() is not None

        running = subprocess.Popen([PROGRAM, "fleet", "run", self.fleet, "--shard", "1", *map(str, self.own_paths())],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for("the end", kill_the_sweep)
        said = running.communicate()[1]
        self.assertEqual(running.returncode, 1)
        self.assertIn("its process was ended by signal 9 (Killed), perhaps because memory ran out (exit code 137", said)
        self.assertIn(f"try again: pascaline fleet run {self.fleet} --kernels {self.kernels} --spaces {self.kernels} --shard 1",
                      said)
        told = self.run_program("fleet", "status", self.fleet, code=3).stdout
        self.assertIn("shard 1: its process was ended by signal 9", told)
        self.assertIn("--shard N` tries a failed shard again", told)


if __name__ == "__main__":
    main()
