"""Hostile command lines and files, made from seeds, and what must hold after each of them.

A case is a folder of damaged input files and a command line over them. Whatever the command does,
it must end with one line (or a result), leave its input as it was, and write whole files or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.commands import called
from tests.e2e.hostile_material import CLUSTER, NUMBERS, POLICIES, SCENARIO, WORDS, damage

SECONDS = 120  # that a command may take on a busy machine
_ROOT = Path(__file__).parents[2]
_SHIPPED = _ROOT / "src" / "adlro" / "policies" / "shipped"
_HISTORIES = sorted((_ROOT / "tests" / "data" / "histories").iterdir())
_LEFT_OVER = ".adlro-"  # how files begin that are being written


class Case(NamedTuple):
    """One command line, and the files that it may make."""

    args: tuple[str, ...]
    outputs: tuple[str, ...]


class _Folder:
    """The files of a case, and odd names among them."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self._rng, self._folder = rng, folder
        self._count = 0
        (folder / "loop").symlink_to("loop")
        (folder / "zero").symlink_to("/dev/zero")
        (folder / "dir").mkdir()
        os.mkfifo(folder / "pipe")

    def _name(self, stem: str) -> str:
        self._count += 1
        odd = self._rng.choice(("", "", "", " [red]", "\x1b[31m", os.fsdecode(b"\xe9"), "\u202e"))
        return f"{self._count}{odd}{stem}"

    def file(self, stem: str, data: bytes) -> str:
        """A file with damaged content; now and then another thing instead."""
        if self._rng.random() < 0.12:
            return self.odd_place(stem)
        name = self._name(stem)
        (self._folder / name).write_bytes(damage(self._rng, data))
        return f"./{name}"

    def odd_place(self, stem: str = "") -> str:
        """A path at which there is nothing to read, or nothing to write."""
        some = (
            "./none",
            "./loop",
            "./zero",
            "./dir",
            "./pipe",
            "./none/x",
            "./loop/x",
            "/dev/null",
        )
        long = ("./" + "x" * 300, "./" + "y/" * 3000, "./" + "z" * 200 + "/" + "z" * 200)
        return self._rng.choice((*some, *long)) + self._rng.choice(("", stem))

    def output(self, stem: str) -> str:
        """A place to write to: a good one, mostly."""
        if self._rng.random() < 0.2:  # never a pipe: to wait for a reader is what pipes do
            return self.odd_place(stem).replace("pipe", "none")
        return f"./{self._name(stem)}"

    def scenario(self) -> str:
        if self._rng.random() < 0.25:
            return self._rng.choice(
                ("paper16", "paper16-single", "rough64", "papre16", "./paper16")
            )
        text = self._rng.choice((SCENARIO, SCENARIO, 'base = "paper16"\njobs = 9\n', CLUSTER))
        if self._rng.random() < 0.2:
            text = f"history = {json.dumps(self.history())}\ncluster = 'c.toml'\n"
            (self._folder / "c.toml").write_bytes(damage(self._rng, CLUSTER.encode()))
        return self.file(".toml", text.encode())

    def cluster(self) -> str:
        return self.file(".toml", CLUSTER.encode()) if self._rng.random() < 0.6 else self.scenario()

    def history(self) -> str:
        chosen = self._rng.choice(_HISTORIES)
        return self.file(chosen.suffix, chosen.read_bytes())

    def policy(self) -> str:
        rng = self._rng
        match rng.randrange(6):
            case 0:
                name = self.file(".py", rng.choice(POLICIES).encode())
            case 1:
                name = self.file(".npz", (_SHIPPED / "adlro.npz").read_bytes())
                card = (self._folder / name).with_suffix(".json")
                if name.endswith(".npz") and len(name) < 200 and card.parent.is_dir():
                    card.write_bytes(damage(rng, (_SHIPPED / "adlro.json").read_bytes()))
            case 2:
                name = rng.choice(WORDS)
            case _:
                name = rng.choice(("fcfs", "sjf", "min-min", "adlro", "pair-sjf"))
        return name


class _Maker:
    """Command lines over a folder."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self._rng, self._files = rng, _Folder(rng, folder)
        self._outputs: list[str] = []

    def case(self) -> Case:
        kinds = (
            self._compare, self._simulate, self._show, self._import, self._explain, self._trace,
            self._scenario, self._telemetry, self._train, self._nonsense,
        )  # fmt: skip
        args = self._rng.choices(kinds, (5, 5, 4, 3, 2, 5, 3, 2, 1, 1))[0]()
        if self._rng.random() < 0.05:
            args.insert(self._rng.randrange(len(args) + 1), self._rng.choice(WORDS))
        return Case(tuple(arg.replace("\0", "") for arg in args), tuple(self._outputs))

    def _number(self) -> str:
        return self._rng.choice(NUMBERS)

    def _some(self, options: dict[str, Callable[[], str]], share: float = 0.25) -> list[str]:
        args = []
        for name, value in options.items():
            if self._rng.random() < share:
                args += [name, value()]
        return args

    def _write(self, stem: str) -> Callable[[], str]:
        def place() -> str:
            if stem == ".json" and self._rng.random() < 0.3:
                return "-"
            self._outputs.append(self._files.output(stem))
            return self._outputs[-1]

        return place

    def _changes(self) -> list[str]:
        estimates = ("oracle", "request", "memory", "noisy:0.5", "nosy")
        options = {"--load": self._number, "--ageing": self._number}
        options["--estimates"] = lambda: self._rng.choice(estimates)
        jobs = self._rng.choice(("5", "9", "20", self._number()))
        return ["--jobs", jobs, *self._some(options, 0.12)]

    def _compare(self) -> list[str]:
        names = ",".join(self._files.policy() for _ in range(self._rng.randrange(1, 4)))
        options = {"--json": self._write(".json"), "--report": self._write("")}
        options["--threads"] = self._number
        flags = [flag for flag in ("--regression",) if self._rng.random() < 0.2]
        args = ["compare", self._files.scenario(), *self._changes(), "--policies", names]
        seeds = self._rng.choice(("1", "2", "3:5", "auto:50%:4", self._rng.choice(WORDS)))
        return [*args, "--seeds", seeds, *self._some(options, 0.15), *flags]

    def _simulate(self) -> list[str]:
        options = {"--json": self._write(".json"), "--gantt": self._write(".html")}
        options |= {"--telemetry": self._write(".csv"), "--telemetry-every": self._number}
        options |= {"--seed": self._number, "--policy": self._files.policy}
        args = ["simulate", self._files.scenario(), *self._changes()]
        return [*args, *self._some(options, 0.3)]

    def _show(self) -> list[str]:
        kind, what = self._rng.choice((
            ("scenario", self._files.scenario), ("cluster", self._files.cluster),
            ("policy", self._files.policy),
        ))  # fmt: skip
        return [kind, "show", what(), *(["--json"] if self._rng.random() < 0.4 else [])]

    def _import(self) -> list[str]:
        nodes = self._files.file(
            ".txt", (_ROOT / "examples" / "history" / "nodes.txt").read_bytes()
        )
        options = {
            "--gpu": lambda: self._rng.choice(("volta=V100", *WORDS)),
            "--name": self._number,
        }
        options["--partitions"] = self._files.history
        return ["cluster", "import", nodes, "--out", self._write(".toml")(), *self._some(options)]

    def _explain(self) -> list[str]:
        options = {"--at": self._number, "--decision": self._number, "--job": self._number}
        options |= {"--top": self._number, "--seed": self._number, "--json": self._write(".json")}
        policy = self._rng.choice(("min-min", "adlro", self._files.policy()))
        args = ["policy", "explain", policy, self._files.scenario(), *self._changes()]
        return [*args, *self._some(options)]

    def _trace(self) -> list[str]:
        command = self._rng.choice(("info", "convert", "anonymise", "predict"))
        args = ["trace", command, self._files.history()]
        if command in ("convert", "anonymise"):
            args.append(self._write(self._rng.choice((".npz", ".csv", ".swf", "")))())
        options = {"--column": lambda: self._rng.choice(("gpus=GPUs", *WORDS))}
        options["--format"] = lambda: self._rng.choice(("swf", "csv", "sacct", *WORDS))
        if command == "info":
            options["--gpus"] = self._number
        if command == "predict":
            options |= {"--warm-up": self._number, "--save": self._write(".npz")}
        return [*args, *self._some(options), *(["--lenient"] if self._rng.random() < 0.4 else [])]

    def _scenario(self) -> list[str]:
        options = {"--from": lambda: self._rng.choice(("50%", "2020-01-01", *NUMBERS))}
        options |= {"--to": options["--from"], "--load-scale": self._number}
        options |= {"--warm-up": self._number, "--jobs": self._number}
        args = ["trace", "scenario", self._files.history(), "--cluster", self._files.cluster()]
        return [*args, "--out", self._write(".toml")(), *self._some(options, 0.15)]

    def _telemetry(self) -> list[str]:
        urls = (
            "http://127.0.0.1:1",
            "http://127.0.0.1:1/metrics",
            "http://[::1",
            "ftp://x",
            *WORDS,
        )
        url = self._rng.choice(urls)
        options = {"--max-age": self._number, "--timeout": self._number}
        options |= {
            "--need": lambda: self._rng.choice(("power", *WORDS)),
            "--json": self._write(".json"),
        }
        source = self._rng.choice(("--prometheus", "--exporter"))
        return ["telemetry", "check", source, url, *self._some(options)]

    def _train(self) -> list[str]:
        """Never one that would start: a training takes minutes."""
        wrong = self._rng.choice((("--budget", "nan"), ("--seed", "-1"), ("--threads", "0")))
        options = {"--episodes": self._number, "--json": self._write(".json")}
        return ["train", self._files.scenario(), *self._some(options), *wrong]

    def _nonsense(self) -> list[str]:
        return [self._rng.choice((*WORDS, "trace")) for _ in range(self._rng.randrange(4))]


def make(seed: int, folder: Path) -> Case:
    """The files and the command line of a seed."""
    return _Maker(random.Random(seed), folder).case()


def _state(folder: Path) -> dict[str, str]:
    """Every file of a folder and what it holds."""
    state = {}
    for path in sorted(folder.rglob("*")):
        is_file = path.is_file() and not path.is_symlink()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
        state[str(path.relative_to(folder))] = content
    return state


class _HangError(BaseException):
    """A command took too long."""


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _in_process(case: Case, folder: Path) -> subprocess.CompletedProcess[str]:
    with _alarm(SECONDS):
        return called(*case.args, cwd=folder)


def _in_a_process(case: Case, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "adlro", *case.args]
    done = subprocess.run(
        command, capture_output=True, cwd=folder, timeout=2 * SECONDS, check=False
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(command, done.returncode, out, err)


def _valid_json(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def _complaints(result: subprocess.CompletedProcess[str], case: Case) -> Iterator[str]:
    """What is wrong with what a command printed."""
    if result.returncode not in (0, 1, 2):
        yield f"status {result.returncode}"
    if "Traceback" in result.stderr:
        yield "a traceback"
    if result.returncode == 2:
        lines = result.stderr.splitlines()
        said = [line for line in lines if line.startswith("adlro: ")]
        if len(said) != 1 or lines[-1] != said[0]:
            yield "not one line"
    shown = [*result.stdout.splitlines(), *result.stderr.splitlines()]
    if not all(line.isprintable() for line in shown if "\t" not in line):
        yield "unprintable characters"
    if result.returncode == 0 and "-" in case.args and "--json" in case.args:
        is_printed = case.args[case.args.index("--json") + 1 : case.args.index("--json") + 2] == (
            "-",
        )
        if is_printed and not _valid_json(result.stdout):
            yield "JSON that is not valid"


def _damages(
    before: dict[str, str], after: dict[str, str], case: Case, status: int
) -> Iterator[str]:
    """Files that were changed, left behind, or written by a command that failed."""
    for name, content in before.items():
        if after.get(name) != content:
            yield f"{name!r} was changed"
    outputs = {os.path.normpath(name) for name in case.outputs}
    for name in after.keys() - before.keys():
        if _LEFT_OVER in name:
            yield f"{name!r} was left behind"
        is_wanted = any(name == out or name.startswith(f"{out}/") for out in outputs)
        is_cache = "__pycache__" in name or name.startswith("dir/")
        if not is_wanted and not is_cache:
            yield f"{name!r} was made"
        if status == 2 and is_wanted:
            yield f"{name!r} was written by a command that failed"


def problems(seed: int, *, is_apart: bool = False) -> list[str]:
    """What goes wrong with the case of a seed; nothing, that is.

    Args:
        seed: of the case.
        is_apart: whether to run it in a process of its own.
    """
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        case = make(seed, folder)
        before = _state(folder)
        try:
            result = (_in_a_process if is_apart else _in_process)(case, folder)
        except (_HangError, subprocess.TimeoutExpired):
            return [f"seed {seed}: {case.args!r}: hangs"]
        except BaseException:  # noqa: BLE001  any exception is the finding: a user would see a traceback
            story = traceback.format_exc(limit=-4)
            return [f"seed {seed}: {case.args!r}: {story}"]
        found = [*_complaints(result, case)]
        found += _damages(before, _state(folder), case, result.returncode)
        for name in case.outputs:
            path = folder / name
            if name.endswith(".json") and len(name) < 250 and path.is_file():
                found += [] if _valid_json(path.read_text()) else [f"{name!r} is not valid JSON"]
        said = result.stderr[-300:]
        return [f"seed {seed}: {case.args!r}: {one}: {said}" for one in found]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
