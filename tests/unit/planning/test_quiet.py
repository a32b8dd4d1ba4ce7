"""Solvers hushed."""

import ctypes
import os
import subprocess
import sys
import threading

from adlro.planning.quiet import hushed

C = ctypes.CDLL(None)


def test_what_c_code_prints_inside_is_thrown_away_and_the_rest_is_not(capfd):
    C.puts(b"before")
    with hushed():
        C.puts(b"inside")
        os.write(1, b"inside too\n")
    C.puts(b"after")
    C.fflush(None)
    assert capfd.readouterr().out == "before\nafter\n"


def test_the_last_thread_to_leave_gives_standard_output_back(capfd):
    entered, may_leave = threading.Event(), threading.Event()

    def other():
        with hushed():
            entered.set()
            may_leave.wait()
            os.write(1, b"other, inside\n")

    with hushed():
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait()
    os.write(1, b"the other is still inside\n")
    may_leave.set()
    thread.join()
    os.write(1, b"after both\n")
    assert capfd.readouterr().out == "after both\n"


def test_an_error_inside_gives_standard_output_back(capfd):
    try:
        with hushed():
            raise ZeroDivisionError
    except ZeroDivisionError:
        os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"


def test_a_closed_output_stays_closed():
    program = (
        "import os; os.close(1)\n"
        "from adlro.planning.quiet import hushed\n"
        "with hushed(): pass\n"
        "try: os.fstat(1)\n"
        "except OSError: raise SystemExit(7) from None\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 7
