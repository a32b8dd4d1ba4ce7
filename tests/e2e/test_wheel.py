"""The wheel: what it holds, and that it works alone in a clean environment."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "adlro"
DATA = [
    "py.typed", "model/gpus.toml", "evaluate/report/page.css", "evaluate/report/page.js",
    "scenarios/*.toml", "policies/shipped/*.npz", "policies/shipped/*.json",
]  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    subprocess.run([*map(str, build), str(ROOT)], check=True, capture_output=True)
    return next(folder.glob("adlro-*.whl"))


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel):
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = [path for pattern in ("**/*.py", *DATA) for path in PACKAGE.glob(pattern)]
    package = {f"adlro/{path.relative_to(PACKAGE).as_posix()}" for path in wanted}
    assert found == package | {"adlro_gymnasium.pth"}
    assert all(any(PACKAGE.glob(pattern)) for pattern in DATA)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Runs a program of an environment that has the wheel, its extra `gym`, and nothing of ours."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=True)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(program, *args):
        words = [str(home / "bin" / program), *map(str, args)]
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=home, env=inherited, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("pip", "install", "--quiet", f"{wheel}[gym]")
    run.home = home
    return run


@pytest.mark.slow
def test_a_comparison_with_the_learned_policy_and_its_report_come_out_of_the_wheel(installed):
    policies = ("--policies", "adlro,min-min")
    outputs = ("--json", "out.json", "--report", "out")
    installed("adlro", "compare", "paper16", *policies, "--seeds", 2, "--jobs", 50, *outputs)
    rows = json.loads((installed.home / "out.json").read_text())["policies"]
    assert [row["name"] for row in rows] == ["adlro", "min-min"]
    page = (installed.home / "out" / "report.html").read_text(encoding="utf-8")
    assert (PACKAGE / "evaluate/report/page.css").read_text(encoding="utf-8").strip() in page


@pytest.mark.slow
def test_the_api_and_the_environment_come_out_of_the_wheel_without_torch(installed):
    code = (
        "import adlro, gymnasium, sys\n"
        "print(adlro.simulate('gavel16', 'fcfs').policy)\n"
        "env = gymnasium.make('adlro/Cluster-v0', jobs=5)\n"
        "print(env.reset(seed=7)[1]['seed'], 'torch' in sys.modules)\n"
        "print(adlro.__file__)\n"
    )
    policy, episode, file = installed("python", "-W", "error", "-c", code).splitlines()
    assert (policy, episode) == ("fcfs", "7 False")
    assert Path(file).is_relative_to(installed.home)
