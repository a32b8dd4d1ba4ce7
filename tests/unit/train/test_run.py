"""One training run: Ctrl-C at any time."""

import signal
import sys
import threading
import time

from adlro.train import run
from adlro.train.executor import Stopped, ThreadExecutor

MAIN = threading.main_thread().ident


def is_waited_for():
    """Whether the main thread waits for a result."""
    frame = sys._current_frames()[MAIN]
    while frame is not None and frame.f_code.co_name != "result":
        frame = frame.f_back
    return frame is not None


def is_stopped(executor):
    try:
        executor.check()
    except Stopped:
        return True
    return False


def wait_until(claim, *args):
    end = time.monotonic() + 20
    while not claim(*args) and time.monotonic() < end:
        time.sleep(0.001)


class AtItsEnd:
    """A training that has nothing left to do when Ctrl-C comes."""

    def __init__(self, executor):
        self.executor = executor

    def train(self):
        wait_until(is_waited_for)
        # To the main thread, as from a terminal: a signal to another one does not wake it up.
        signal.pthread_kill(MAIN, signal.SIGINT)
        wait_until(is_stopped, self.executor)


def test_ctrl_c_at_the_very_end_of_a_training_lets_its_policy_be_measured():
    executor = ThreadExecutor(1)
    assert run._interruptible(AtItsEnd(executor), executor) is False
    assert list(executor.map(abs, [-1])) == [1]
    executor.shutdown()
