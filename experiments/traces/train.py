"""Train `adlro` on the first half of Helios Venus: trained-SPEEDS.npz beside this file.

python experiments/traces/train.py: about five CPU minutes for each of the three assumptions.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common import shared
from traces.catalogue import TRACES
from traces.halves import SPEEDS, Trace, fitted

from adlro.config.files import adjusted
from adlro.config.scenario import Scenario
from adlro.errors import AdlroError
from adlro.train.adlro import ALGORITHM, AdlroRequest
from adlro.train.hyperparameters import AdlroHyperparameters
from adlro.train.run import policy_files, train

FOLDER = Path(__file__).parent
TRACE = next(trace for trace in TRACES if trace.name == "Helios Venus")
WINDOW = 400  # jobs of an episode
EPISODES = 8_000


def scenario(trace: Trace, file: Path, speeds: str) -> Scenario:
    """What is trained on: the first half, and nothing of the second."""
    return adjusted(fitted(trace, file, speeds).setting.scenario, jobs=WINDOW)


def main() -> int:
    """Train for each assumption; status 2 if the user has something to put right."""
    try:
        for speeds in sys.argv[1:] or SPEEDS:
            request = AdlroRequest(
                algorithm=ALGORITHM.name,
                scenario=scenario(TRACE, shared() / TRACE.file, speeds),
                episodes=EPISODES,
                hyperparameters=AdlroHyperparameters(),
            )
            ALGORITHM.warm_up(request)
            with tempfile.TemporaryDirectory() as folder:
                files = policy_files(Path(folder) / f"trained-{speeds}")
                found = train(ALGORITHM, request, files)
                for path in files.both:
                    shutil.copy(path, FOLDER)
            gain, source = found.policy.evaluation.gain, found.training.chosen().source
            sys.stderr.write(f"{speeds}: {gain.mean:+.2f} % vs min-min, {source}\n")
    except AdlroError as exc:
        sys.stderr.write(f"error: {exc}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
