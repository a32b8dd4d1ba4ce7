"""The tool that measured the training ranges of the shipped policy."""

import numpy as np
import pytest

pytest.importorskip("torch")

from adlro.features.start_kernel import FEATURES
from adlro.policies.loading import learned
from experiments import shipped_ranges


def test_the_first_training_states_lie_within_the_extremes_of_the_shipped_ranges():
    parts = shipped_ranges.labelled(600)
    values = np.concatenate([part.features for part in parts])
    assert sum(len(part.groups) for part in parts) >= 600
    shipped = learned.shipped().card.ranges.features
    for name, found in shipped.items():
        column = values[:, FEATURES.index(name)]
        least, low, high, most = np.array(found, np.float32)
        assert least <= column.min(), name
        assert column.max() <= most, name
        assert ((column >= low) & (column <= high)).mean() >= 0.95, name


def test_without_write_the_shipped_card_stays_as_it_is(capsys):
    path = learned.shipped_file().with_suffix(".json")
    before = path.read_bytes()
    assert shipped_ranges.main(["--states", "60"]) == 0
    assert path.read_bytes() == before
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(learned.shipped().network.features)
    assert lines[-1].endswith("states")
