"""A real Slurm on loopback with fake typed GPUs: munge, MariaDB, slurmdbd, slurmctld, slurmds.

Everything lives below one folder and is stopped when the context ends. Several clusters may run at
once: each takes free ports of its own. Jobs are real processes; GPUs are links to /dev/null.

    with SlurmCluster(folder) as slurm:
        slurm.run("sbatch", "--gres=gpu:volta:2", "--wrap", "sleep 3")
        slurm.wait_until_empty()
        print(slurm.run("sacct", "-P", "-X"))
"""

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.tools.slurm_config import (
    NODES,
    PARTITIONS,
    Place,
    gres_conf,
    slurm_conf,
    slurmdbd_conf,
)

PACKAGES = "munge slurmctld slurmd slurmdbd slurm-client mariadb-server-core mariadb-client-core"
PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sacct")
SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
LONGEST_SOCKET = 107  # bytes of a Unix socket's path on Linux


class SlurmError(RuntimeError):
    """A daemon or command of the test cluster failed; the message holds what it wrote."""


def missing():
    """Install Slurm if it is absent; the reason why it cannot be used here, or an empty text."""
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons here"
    if _has_programs():
        return ""
    install = [Path(__file__).with_name("apt_install.sh"), "Slurm", " ".join(PROGRAMS), PACKAGES]
    done = subprocess.run(install, capture_output=True, text=True, timeout=1500, check=False)
    return "" if _has_programs() else done.stderr.strip() or "Slurm is not installed"


class SlurmCluster:
    """A Slurm that runs while the context is open.

    Args:
        folder: where all files go; created if absent, and left for inspection. A second cluster in
            the same folder finds the accounts and jobs of the first.
        nodes: one slurmd each.
        partitions: as in slurm.conf; a node may be in several.
        parameters: lines of slurm.conf that are added to `slurm_config.PARAMETERS` or replace
            them, such as `{"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000"}`.

    Attributes:
        env: the environment in which Slurm's commands talk to this cluster.
        conf: its slurm.conf.
    """

    def __init__(self, folder, nodes=NODES, partitions=PARTITIONS, parameters=None):
        self.folder = Path(folder).resolve()
        self.nodes, self.partitions = tuple(nodes), tuple(partitions)
        self.parameters = parameters or {}
        self.conf = self.folder / "etc" / "slurm.conf"
        self._database = self.folder / "run" / "mariadb.socket"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH"))}
        self.env |= {"PATH": SEARCH_PATH, "SLURM_CONF": str(self.conf), "LC_ALL": "C"}
        self.env["MYSQL_UNIX_PORT"] = str(self._database)
        self._address, self._prefix = _loopback()
        self._daemons: dict[str, subprocess.Popen] = {}  # in the order of their starts

    def __enter__(self):
        try:
            place = self._write_files()
            self._start_all(place)
        except BaseException:
            self._stop_all()
            raise
        return self

    def __exit__(self, *_):
        try:
            # slurmctld may be dead; what still runs is killed below.
            with contextlib.suppress(SlurmError, subprocess.TimeoutExpired):
                self.cancel_all()
        finally:
            self._stop_all()

    def run(self, *command, timeout=30.0):
        """Run one of Slurm's commands and return what it prints; SlurmError if it fails."""
        words = [str(word) for word in command]
        done = subprocess.run(
            [*self._prefix, *words],
            env=self.env, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SlurmError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def submit(self, *options):
        """Submit a batch job by `sbatch` and return its id."""
        return int(self.run("sbatch", "--parsable", *options).strip())

    def jobs(self):
        """Ids of the jobs that wait, run or complete."""
        return [int(word) for word in self.run("squeue", "-h", "-o", "%A").split()]

    def wait_until_empty(self, seconds=60.0, every=0.5):
        """Wait until no job waits, runs or completes; SlurmError when the time is over."""
        reason = f"jobs are still in the queue after {seconds:g} s"
        _wait(lambda: not self.jobs(), reason, seconds, every)

    def cancel_all(self):
        """Cancel every job and wait until the queue is empty."""
        if jobs := self.jobs():
            self.run("scancel", *sorted(set(jobs)))
            self.wait_until_empty(30.0)

    def wait_until_idle(self, seconds=60.0):
        """Wait until slurmctld has every node as idle."""
        said = {}

        def idle():
            with contextlib.suppress(SlurmError, subprocess.TimeoutExpired):
                lines = self.run("sinfo", "-h", "-N", "-o", "%N %t", timeout=10).splitlines()
                said.update(line.split() for line in lines)
            return all(said.get(node.name) == "idle" for node in self.nodes)

        try:
            _wait(idle, "nodes are not idle", seconds, 0.1)
        except SlurmError as error:
            raise SlurmError(f"{error}: {said}\n{self.log('slurmctld')[-2000:]}") from None

    def log(self, name):
        """The log of one daemon: munged, mariadbd, slurmdbd, slurmctld or slurmd-<node>."""
        files = [self.folder / "log" / f"{name}.{kind}" for kind in ("out", "log")]
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    def kill(self, name, signal_=signal.SIGKILL):
        """Send a signal to one daemon (named as in `log`) and wait until it has ended."""
        self._daemons[name].send_signal(signal_)
        self._daemons[name].wait(30)

    def start(self, name):
        """Start slurmctld or slurmd-<node>, for example once more after `kill`."""
        kind, _, node = name.partition("-")
        self._start(name, [kind, "-D", *(["-N", node] if node else [])])

    def _write_files(self):
        """Write every configuration file; the place that they describe."""
        if len(os.fsencode(self._database)) > LONGEST_SOCKET:
            raise SlurmError(
                f"{self.folder}: too long for the path of a socket; take a shorter one"
            )
        spools = [f"spool/{node.name}" for node in self.nodes]
        for name in ("etc", "run", "log", "state", "dev", "db", *spools):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for index in range(max(node.gpus for node in self.nodes)):
            link = self.folder / "dev" / f"gpu{index}"
            if not link.is_symlink():
                link.symlink_to("/dev/null")
        ports = _free_ports(self._address, 2 + len(self.nodes))
        place = Place(str(self.folder), self._address, ports[0], ports[1], tuple(ports[2:]))
        # 22.05 fails without the name of a cgroup plugin; later versions can do without cgroups.
        plugin = "disabled" if _version() >= (23, 11) else "cgroup/v1"
        texts = {
            "slurm.conf": slurm_conf(place, self.nodes, self.partitions, self.parameters),
            "gres.conf": gres_conf(place, self.nodes),
            "cgroup.conf": f"CgroupPlugin={plugin}\n",
            "slurmdbd.conf": slurmdbd_conf(place),
        }
        for name, text in texts.items():
            (self.folder / "etc" / name).write_text(text)
        (self.folder / "etc" / "slurmdbd.conf").chmod(0o600)
        key = self.folder / "run" / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        return place

    def _start_all(self, place):
        run, log, data = (self.folder / name for name in ("run", "log", "db"))
        munge = [f"--{name}-file={run}/munge.{name}" for name in ("key", "pid", "seed")]
        munge += [f"--socket={run}/munge.socket", f"--log-file={log}/munged.log"]
        # --force: pytest's folders may not be entered by others, which munged would refuse.
        self._start("munged", ["munged", "--foreground", "--force", *munge])
        temporary = self.folder / "tmp"  # in /tmp, two databases would delete each other's tables
        temporary.mkdir(exist_ok=True)
        common = ["--no-defaults", "--user=root", f"--datadir={data}", f"--tmpdir={temporary}"]
        if not (data / "mysql").exists():
            new = ["--auth-root-authentication-method=normal", "--skip-test-db"]
            self.run("mariadb-install-db", *common, *new, timeout=300)
        common += ["--skip-networking", f"--socket={self._database}"]
        common += ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
        self._start("mariadbd", ["mariadbd", *common, f"--pid-file={run}/mariadb.pid"])
        self._wait_for_daemon("munged", lambda: (run / "munge.socket").exists())
        self._wait_for_daemon("mariadbd", lambda: _answers(str(self._database)))
        for name, port in (("slurmdbd", place.slurmdbd), ("slurmctld", place.slurmctld)):
            self.start(name)
            self._wait_for_daemon(name, lambda port=port: _answers((self._address, port)))
        for node in self.nodes:
            self.start(f"slurmd-{node.name}")
        self.wait_until_idle()

    def _start(self, name, words):
        # setpriv ends the daemon with this process, should that be killed.
        command = ["setpriv", "--pdeathsig", "TERM", "--", *self._prefix, *words]
        self._daemons.pop(name, None)
        with (self.folder / "log" / f"{name}.out").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                command, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def _wait_for_daemon(self, name, claim, seconds=120.0):
        process = self._daemons[name]
        try:
            _wait(lambda: process.poll() is not None or claim(), "no answer", seconds, 0.05)
            if process.poll() is not None:
                raise SlurmError(f"ended with status {process.returncode}")
        except SlurmError as error:
            raise SlurmError(f"{name}: {error}\n{self.log(name)[-3000:]}") from None

    def _stop_all(self):
        """Stop the daemons, newest first, then the processes of jobs that are left."""
        for name, process in self._daemons.items():
            if name.startswith("slurmd-"):  # all at once: each takes a second
                process.terminate()
        for process in reversed(self._daemons.values()):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._daemons = {}
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def processes(self):
        """Ids of this cluster's daemons and jobs: they have its SLURM_CONF in their environment."""
        mark, found = f"SLURM_CONF={self.conf}".encode(), []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if mark in entry.read_bytes().split(b"\0"):
                    found.append(int(entry.parent.name))
        return [each for each in found if each != os.getpid()]


def _has_programs():
    return all(shutil.which(name, path=SEARCH_PATH) for name in PROGRAMS)


def _wait(claim, reason, seconds, every):
    """Wait until a condition holds; SlurmError with a reason when the time is over."""
    end = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > end:
            raise SlurmError(reason)
        time.sleep(every)


def _loopback():
    """Address that daemons bind to, and the words before a command that make it a loopback one.

    With NoInAddrAny Slurm binds to the address of the host's own name, whatever NodeAddr says.
    Where that is not a loopback address the daemons run in a UTS namespace in which the host is
    called localhost.
    """
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        address = ""
    if address.startswith("127."):
        return address, []
    return "127.0.0.1", ["unshare", "--uts", "sh", "-c", 'hostname localhost; exec "$@"', "sh"]


def _free_ports(address, count):
    """Ports that nobody listens on, below those the kernel gives to outgoing connections."""
    with contextlib.ExitStack() as held:
        ports = []
        while len(ports) < count:
            line = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # taken
                line.bind((address, random.SystemRandom().randrange(20_000, 32_000)))
                ports.append(line.getsockname()[1])
        return ports


def _answers(address):
    """Whether something accepts connections at a Unix socket's path or a (host, port)."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as line:
        line.settimeout(2)
        return line.connect_ex(address) == 0


def _version():
    """Slurm's version, for example (22, 5)."""
    program = shutil.which("slurmctld", path=SEARCH_PATH)
    done = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=30, check=True)
    return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)", done.stdout).groups())
