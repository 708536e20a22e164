"""A real Slurm of two nodes with two GPUs each, on the loopback of this machine: no systemd, no accounting, no control groups.

It needs root and Debian's packages slurm-wlm and munge. Its daemons die with the process that started them. All its timeouts are long, so
that it gives up nothing that a busy machine lets stand still; that a node has died it is told.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from mlagentbench.experiments.executors.slurm import SlurmExecutor
from mlagentbench.sandbox.standalone.supervise import die_with_parent
from tests.support import HANGING, free_port

NODES = ("n1", "n2")
GPUS_EACH = 2
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.sock
CredType=cred/munge
SlurmctldPort={ports[0]}
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool-%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=10000
ReturnToService=2
JobRequeue=1
SlurmdTimeout=600
MessageTimeout=100
TCPTimeout=60
BatchStartTimeout=600
UnkillableStepTimeout=600
InactiveLimit=0
KillWait=30
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=16 Gres=gpu:{gpus} State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=16 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing() -> str | None:
    """Return why no Slurm can be started here; None where one can."""
    for command in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel"):
        if _path(command) is None:
            return f"there is no {command}: it comes with Debian's packages slurm-wlm and munge"
    return None if os.geteuid() == 0 else "only root can start its daemons with device files for the GPUs"


class SlurmCluster:
    """Starts the daemons; `close` ends them."""

    kills_jobs_with_driver = False
    node = NODES[0]
    """One of the nodes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.setup = (
            f"import os\nos.environ['SLURM_CONF'] = {str(home / 'slurm.conf')!r}\n"
            "from mlagentbench.experiments.executors.slurm import SlurmExecutor\nexecutor = SlurmExecutor('tests')\n"
        )
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        home.chmod(0o755)
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (home / name).mkdir()
        key = home / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        (home / "slurm.conf").write_text(
            CONFIGURATION.format(home=home, host=socket.gethostname().split(".")[0], ports=[free_port() for _ in range(3)], gpus=GPUS_EACH)
        )
        # Slurm takes only character devices for GPUs: these are copies of /dev/null.
        lines = []
        for node in NODES:
            for number in range(GPUS_EACH):
                os.mknod(home / f"gpu-{node}-{number}", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            lines.append(f"NodeName={node} Name=gpu File={home}/gpu-{node}-[0-{GPUS_EACH - 1}]\n")
        (home / "gres.conf").write_text("".join(lines))
        try:
            self._start_daemons()
        except BaseException:
            self.close()
            raise

    def _start_daemons(self) -> None:
        files = {"key": "munge.key", "pid": "munged.pid", "log": "munged.log", "seed": "munge.seed"}
        options = [f"--{what}-file={self.home / name}" for what, name in files.items()]
        self._start("munged", "--foreground", "--force", f"--socket={self.home / 'munge.sock'}", *options)
        self._until(lambda: (self.home / "munge.sock").exists(), "munged")
        self._start("slurmctld", "-D", "-c")
        self.restore()

    def executor(self) -> SlurmExecutor:
        os.environ["SLURM_CONF"] = str(self.home / "slurm.conf")
        return SlurmExecutor("tests")

    def restore(self) -> None:
        for node in NODES:
            if f"slurmd {node}" not in self._daemons:
                self._start(f"slurmd {node}", "-D", "-N", node)
        self._until(lambda: set(self._slurm("sinfo", "--noheader", "--format=%T").split()) == {"idle"}, "the nodes")

    def kill_worker(self, launcher: int) -> None:
        # Not slurmstepd, whose death Slurm notices only after 20 s or more.
        psutil.Process(launcher).kill()

    def kill_node(self, node: str) -> None:
        daemon = self._daemons.pop(f"slurmd {node}")
        daemon.kill()
        daemon.wait()
        while processes := self._processes(node):
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(processes, HANGING)
        self._slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=killed")

    def _processes(self, node: str) -> list[psutil.Process]:
        """Return the processes that jobs have on a node, and those that started them."""
        found = set()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                environment = process.environ()
                if environment.get("SLURMD_NODENAME") == node and environment.get("SLURM_CONF", "").startswith(str(self.home)):
                    parent = process.parent()
                    if parent is not None and parent.name().startswith("slurmstepd"):
                        found.add(parent)
                    found |= {process, *process.children(recursive=True)}
        return list(found)

    def close(self) -> None:
        for name in reversed(self._daemons):
            self._daemons[name].terminate()
        for daemon in self._daemons.values():
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _start(self, name: str, *arguments: str) -> None:
        with (self.home / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                [str(_path(name.split()[0])), *arguments],
                env={**os.environ, "SLURM_CONF": str(self.home / "slurm.conf")},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=lambda: die_with_parent(signal.SIGTERM),
            )

    def _slurm(self, *command: str) -> str:
        """Run one of Slurm's commands. Returns what it prints, which is nothing where it fails."""
        environment = {**os.environ, "SLURM_CONF": str(self.home / "slurm.conf")}
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True).stdout

    def _until(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + HANGING
        while not ready():
            ended = [name for name, daemon in self._daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                tails = [path.read_text()[-1000:] for pattern in ("*.log", "*.out") for path in sorted(self.home.glob(pattern))]
                raise RuntimeError(f"{what} did not start; {ended} ended:\n" + "\n".join(tails))
            time.sleep(0.1)


def _path(command: str) -> str | None:
    return shutil.which(command, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"]))
