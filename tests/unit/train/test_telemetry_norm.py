"""What telemetry looks like in training, and a training that reads it."""

import numpy as np
import pytest

pytest.importorskip("torch")

from adlro.features.start_kernel import FEATURES, PLAIN
from adlro.features.telemetry_kernel import TELEMETRY_FEATURES
from adlro.nets.q_network import flat
from adlro.policies.loading import learned
from adlro.train import run, telemetry_norm
from adlro.train.adlro import ALGORITHM, AdlroTraining
from adlro.train.episodes import EpisodeSource
from adlro.train.executor import ThreadExecutor
from adlro.train.folder import TrainingFolder
from adlro.train.hyperparameters import FitSettings
from adlro.train.labelling import read_labels
from adlro.train.run import Run
from tests import toys

TOY = toys.throttled()
GROUND = EpisodeSource(TOY, (0.9, 0.9))


def test_all_models_of_the_ground_are_seen_and_nothing_is_beyond_a_range():
    norm = telemetry_norm.observed(GROUND, 3)
    assert set(norm.models) == {toys.FAST, toys.SLOW}
    temperature, power = norm.counts[:, 1].sum(axis=1), norm.counts[:, 2].sum(axis=1)
    assert temperature.tolist() == power.tolist()
    assert temperature.min() > 0
    assert norm.counts[:, 0].sum() == 0  # the simulator measures no memory
    assert norm.outside.sum() == 0


def test_the_same_run_sees_the_same_and_another_run_other_things():
    one, again, other = (telemetry_norm.observed(GROUND, run).counts for run in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def hyperparameters(features):
    return toys.tiny().model_copy(update={"fit": FitSettings(epochs=3, batch=8, features=features)})


def trained(folder, features, scenario=TOY):
    files = run.policy_files(folder / "mine")
    run.train(ALGORITHM, toys.request(scenario, hyperparameters(features)), files)
    return files


def fitted(where, features, scenario=TOY):
    """The networks that a training has fitted, whatever it kept in the end."""
    plan = toys.plan(scenario, hyperparameters(features))
    started = Run(plan, TrainingFolder(where.folder), ThreadExecutor(1))
    return AdlroTraining(started).checkpoint.networks


def test_a_training_with_all_features_learns_the_ranges_of_its_telemetry(tmp_path):
    where = trained(tmp_path, FEATURES)
    expected = telemetry_norm.observed(EpisodeSource(TOY, (0.9, 0.9)), 0)
    for network in fitted(where, FEATURES):
        assert network.features == FEATURES
        assert np.array_equal(network.norm.counts, expected.counts)
        meters = [FEATURES.index(name) for name in TELEMETRY_FEATURES]
        assert np.abs(network.first[meters]).max() > 0
    learned.load(where.weights)  # whatever was kept, it is whole


def test_a_training_that_reads_none_brings_no_state(tmp_path):
    where = trained(tmp_path, PLAIN)
    assert all(network.norm is None for network in fitted(where, PLAIN))
    assert learned.load(where.weights).card.telemetry is None


def test_a_stopped_training_that_reads_telemetry_ends_with_the_same_weights(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = fitted(trained(tmp_path / "whole", FEATURES), FEATURES)
    files = run.policy_files(tmp_path / "parts" / "mine")
    plan, folder = toys.plan(TOY, hyperparameters(FEATURES)), TrainingFolder(files.folder)
    with folder.locked():
        folder.write_plan(plan)
        training = AdlroTraining(Run(plan, folder, ThreadExecutor(1)))
        training.evaluate_heuristics()
        training.label_up_to(0)
        training.fit(0)
    parts = fitted(trained(tmp_path / "parts", FEATURES), FEATURES)
    assert len(parts) == len(whole) == 2
    for one, other in zip(parts, whole, strict=True):
        assert flat(one).tobytes() == flat(other).tobytes()
        assert np.array_equal(one.norm.counts, other.norm.counts)


def test_labels_hold_readings_in_0_to_1(tmp_path):
    where = trained(tmp_path, FEATURES)
    _, parts = read_labels(TrainingFolder(where.folder), 0)
    rows = np.concatenate([part.features for part in parts])
    columns = rows[:, [FEATURES.index(name) for name in TELEMETRY_FEATURES]]
    assert columns.min() >= 0
    assert columns.max() <= 1
    assert (columns.max(axis=0) > 0).all()  # each of them says something
