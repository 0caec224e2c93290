#!/usr/bin/env bash
# A Slurm of its own on this machine, without systemd and cgroups: a controller and some nodes, each with one GPU that is
# only counted. For the tests of fleets, and to try a batch script. Needs root, as slurmd does, and Debian's packages
# slurmctld, slurmd, slurm-client and munge (scripts/setup.sh --dev).
#   scripts/slurm_test_cluster.sh start FOLDER [NODES]   start it (4 nodes unless told); then: source FOLDER/environment
#   scripts/slurm_test_cluster.sh kill FOLDER NODE       end a node as a power cut would: its slurmd and its jobs
#   scripts/slurm_test_cluster.sh revive FOLDER NODE     start it again
#   scripts/slurm_test_cluster.sh stop FOLDER            end everything that was started in FOLDER
set -euo pipefail

fail() { echo "slurm_test_cluster.sh: $*" >&2; exit 1; }
usage() { sed -n '5,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit "$1"; }

free_ports() { # COUNT: ports that nothing listens on now
  python3 - "$1" <<'PY'
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in held:
    one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in held])
PY
}

# A root's right is needed to change the user of a job; as root, munged wants to be told that it may.
start_munge() {
  dd if=/dev/urandom of="$folder/munge.key" bs=1 count=1024 status=none
  chmod 400 "$folder/munge.key"
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
}

write_configuration() { # NODES
  local ports name nodes=""
  read -r -a ports <<<"$(free_ports $(($1 + 1)))"
  for ((name = 1; name <= $1; ++name)); do
    nodes+="NodeName=node$name NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[$name]} CPUs=1 RealMemory=1000 Gres=gpu:1"$'\n'
  done
  cat >"$folder/slurm.conf" <<CONF
ClusterName=pascaline
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,sched_min_interval=0,bf_interval=2
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=3
SlurmdTimeout=30
ReturnToService=2
MpiDefault=none
${nodes}PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
CONF
  echo "NodeName=node[1-$1] Name=gpu File=/dev/null" >"$folder/gres.conf"
}

start_node() { # NODE
  mkdir -p "$folder/spool-$1"
  slurmd -N "$1" -f "$folder/slurm.conf" </dev/null >/dev/null 2>&1
}

wait_for() { # SECONDS WHAT COMMAND...
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "$what; look into $folder/*.log"
    sleep 0.2
  done
}
idle_nodes() { [ "$(sinfo -h -N -p low -t idle -o %N | sort -u | wc -l)" -ge "$1" ]; }

# The node's slurmd and all that came from it.
processes_of() { # PID
  local child
  echo "$1"
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do processes_of "$child"; done
}
node_processes() { # NODE
  local pid
  # slurmstepd leaves slurmd's family: it is known by the spool folder in its command line or by its node's name.
  for pid in $(cat "$folder/slurmd-$1.pid" 2>/dev/null) $(pgrep -x slurmstepd); do
    [ -d "/proc/$pid" ] || continue
    if { tr '\0' '\n' <"/proc/$pid/environ"; } 2>/dev/null | grep -qx "SLURM_CONF=$folder/slurm.conf" &&
      { [ "$pid" = "$(cat "$folder/slurmd-$1.pid" 2>/dev/null)" ] || ls -l "/proc/$pid/fd" "/proc/$pid/cwd" 2>/dev/null | grep -q "spool-$1\b\|slurmd-$1.log"; }; then
      processes_of "$pid"
    fi
  done
}

start() {
  local count=${1:-4} tool node
  [ "$(id -u)" = 0 ] || fail "needs root, as slurmd does"
  for tool in slurmctld slurmd sbatch munged python3; do
    command -v $tool >/dev/null || fail "there is no $tool: apt-get install slurmctld slurmd slurm-client munge python3"
  done
  mkdir -p "$folder/state"
  chmod 755 "$folder"
  start_munge
  write_configuration "$count"
  echo "export SLURM_CONF=$folder/slurm.conf" >"$folder/environment"
  slurmctld -f "$folder/slurm.conf" </dev/null >/dev/null 2>&1
  for ((node = 1; node <= count; ++node)); do start_node "node$node"; done
  wait_for 20 "not all of $count nodes came up" idle_nodes "$count"
}

kill_processes() { # PID...
  local pid
  for pid in "$@"; do kill -KILL "$pid" 2>/dev/null || true; done
}

stop() {
  local file node
  for file in "$folder"/slurmd-*.pid; do
    [ -e "$file" ] || continue
    node=$(basename "$file" .pid)
    # shellcheck disable=SC2046
    kill_processes $(node_processes "${node#slurmd-}")
  done
  for file in slurmctld munged; do
    # shellcheck disable=SC2046
    kill_processes $(cat "$folder/$file.pid" 2>/dev/null)
  done
}

[ $# -ge 2 ] || usage 1
action=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
host=$(hostname -s)
export SLURM_CONF=$folder/slurm.conf
case $action in
  start) start "${3:-4}" ;;
  # shellcheck disable=SC2046
  kill) kill_processes $(node_processes "$3") ;;
  revive) start_node "$3" ;;
  stop) stop ;;
  *) usage 1 ;;
esac
