"""A fleet over ssh: a real sshd on a port of its own, under two names of this machine, with a key made for the test."""
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from workbench import FleetTest, main, skip

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
# The kernels that are copied are the program's own.
TUNE = ["--kernel", "softmax", "--problem", "ROWS=8,WIDTH=64", "--problem", "ROWS=16,WIDTH=64", "--device", "emulator",
        "--searcher", "random", "--trials", "4", "--warm-cache", "--min-samples", "3", "--max-samples", "3", "--rounds", "2",
        "--preheat", "0"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class SshFleetTest(FleetTest):
    def setUp(self):
        super().setUp()
        keys = self.folder / "ssh"
        keys.mkdir(mode=0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name], check=True)
        shutil.copy(keys / "user.pub", keys / "authorized")
        port = free_port()
        home = self.folder / "home"  # of whoever logs in, so that nothing is left in the real one
        home.mkdir()
        (keys / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/authorized\n"
            f"PidFile {keys}/sshd.pid\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            f"SetEnv HOME={home} PASCALINE_CACHE_DIR={os.environ.get('PASCALINE_CACHE_DIR', home / 'cache')}\n"
            f"ForceCommand cd {home} && eval \"${{SSH_ORIGINAL_COMMAND:-true}}\"\nSubsystem sftp internal-sftp\n")
        Path("/run/sshd").mkdir(exist_ok=True)
        server = subprocess.Popen([SSHD, "-D", "-E", keys / "log", "-f", keys / "sshd_config"])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        (keys / "config").write_text(
            f"Host alpha beta\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {keys}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {keys}/known\n  StrictHostKeyChecking no\n  LogLevel ERROR\n"
            f"Host gone lost\n  HostName 127.0.0.1\n  Port {free_port()}\n")
        # The user's own programs, with the test's configuration in place of ~/.ssh/config. scp -O: its old protocol goes
        # through the command that changes into the test's home, which sftp does not.
        programs = self.folder / "bin"
        programs.mkdir()
        for name, more in (("ssh", ""), ("scp", "-O ")):
            (programs / name).write_text(f"#!/bin/sh\nexec {shutil.which(name)} {more}-F {keys}/config \"$@\"\n")
            (programs / name).chmod(0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        end = time.monotonic() + 10
        while subprocess.run([programs / "ssh", "alpha", "true"], capture_output=True, check=False).returncode != 0:
            if time.monotonic() > end:  # a machine may forbid root to log in
                self.skipTest(f"nobody can log in here: {(keys / 'log').read_text()}")
            time.sleep(0.1)

    def test_hosts_get_all_they_need_and_give_back_what_they_found(self):
        self.run_program("fleet", "plan", self.fleet, "--shards", "2", *TUNE)
        started = time.monotonic()
        refused = self.run_program("fleet", "submit", self.fleet, "--ssh", "alpha,gone,lost", code=1).stderr
        self.assertLess(time.monotonic() - started, 20)
        for said in ("nothing was started", "gone: ", "lost: ", "refused"):
            self.assertIn(said, refused)
        self.assertNotIn("alpha: ", refused)
        self.assertEqual(list((self.folder / "home").iterdir()), [])

        self.run_program("fleet", "submit", self.fleet, "--ssh", "alpha,beta")
        there = sorted(file.name.split("-")[-1] for file in (self.folder / "home" / ".pascaline-fleets").iterdir())
        self.assertEqual(there, ["alpha", "beta"])
        # Kernels are compiled for the emulator, which takes a busy machine minutes; a shard that fails is told at once.
        states = set()
        self.environment["PASCALINE_FLEET_HOSTS"] = "alpha,beta"

        def have_ended():
            states.clear()
            states.update(shard["state"] for shard in self.status().values())
            return states == {"done"} or states & {"failed", "interrupted", "lost"}

        self.wait_for("both shards", have_ended, 200)
        self.assertEqual(states, {"done"}, f"{self.status()}{self.outputs_there()}")
        gathered = json.loads(self.run_program("fleet", "gather", self.fleet, "--db", self.folder / "all.db", "--json").stdout)
        self.assertEqual((gathered["left_out"], gathered["incomplete"], gathered["notes"]), ([], [], []))
        self.assertEqual(len(gathered["taken"]), 2)
        found = self.searched(self.folder / "all.db")
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(len({problem for problem, _ in found}), 2)
        self.assertEqual(len(self.winners(self.folder / "all.db")), 2)

    def outputs_there(self):
        files = sorted((self.folder / "home" / ".pascaline-fleets").glob("*/fleet/*.out"))
        return "".join(f"\n{file}:\n{file.read_text()}" for file in files)

    def test_paths_of_this_machine_are_refused(self):
        self.plan(2)
        self.assertIn("is a path of this machine", self.run_program("fleet", "submit", self.fleet, "--ssh", "alpha", code=1).stderr)


if __name__ == "__main__":
    if not Path(SSHD).exists() or shutil.which("ssh") is None:
        skip("there is no sshd (scripts/setup.sh --dev brings openssh-server)")
    if os.geteuid() != 0:
        skip("an sshd of one's own needs root, as it logs in")
    main()
