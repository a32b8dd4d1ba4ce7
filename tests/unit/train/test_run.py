"""One training run: Ctrl-C at any time."""

import signal
import threading
import time

from adlro.train import run
from adlro.train.executor import ThreadExecutor


class AtItsEnd:
    """A training that has nothing left to do when Ctrl-C comes."""

    def train(self):
        time.sleep(0.4)


def test_ctrl_c_at_the_very_end_of_a_training_lets_its_policy_be_measured():
    executor = ThreadExecutor(1)
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    assert run._interruptible(AtItsEnd(), executor) is False
    assert list(executor.map(abs, [-1])) == [1]
    executor.shutdown()
