"""Solvers hushed."""

import ctypes
import os
import subprocess
import sys
import threading

from adlro.planning.solver_output import hushed

C = ctypes.CDLL(None)


def test_what_c_code_prints_inside_is_thrown_away_and_the_rest_is_not(capfd):
    C.puts(b"before")
    with hushed():
        C.puts(b"inside")
        C.printf(b"inside\n")
    C.puts(b"after")
    C.fflush(None)
    assert capfd.readouterr().out == "before\nafter\n"


def test_what_python_or_another_thread_writes_inside_is_not_lost(capfd):
    with hushed():
        os.write(1, b"this thread\n")
        thread = threading.Thread(target=print, args=("another thread",))
        thread.start()
        thread.join()
    assert sorted(capfd.readouterr().out.splitlines()) == ["another thread", "this thread"]


def test_the_last_thread_to_leave_gives_standard_output_back(capfd):
    entered, may_leave = threading.Event(), threading.Event()

    def other():
        with hushed():
            entered.set()
            may_leave.wait()
            C.puts(b"other, inside")

    with hushed():
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait()
    C.puts(b"the other is still inside")
    may_leave.set()
    thread.join()
    C.puts(b"after both")
    C.fflush(None)
    assert capfd.readouterr().out == "after both\n"


def test_an_error_inside_gives_standard_output_back(capfd):
    try:
        with hushed():
            raise ZeroDivisionError
    except ZeroDivisionError:
        C.puts(b"after")
    C.fflush(None)
    assert capfd.readouterr().out == "after\n"


# An integer program like those of sia, from which HiGHS prints though it is told not to.
LOUD = """
import contextlib, ctypes, sys
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from adlro.planning.solver_output import hushed

rng = np.random.default_rng(13)
jobs, pools = int(rng.integers(5, 60)), int(rng.integers(2, 6))
width = rng.choice([0.1, 0.25, 0.3, 0.5, 0.7, 1, 2, 4, 8, 3], jobs)
profit = rng.random((jobs, pools)) * (rng.random((jobs, pools)) < 0.8)
room = rng.choice([0.0, 1, 2, 3.3, 4, 8, 7.9, 16], pools)
a, p = np.nonzero(profit > 0)
rows = (np.concatenate([a, jobs + p]), np.tile(np.arange(len(a)), 2))
matrix = csr_array((np.concatenate([np.ones(len(a)), width[a]]), rows), (jobs + pools, len(a)))
limits = LinearConstraint(matrix, -np.inf, np.concatenate([np.ones(jobs), room]))
with hushed() if sys.argv[1] == "hushed" else contextlib.nullcontext():
    found = milp(-profit[a, p], integrality=np.ones(len(a)), bounds=Bounds(0, 1),
                 constraints=limits, options={"node_limit": 1000})
ctypes.CDLL(None).fflush(None)
print("solved", flush=True)
"""


def test_the_solver_is_quiet_inside_though_it_prints_outside():
    said = {}
    for way in ("hushed", "loud"):
        command = [sys.executable, "-c", LOUD, way]
        said[way] = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said["hushed"] == "solved\n"
    # When this fails, HiGHS has become quiet by itself and `hushed` can go.
    assert said["loud"].startswith("HighsMipSolverData")


def test_a_closed_output_stays_closed():
    program = (
        "import os; os.close(1)\n"
        "from adlro.planning.solver_output import hushed\n"
        "with hushed(): pass\n"
        "try: os.fstat(1)\n"
        "except OSError: raise SystemExit(7) from None\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7
