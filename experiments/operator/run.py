"""What `assess`, `tune` and `plan` say of five invented histories, and whether it holds."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from common import ROOT, Result, main

SEEDS, QUICK_SEEDS = (17, 18, 19, 20, 21), (17,)  # 17 is examples/history
OPTIONS = (
    *("--add", "4xA100"), *("--add", "8xA100"), *("--add", "4xV100"), *("--add", "8xV100"),
    *("--add", "8xMI250"), *("--add", "16xMI250"), *("--add", "4xA100+8xMI250"),
    *("--add", "4xH100"), *("--add", "8xL40S"), *("--remove", "4xv100"), *("--remove", "4xmi250"),
    *("--remove", "4xa100"),
)  # fmt: skip


def _generator() -> ModuleType:
    """Load the script that invents the example."""
    path = ROOT / "examples" / "history" / "make.py"
    spec = importlib.util.spec_from_file_location("invented_history", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _write(folder: Path, seed: int) -> None:
    """Write jobs.txt and nodes.txt of an invented history."""
    invented = _generator()
    cluster, jobs = invented.nodes(), invented.submitted(random.Random(seed))
    invented.schedule(jobs, cluster)
    (folder / "nodes.txt").write_text("".join(node.line() for node in cluster))
    lines = [invented.FIELDS + "\n", *(job.line() for job in jobs)]
    (folder / "jobs.txt").write_text("".join(lines))


def _adlro(folder: Path, *words: str) -> None:
    """Run a command in a folder.

    Raises:
        CalledProcessError: it failed.
    """
    call = [sys.executable, "-c", "from adlro.cli.main import main; main()", *words]
    subprocess.run(call, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _answers(folder: Path, seed: int) -> dict[str, Any]:
    """Return the JSON of the three commands on the history of a seed."""
    _write(folder, seed)
    _adlro(folder, "cluster", "import", "nodes.txt", "--out", "cluster.toml")
    found = {}
    for command, options in (("assess", ()), ("tune", ()), ("plan", OPTIONS)):
        where = ("--cluster", "cluster.toml", "--json", f"{command}.json")
        _adlro(folder, command, "jobs.txt", *where, *options)
        found[command] = json.loads((folder / f"{command}.json").read_text())
    return found


def _percent(figure: dict[str, Any]) -> str:
    low, high = figure["ci95"]
    return f"{figure['mean']:+.1f} ({low:+.1f} to {high:+.1f})"


def _row(answers: dict[str, Any]) -> tuple[list[str], dict[str, float]]:
    """Return the cells of a history, and the figures that are checked."""
    assess, tune, plan = answers["assess"], answers["tune"], answers["plan"]
    ours = next(row for row in assess["pooled"] if row["name"] == "adlro")["versus_today_pct"]
    worth = next(one for one in plan["worth"] if one["policy"] == "adlro")
    tau, twin = plan["agreement"]["kendall_tau"], assess["calibration"]["within_pct"]
    gain, left = tune["gain"], tune["adlro"]["left"]
    cells = [
        f"{twin:.0f}",
        assess["verdict"]["answer"],
        _percent(ours),
        f"{tune['verdict']}: {_percent(gain)}",
        _percent(left),
        plan["options"][0]["name"],
        f"more than {worth['most']}"
        if worth["gpus"] is None
        else f"{worth['gpus']:.0f} {worth['model']}",
        f"{tau:.2f}",
    ]
    figures = {"adlro_pct": ours["mean"], "tuned_pct": gain["mean"], "tau": tau, "twin_pct": twin}
    return cells, figures


def make(quick: bool) -> Result:
    """Make the table: a row for each history."""
    table, figures, details = [], {}, {}
    for seed in QUICK_SEEDS if quick else SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            answers = _answers(Path(folder), seed)
        cells, found = _row(answers)
        name = f"history {seed}"
        table.append([name, *cells])
        figures[name], details[name] = found, answers
    head = (
        "invented history", "twin off by, %", "verdict", "adlro against today, %",
        "tuned Slurm: gain, %", "adlro beyond that, %", "best of 12 options", "adlro is worth",
        "Kendall's tau",
    )  # fmt: skip
    return Result(head, table, figures, details)


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", Path(__file__).parent, make))
