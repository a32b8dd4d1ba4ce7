import numpy as np
import pytest

pytest.importorskip("torch")

from adlro.train import checkpoint, weights
from adlro.train.checkpoint import Checkpoint
from tests import trained


def test_networks_that_look_at_different_features_come_back_the_same(tmp_path):
    before = (trained.network(("wait", "seconds")), weights.like_min_min((3, 2)))
    file = tmp_path / "checkpoint.npz"
    arrays, meta = checkpoint.pack(Checkpoint(before, (0.5, 0.25), episodes=7))
    np.savez(file, **arrays)
    with np.load(file, allow_pickle=False) as found:
        after = checkpoint.unpack(dict(found), meta)
    assert after.scores == (0.5, 0.25)
    assert after.episodes == 7
    for one, other in zip(before, after.networks, strict=True):
        assert one.features == other.features
        assert all(np.array_equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))


def test_what_was_learned_about_telemetry_comes_back_with_its_network():
    before = (trained.with_meters(), trained.network())
    after = checkpoint.unpack(*checkpoint.pack(Checkpoint(before, (0.5, 0.25))))
    assert after.networks[0].norm.models == ("T4", "V100")
    assert np.array_equal(after.networks[0].norm.counts, trained.NORM.counts)
    assert after.networks[1].norm is None
