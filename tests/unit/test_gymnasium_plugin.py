"""The environment is known to gymnasium in every Python that has adlro, and costs nothing else."""

import subprocess
import sys
from pathlib import Path

PTH = Path(__file__).parents[2] / "packaging" / "adlro_gymnasium.pth"
LINE = PTH.read_text()
KNOWN = "print('adlro/Cluster-v0' in gymnasium.registry)"
OURS = "print(*sorted(name for name in sys.modules if name.split('.')[0] == 'adlro'))"


def printed(*lines):
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            "\n".join(["import sys", f"sys.path[:0] = {sys.path!r}", *lines]),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_the_environment_is_registered_when_gymnasium_is_imported():
    assert printed(LINE, "import gymnasium", KNOWN, OURS) == [
        "True",
        "adlro",
        "adlro.gymnasium_plugin",
    ]


def test_the_environment_is_registered_where_gymnasium_was_imported_before():
    assert printed("import gymnasium", LINE, KNOWN) == ["True"]


def test_nothing_but_the_plugin_is_imported_at_the_start_of_python():
    new = printed("before = set(sys.modules)", LINE, "print(*sorted(set(sys.modules) - before))")
    assert new == ["__future__", "adlro", "adlro.gymnasium_plugin"]


def test_a_python_without_adlro_starts_in_silence():
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LINE + "print('fine')"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")
