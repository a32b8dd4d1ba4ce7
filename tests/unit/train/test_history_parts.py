"""A history is divided such that nothing of a part is known in the parts before it."""

import itertools
import re

import numpy as np
import pytest

from adlro.config.files import adjusted
from adlro.errors import ConfigError
from adlro.model.history import WORDS
from adlro.train import history_parts
from adlro.workloads.formats.registry import read
from adlro.workloads.generate import generate, stretch_of
from adlro.workloads.history_scenario import recorded_load
from adlro.workloads.setting import prepare
from tests import own_history


def parts(folder, **changes):
    """The scenario of a toy history, where it is cut, and its training and selection parts."""
    folder.mkdir(exist_ok=True)
    scenario = own_history.write(folder, **changes)
    cut = history_parts.cut_of(scenario)
    training = history_parts.training_part(scenario, cut, folder)
    return scenario, cut, training, history_parts.selection_part(scenario, cut, folder)


def test_half_of_the_jobs_train_a_fifth_selects_and_the_rest_is_held_out(tmp_path):
    scenario, cut, training, selection = parts(tmp_path)
    assert (cut.first, cut.last, cut.held_out, cut.window) == (450, 630, 270, 50)
    held_out = history_parts.held_out_part(scenario, cut)
    assert len(prepare(training).played.jobs) == 450
    assert [len(part.played.jobs) for part in (selection, held_out)] == [180, 270]
    assert [history_parts.count_windows(part) for part in (selection, held_out)] == [3, 5]


def test_windows_are_disjoint_and_in_order(tmp_path):
    scenario, cut, _, selection = parts(tmp_path)
    held_out = history_parts.held_out_part(scenario, cut)
    for part, begin, end in ((selection, 450, 630), (held_out, 630, 900)):
        played = part.played
        count = history_parts.count_windows(part)
        begins = [window * played.stride for window in range(count)]
        assert all(b - a >= cut.window for a, b in itertools.pairwise(begins))
        assert begins[-1] + cut.window <= end - begin
        for window, first in enumerate(begins):
            jobs = generate(part, window).jobs
            expected = played.jobs["arrival"][first : first + cut.window]
            scaled = (expected - expected[0]) * stretch_of(part)
            np.testing.assert_allclose(jobs["arrival"], scaled, atol=1e-6)


def test_held_out_windows_are_played_at_the_load_of_the_scenario(tmp_path):
    scenario, cut, _, _ = parts(tmp_path)
    held_out = history_parts.held_out_part(scenario, cut)
    assert stretch_of(held_out) == pytest.approx(stretch_of(prepare(scenario)), rel=1e-9)


def test_windows_have_as_many_jobs_as_the_scenario_if_there_are_enough(tmp_path):
    rows = own_history.rows_of(2_400)
    assert history_parts.cut_of(own_history.write(tmp_path, rows)).window == 50
    assert history_parts.cut_of(own_history.write(tmp_path, rows, jobs=2_400)).window == 60
    assert history_parts.cut_of(own_history.write(tmp_path, rows, jobs=7)).window == 50


def test_files_of_the_parts_hold_nothing_later(tmp_path):
    rows = own_history.rows_of(other_from=630)
    _, cut, training, selection = parts(tmp_path, rows=rows)
    for recorded, end in ((training.history, cut.first), (selection.scenario.history, cut.last)):
        found = read(history_parts.Path(recorded.file))
        assert found.id == tuple(f"j{k}" for k in range(end))
        assert not [word for name in WORDS for word in found.tables[name] if "new" in word]


def test_nothing_of_the_held_out_jobs_is_in_what_trains_and_selects(tmp_path):
    ours = parts(tmp_path / "ours")
    theirs = parts(tmp_path / "theirs", rows=own_history.rows_of(other_from=630))
    for name in ("part-0-450.npz", "part-0-630.npz"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    assert ours[2].load == theirs[2].load
    for window in range(3):
        one, other = (generate(found[3], window) for found in (ours, theirs))
        for field in ("jobs", "est", "allowed", "seconds"):
            assert getattr(one, field).tobytes() == getattr(other, field).tobytes()
    mine, yours = prepare(ours[2]), prepare(theirs[2])
    assert mine.capacity_per_s == yours.capacity_per_s
    assert mine.type_shares.tobytes() == yours.type_shares.tobytes()


def test_estimates_and_types_of_the_parts_are_those_of_the_whole_history(tmp_path):
    scenario, cut, training, selection = parts(tmp_path)
    whole, part = prepare(scenario).played, prepare(training).played
    np.testing.assert_array_equal(part.jobs["type"], whole.jobs["type"][: cut.first])
    np.testing.assert_allclose(part.est, whole.est[: cut.first], rtol=1e-9)
    np.testing.assert_allclose(selection.played.est, whole.est[cut.first : cut.last], rtol=1e-9)


def test_the_longest_request_is_that_of_the_part(tmp_path):
    rows = own_history.rows_of().replace(",requested_s", ",unused")
    last = rows.strip().splitlines()[-1].split(",")
    longer = rows.replace(",".join(last), ",".join([*last[:2], "9999999", *last[3:]]))
    scenario, _, training, _ = parts(tmp_path, rows=longer)
    assert prepare(scenario).played.jobs["requested"].max() > 9_999_000
    assert prepare(training).played.jobs["requested"].max() < 100_000


def test_early_parts_are_played_at_their_recorded_load_unless_another_is_wanted(tmp_path):
    scenario, cut, training, _ = parts(tmp_path)
    own = recorded_load(prepare(training))
    assert training.load == own if own / 1.25 <= 0.8 <= own * 1.25 else training.load == 0.8
    near, far = (adjusted(scenario, load=own * factor) for factor in (1.2, 1.5))
    assert history_parts.training_part(near, cut, tmp_path).load == own
    assert history_parts.training_part(far, cut, tmp_path).load == pytest.approx(own * 1.5)


def test_too_short_a_history_says_how_many_jobs_are_needed(tmp_path):
    scenario = own_history.write(tmp_path, own_history.rows_of(833))
    message = "fine-tuning needs 834 jobs that can be played, of which the last 30 % are held out, "
    with pytest.raises(ConfigError, match=re.escape(f"{message}and the history has 833; bring")):
        history_parts.cut_of(scenario)
    enough = own_history.write(tmp_path, own_history.rows_of(834))
    assert history_parts.cut_of(enough).held_out == 250


def test_one_user_and_equal_run_times_are_noted(tmp_path):
    scenario = own_history.write(tmp_path, own_history.rows_of(users=1, run_s=60))
    one, equal = history_parts.notes_on(scenario, history_parts.cut_of(scenario))
    assert one.startswith("all jobs are of one user")
    assert equal.startswith("all run times are 60 s")
    several = own_history.write(tmp_path)
    assert history_parts.notes_on(several, history_parts.cut_of(several)) == []
