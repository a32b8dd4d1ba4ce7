"""A real Slurm on loopback with fake typed GPUs: munge, MariaDB, slurmdbd, slurmctld and one slurmd a node.

Everything lives below one folder and is stopped when the context ends. Several clusters may run at once:
each takes free ports of its own. Jobs are real processes; GPUs are links to /dev/null.

    with SlurmCluster(folder) as slurm:
        slurm.run("sbatch", "--gres=gpu:volta:2", "--wrap", "sleep 3")
        slurm.wait_until_empty()
        print(slurm.run("sacct", "-P", "-X"))
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

INSTALL = Path(__file__).with_name("install_slurm.sh")
PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacct")
SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
LONGEST_SOCKET = 107  # bytes of a Unix socket's path on Linux


class Node(NamedTuple):
    """One slurmd: a node of `gpus` fake GPUs of one type."""

    name: str
    gpu: str
    gpus: int = 4
    cores: int = 16
    memory_mb: int = 16000
    weight: int = 1


class Partition(NamedTuple):
    """A Slurm partition; `options` is further slurm.conf text such as `MaxTime=60`."""

    name: str
    nodes: tuple[str, ...]
    options: str = ""


NODES = (Node("v1", "volta"), Node("v2", "volta"), Node("t1", "turing"), Node("r1", "radeon"))
PARTITIONS = (
    Partition("gpu", ("v1", "v2", "t1"), "Default=YES"),
    Partition("lab", ("t1", "r1")),
)
PARAMETERS = {
    "AuthType": "auth/munge",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "MailProg": "/bin/true",
    "MpiDefault": "none",
    "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
    "SlurmdParameters": "config_overrides",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "GresTypes": "gpu",
    "PriorityType": "priority/basic",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStoreFlags": "job_comment",
    "ReturnToService": "2",
    "MinJobAge": "300",
    "SlurmdTimeout": "20",
    "DefMemPerCPU": "100",
}


class SlurmFailed(RuntimeError):
    """A daemon or command of the test cluster failed; the message holds what it wrote."""


def missing() -> str:
    """Install Slurm if it is absent; the reason why there is none, or an empty text."""
    if all(shutil.which(name, path=SEARCH_PATH) for name in PROGRAMS):
        return "" if os.geteuid() == 0 else "only root can start Slurm's daemons here"
    done = subprocess.run([INSTALL], capture_output=True, text=True, timeout=1500, check=False)
    if all(shutil.which(name, path=SEARCH_PATH) for name in PROGRAMS):
        return ""
    return done.stderr.strip() or "Slurm is not installed"


class SlurmCluster:
    """A Slurm that runs while the context is open.

    Args:
        folder: where all files go; created if absent, and left for inspection.
        nodes: one slurmd each.
        partitions: as in slurm.conf; a node may be in several.
        parameters: lines of slurm.conf that are added or replace those of `PARAMETERS`, for example
            `{"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000"}`.

    Attributes:
        env: the environment in which Slurm's commands talk to this cluster.
        conf: its slurm.conf.
    """

    def __init__(self, folder, nodes=NODES, partitions=PARTITIONS, parameters=None):
        self.folder = Path(folder).resolve()
        self.nodes, self.partitions = tuple(nodes), tuple(partitions)
        self.parameters = PARAMETERS | (parameters or {})
        self.conf = self.folder / "etc" / "slurm.conf"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH"))}
        self.env |= {"PATH": SEARCH_PATH, "SLURM_CONF": str(self.conf), "LC_ALL": "C"}
        self.env["MYSQL_UNIX_PORT"] = str(self.folder / "run" / "mariadb.socket")
        self._address, self._prefix = _loopback()
        self._daemons: list[tuple[str, subprocess.Popen]] = []

    def __enter__(self):
        try:
            self._write_files()
            self._start_all()
        except BaseException:
            self._stop_all()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.cancel_all()
        except (SlurmFailed, subprocess.TimeoutExpired):
            pass  # slurmctld may be dead; what still runs is killed below
        finally:
            self._stop_all()

    def run(self, *command, timeout=30.0):
        """Run one of Slurm's commands and return what it prints; raises SlurmFailed when it fails."""
        words = [str(word) for word in command]
        done = subprocess.run(
            [*self._prefix, *words], env=self.env, capture_output=True, text=True, timeout=timeout,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise SlurmFailed(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def submit(self, *options):
        """Submit a batch job by `sbatch` and return its id."""
        return int(self.run("sbatch", "--parsable", *options).strip())

    def jobs(self):
        """Ids of the jobs that wait, run or complete."""
        return [int(word) for word in self.run("squeue", "-h", "-o", "%A").split()]

    def wait_until_empty(self, seconds=60.0, every=0.5):
        """Wait until no job waits, runs or completes; raises SlurmFailed when the time is over."""
        self._wait(
            lambda: not self.jobs(), f"jobs still in the queue after {seconds:g} s", seconds, every
        )

    def cancel_all(self):
        """Cancel every job and wait until the queue is empty."""
        if jobs := self.jobs():
            self.run("scancel", *sorted(set(jobs)))
            self.wait_until_empty(30.0)

    def log(self, name):
        """The log of one daemon: munged, mariadbd, slurmdbd, slurmctld or slurmd-<node>."""
        file = self.folder / "log" / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def kill(self, name, signal_=signal.SIGKILL):
        """Send a signal to one daemon (named as in `log`) and wait until it has ended."""
        for each, process in self._daemons:
            if each == name and process.poll() is None:
                process.send_signal(signal_)
                process.wait(30)

    def start(self, name):
        """Start slurmctld or slurmd-<node> once more after `kill`."""
        kind, _, node = name.partition("-")
        self._start(name, [kind, "-D", *(["-N", node] if node else [])])

    def wait_until_idle(self, seconds=60.0):
        """Wait until slurmctld has every node as idle."""
        said = {}

        def idle():
            try:
                lines = self.run("sinfo", "-h", "-N", "-o", "%N %t", timeout=10).split("\n")
            except (SlurmFailed, subprocess.TimeoutExpired):
                return False
            said.update(line.split() for line in lines if line)
            return all(said.get(node.name) == "idle" for node in self.nodes)

        try:
            self._wait(idle, "nodes are not idle", seconds, 0.1)
        except SlurmFailed as error:
            raise SlurmFailed(f"{error}: {said}\n{self.log('slurmctld')[-2000:]}") from None

    def _write_files(self):
        for name in ("etc", "run", "log", "state", "dev", "db"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for node in self.nodes:
            (self.folder / "spool" / node.name).mkdir(parents=True, exist_ok=True)
        if len(self.env["MYSQL_UNIX_PORT"].encode()) > LONGEST_SOCKET:
            raise SlurmFailed(
                f"{self.folder}: the path is too long for a Unix socket; take a shorter one"
            )
        for index in range(max(node.gpus for node in self.nodes)):
            link = self.folder / "dev" / f"gpu{index}"
            if not link.is_symlink():
                link.symlink_to("/dev/null")
        self._secret("run/munge.key", os.urandom(128))
        ports = _free_ports(self._address, 2 + len(self.nodes))
        self._ports = {"slurmctld": ports[0], "slurmdbd": ports[1]}
        self._secret("etc/slurm.conf", self._slurm_conf(ports[2:]).encode(), 0o644)
        self._secret("etc/gres.conf", self._gres_conf().encode(), 0o644)
        # 22.05 fails without a cgroup plugin's name; later versions can do without cgroups.
        plugin = "disabled" if _version() >= (23, 11) else "cgroup/v1"
        self._secret("etc/cgroup.conf", f"CgroupPlugin={plugin}\n".encode(), 0o644)
        self._secret("etc/slurmdbd.conf", self._slurmdbd_conf().encode())

    def _secret(self, name, content, mode=0o600):
        file = self.folder / name
        file.write_bytes(content)
        file.chmod(mode)

    def _slurm_conf(self, ports):
        f, munge = self.folder, self.folder / "run" / "munge.socket"
        types = sorted({node.gpu for node in self.nodes})
        lines = {
            "ClusterName": "adlro",
            "SlurmctldHost": f"localhost({self._address})",
            "SlurmctldPort": self._ports["slurmctld"],
            "AuthInfo": f"socket={munge},cred_expire=5",
            "StateSaveLocation": f / "state",
            "SlurmdSpoolDir": f / "spool" / "%n",
            "SlurmctldPidFile": f / "run" / "slurmctld.pid",
            "SlurmdPidFile": f / "run" / "slurmd-%n.pid",
            "SlurmctldLogFile": f / "log" / "slurmctld.log",
            "SlurmdLogFile": f / "log" / "slurmd-%n.log",
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": self._address,
            "AccountingStoragePort": self._ports["slurmdbd"],
            "AccountingStoragePass": munge,
            "AccountingStorageTRES": ",".join(["gres/gpu", *(f"gres/gpu:{t}" for t in types)]),
        } | self.parameters
        text = [f"{name}={value}" for name, value in lines.items()]
        for node, port in zip(self.nodes, ports, strict=True):
            text.append(
                f"NodeName={node.name} NodeHostname=localhost NodeAddr={self._address} Port={port} "
                f"CPUs={node.cores} RealMemory={node.memory_mb} Gres=gpu:{node.gpu}:{node.gpus} "
                f"Feature={node.gpu} Weight={node.weight} State=UNKNOWN"
            )
        for each in self.partitions:
            nodes = ",".join(each.nodes)
            text.append(f"PartitionName={each.name} Nodes={nodes} State=UP {each.options}")
        return "\n".join(text) + "\n"

    def _gres_conf(self):
        return "".join(
            f"NodeName={n.name} Name=gpu Type={n.gpu} File={self.folder}/dev/gpu[0-{n.gpus - 1}]\n"
            for n in self.nodes
        )

    def _slurmdbd_conf(self):
        lines = {
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/run/munge.socket",
            "DbdHost": "localhost",
            "DbdAddr": self._address,
            "DbdPort": self._ports["slurmdbd"],
            "SlurmUser": "root",
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "localhost",
            "StorageUser": "root",
            "StorageLoc": "slurm_acct",
            "CommunicationParameters": "NoInAddrAny",
            "LogFile": self.folder / "log" / "slurmdbd.log",
            "PidFile": self.folder / "run" / "slurmdbd.pid",
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def _start_all(self):
        run, log, data = (self.folder / name for name in ("run", "log", "db"))
        munge = [f"--{name}-file={run}/munge.{name}" for name in ("key", "pid", "seed")]
        self._start("munged", ["munged", "-F", "-f", f"--socket={run}/munge.socket",
                               f"--log-file={log}/munged.log", *munge])  # fmt: skip
        if not (data / "mysql").exists():
            self.run("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}",
                     "--auth-root-authentication-method=normal", "--skip-test-db", timeout=300)  # fmt: skip
        self._start("mariadbd", [
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-networking",
            f"--socket={self.env['MYSQL_UNIX_PORT']}", f"--pid-file={run}/mariadb.pid",
            "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0",
        ])  # fmt: skip
        self._wait_for_daemon("munged", lambda: (run / "munge.socket").exists())
        self._wait_for_daemon("mariadbd", lambda: _answers(self.env["MYSQL_UNIX_PORT"]), 120)
        for name in ("slurmdbd", "slurmctld"):
            self._start(name, [name, "-D"])
            port = self._ports[name]
            self._wait_for_daemon(name, lambda port=port: _answers((self._address, port)), 120)
        for node in self.nodes:
            self.start(f"slurmd-{node.name}")
        self.wait_until_idle()

    def _start(self, name, words):
        self._daemons = [each for each in self._daemons if each[0] != name]
        with (self.folder / "log" / f"{name}.out").open("ab") as out:
            # setpriv ends the daemon with this process, should it be killed.
            command = ["setpriv", "--pdeathsig", "TERM", "--", *self._prefix, *words]
            process = subprocess.Popen(command, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=out, start_new_session=True)  # fmt: skip
        self._daemons.append((name, process))

    def _wait_for_daemon(self, name, claim, seconds=60.0):
        process = dict(self._daemons)[name]
        try:
            self._wait(lambda: process.poll() is not None or claim(), "no answer", seconds, 0.05)
            if process.poll() is not None:
                raise SlurmFailed(f"ended with status {process.returncode}")
        except SlurmFailed as error:
            out = (self.folder / "log" / f"{name}.out").read_text(errors="replace")
            raise SlurmFailed(f"{name}: {error}\n{out[-2000:]}{self.log(name)[-2000:]}") from None

    @staticmethod
    def _wait(claim, reason, seconds, every):
        end = time.monotonic() + seconds
        while not claim():
            if time.monotonic() > end:
                raise SlurmFailed(reason)
            time.sleep(every)

    def _stop_all(self):
        """Stop the daemons, newest first, then whatever jobs are left."""
        for name, process in reversed(self._daemons):
            if name.startswith("slurmd-"):  # all at once: each takes a second
                process.terminate()
        for _, process in reversed(self._daemons):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._daemons = []
        mark = f"SLURM_CONF={self.conf}".encode()
        for entry in Path("/proc").glob("[0-9]*/environ"):
            try:
                if (
                    mark in entry.read_bytes().split(b"\0")
                    and int(entry.parent.name) != os.getpid()
                ):
                    os.kill(int(entry.parent.name), signal.SIGKILL)
            except OSError:
                continue  # it has ended meanwhile


def _loopback():
    """Address the daemons bind to, and the words before a command that make it a loopback one.

    With NoInAddrAny Slurm binds to the address of the host's own name, whatever NodeAddr says. Where that
    is not a loopback address the daemons run in a UTS namespace in which the host is called localhost.
    """
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = ""
    if address.startswith("127."):
        return address, []
    return "127.0.0.1", ["unshare", "--uts", "sh", "-c", 'hostname localhost; exec "$@"', "sh"]


def _free_ports(address, count):
    """Ports that nobody listens on, below those that the kernel gives to outgoing connections."""
    held = []
    try:
        while len(held) < count:
            line = socket.socket()
            held.append(line)
            try:
                line.bind((address, random.SystemRandom().randrange(20_000, 32_000)))
            except OSError:
                held.pop().close()
        return [line.getsockname()[1] for line in held]
    finally:
        for line in held:
            line.close()


def _answers(address):
    """Whether something accepts connections at a Unix socket's path or a (host, port)."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as line:
        line.settimeout(2)
        return line.connect_ex(address) == 0


def _version():
    """Slurm's version, for example (22, 5)."""
    said = subprocess.run(["slurmctld", "-V"], env=os.environ | {"PATH": SEARCH_PATH},
                          capture_output=True, text=True, timeout=30, check=False).stdout  # fmt: skip
    found = re.search(r"(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else (0, 0)
