"""A fleet on a real Slurm of four nodes: one node is lost, one job preempted, one shard run twice; and nothing is missing."""
import json
import os
import shutil
import subprocess

from workbench import SCRIPTS, FleetTest, main, skip

MISSING = [tool for tool in ("slurmctld", "slurmd", "sbatch", "munged") if shutil.which(tool) is None]


class SlurmFleetTest(FleetTest):
    def cluster(self, action, *words, check=True):
        return subprocess.run([SCRIPTS / "slurm_test_cluster.sh", action, self.folder / "slurm", *words], check=check,
                              timeout=60, stderr=subprocess.PIPE if not check else None, text=True)

    def slurm(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=30, check=True).stdout

    def setUp(self):
        super().setUp()
        self.addCleanup(self.cluster, "stop")
        started = self.cluster("start", "4", check=False)
        if started.returncode != 0:  # a container may forbid what Slurm does
            self.skipTest(f"no Slurm can be started here: {started.stderr}")
        self.fleet = self.folder / "a fleet's 100% \"#1\""  # script, output and command all have to bear it
        self.environment["SLURM_CONF"] = str(self.folder / "slurm" / "slurm.conf")

    def node_of(self, job, shard):
        for line in self.slurm("squeue", "--noheader", "--array", f"--jobs={job}", "--format=%K %T %N").splitlines():
            task, state, *node = line.split()
            if task == str(shard) and state == "RUNNING" and node:
                return node[0]
        return None

    def has_begun(self, shard):
        return self.trials_so_far(self.fleet / f"shard-{shard:04}.db") >= 1

    def test_nothing_is_lost_and_nothing_counts_twice(self):
        self.plan(4)
        refused = self.run_program("fleet", "submit", self.fleet, *self.own_paths(), "--slurm", code=2).stderr
        self.assertIn("give the jobs one with --time", refused)
        self.run_program("fleet", "submit", self.fleet, "--slurm", "--time", "10m", *self.own_paths())
        job = json.loads((self.fleet / "submissions.json").read_text())["slurm"][0]
        self.wait_for("trials of shards 1 and 2", lambda: self.has_begun(1) and self.has_begun(2))
        # A job of a partition that goes first, on the node of shard 2.
        preempted = self.node_of(job, 2)
        self.slurm("sbatch", "--partition=high", f"--nodelist={preempted}", "--gres=gpu:1", "--output=/dev/null",
                   "--wrap=sleep 1")

        # A power cut: the node's slurmd and its job are gone; Slurm is told, as it would find out itself within minutes.
        lost = self.node_of(job, 1)
        self.cluster("kill", lost)
        self.assertEqual(self.status()[1]["note"].split(";")[0], "was lost")
        self.slurm("scontrol", "update", f"nodename={lost}", "state=down", "reason=killed")

        self.wait_for("the preemption", lambda: self.status()[2]["state"] in ("interrupted", "queued"))
        self.assertIn("nothing to give out", self.run_program("fleet", "submit", self.fleet, "--slurm", "--time", "10m",
                                                              *self.own_paths()).stdout)

        # A shard that somebody also runs elsewhere.
        self.run_program("sweep", "--fleet", self.fleet / "fleet.json", "--shard", "3/4", "--quiet", "--db",
                         self.fleet / "twice.db", *self.own_paths())
        self.wait_for("all shards", lambda: {shard["state"] for shard in self.status().values()} == {"done"}, 90)
        attempts = [shard["attempts"] for shard in self.status().values()]
        self.assertGreaterEqual(attempts[0], 2)
        self.assertGreaterEqual(attempts[1], 2)

        self.assertEqual(len(list(self.fleet.glob("slurm-*_*.out"))), 4)
        gathered = json.loads(self.run_program("fleet", "gather", self.fleet, "--db", self.folder / "all.db", "--json").stdout)
        self.assertEqual([os.path.basename(one["file"]) for one in gathered["left_out"]], ["twice.db"])
        self.assertEqual(gathered["incomplete"], [])
        self.expect_whole(self.folder / "all.db")


if __name__ == "__main__":
    if MISSING:
        skip(f"there is no {', '.join(MISSING)} (scripts/setup.sh --dev brings them)")
    if os.geteuid() != 0:
        skip("a Slurm of one's own needs root")
    main()
