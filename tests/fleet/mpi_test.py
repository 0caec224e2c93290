"""A fleet under mpirun: four ranks share eight shards out among themselves, and one of them is killed."""
import json
import os
import shutil
import signal
import subprocess

from workbench import PROGRAM, SIZES, FleetTest, main, skip


class MpiFleetTest(FleetTest):
    def test_ranks_share_the_shards_and_one_dies(self):
        self.plan(len(SIZES))
        # Without this mpirun ends all ranks when one of them dies.
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--enable-recovery", "-n", "4", PROGRAM, "fleet", "run",
                   str(self.fleet), *map(str, self.own_paths()), "--mpi"]
        with open(self.folder / "mpirun.out", "w", encoding="utf-8") as output:
            ranks = subprocess.Popen(command, env=self.environment, stdout=output, stderr=subprocess.STDOUT)
            self.wait_for("trials of shard 1", lambda: self.trials_so_far(self.fleet / "shard-0001.db") >= 1)
            victim = json.loads((self.fleet / "shard-0001.attempt-1.json").read_text())
            if victim["state"] == "running":
                os.kill(victim["process"], signal.SIGKILL)
            try:
                ranks.wait(90)
            finally:
                ranks.kill()
        said = (self.folder / "mpirun.out").read_text()
        self.assertEqual({shard["state"] for shard in self.status().values()}, {"done"}, said)
        attempts = [json.loads(file.read_text()) for file in self.fleet.glob("shard-*.attempt-*.json")]
        self.assertGreaterEqual(len({attempt["process"] for attempt in attempts}), 4, "four ranks worked")
        self.assertEqual(self.status()[1]["attempts"], 2, said)
        gathered = json.loads(self.run_program("fleet", "gather", self.fleet, "--db", self.folder / "all.db", "--json").stdout)
        self.assertEqual(gathered["left_out"] + gathered["incomplete"], [])
        self.expect_whole(self.folder / "all.db")


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        skip("there is no mpirun (scripts/setup.sh --dev brings it)")
    main()
