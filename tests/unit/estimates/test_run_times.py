"""Run times for live use: learned, predicted, explained, kept as a file."""

import json

import numpy as np
import pytest

from adlro.errors import ConfigError, TraceError
from adlro.estimates.job_fields import SCHEMA, JobFields
from adlro.estimates.run_times import RunTimes
from adlro.features.hypervectors import saved

ANN, BOB = JobFields(user="ann", gpus=1.0), JobFields(user="bob", gpus=8.0)


def taught(models=(), speeds=()):
    found = RunTimes(models, speeds)
    for i in range(4):
        found.learn(ANN, 100.0, 10.0 * i, 2 * i, models[0] if models else "")
        found.learn(BOB, 5000.0, 10.0 * i + 5, 2 * i + 1)
    return found


def test_alike_jobs_say_how_long_it_takes():
    found = taught()
    assert found.predict(ANN).seconds == pytest.approx([100])
    assert found.predict(BOB).seconds == pytest.approx([5000])
    assert np.isnan(RunTimes().predict(ANN).seconds).all()


def test_models_go_by_what_is_known_of_their_speeds():
    found = taught(("V100", "T4"), (1.0, 0.25))
    np.testing.assert_allclose(found.predict(ANN).seconds, [100, 400])
    np.testing.assert_allclose(found.predict(ANN, ("T4",)).seconds, [400])
    np.testing.assert_allclose(found.predict(ANN, ("T4", "V100")).seconds, [400, 100])
    assert found.explain(ANN, "T4").seconds == pytest.approx(400)
    assert found.explain(ANN, "T4").sources[0].seconds == pytest.approx(400)


def test_what_is_not_known_goes_by_the_speeds_too():
    asks = JobFields(user="cat", requested_s=7200.0)
    empty = RunTimes(("A100", "T4"), (2.0, 0.5))
    np.testing.assert_allclose(empty.predict(asks).seconds, [3600, 14400])
    for i in range(3):  # 100 s on an A100 are 200 on the reference GPU, as are 400 on a T4
        full = JobFields(user="ann", queue="q", name="x", gpus=1.0, requested_s=300.0)
        empty.learn(full, 100.0, 2.0 * i, 2 * i, "A100")
        empty.learn(full, 400.0, 2.0 * i + 1, 2 * i + 1, "T4")
    stranger = JobFields(user="bob", queue="r", name="y", gpus=64.0)
    # The median is 200 to a bin of 1/25 of log seconds.
    np.testing.assert_allclose(empty.predict(stranger).seconds, [100, 400], rtol=0.04)


def test_jobs_that_never_ran_on_a_model_go_by_those_of_others_that_did():
    # Assumed: both alike. Bob's jobs take three times as long on a T4; ann has run on V100s alone.
    usual = JobFields(
        account="a", queue="q", qos="n", name="x", requested_s=7200.0, gpus=1.0, nodes=1.0,
        cores=8.0, memory_mb=16_000.0, submit_s=0.0,
    )  # fmt: skip
    found = RunTimes(("V100", "T4"))
    for i in range(200):
        model, seconds = ("T4", 3000.0) if i % 2 else ("V100", 1000.0)
        found.learn(usual._replace(user="bob"), seconds, float(i), i, model)
    ann = usual._replace(user="ann")
    for i in range(200, 210):
        found.learn(ann, 50.0, float(i), i, "V100")
    np.testing.assert_allclose(found.predict(ann).seconds, [50, 150], rtol=0.1)


def test_an_explanation_names_the_jobs():
    why = taught().explain(ANN)
    assert [one.source for one in why.sources[:4]] == [6, 4, 2, 0]  # the latest first
    assert why.matched == "same user, request, shape, gpus"


def test_a_saved_memory_goes_on_as_if_nothing_had_happened():
    found = taught(("V100", "T4"), (1.0, 0.25))
    asks = JobFields(user="cat", requested_s=50.0)
    for i in range(25):
        found.learn(JobFields(user="dan", requested_s=900.0), 800.0, 100.0 + i, 100 + i)
    data = found.pack()
    assert data == found.pack()
    again = RunTimes.unpack(data, "m.npz")
    assert again.models == ("V100", "T4")
    for one in (found, again):
        one.learn(ANN, 300.0, 200.0, 999, "T4")
    for job in (ANN, BOB, asks, JobFields()):
        first, second = found.predict(job), again.predict(job)
        np.testing.assert_array_equal(first.seconds, second.seconds)
        np.testing.assert_array_equal(first.confidence, second.confidence)
        np.testing.assert_array_equal(first.log_quantiles, second.log_quantiles)
    assert again.predict(asks).seconds.max() <= 50  # that jobs keep to requests was saved
    assert found.pack() == again.pack()


@pytest.mark.parametrize("cut", [0, 10, 500, -1])
def test_a_file_cut_short_is_refused(cut):
    with pytest.raises(TraceError, match=r"m\.npz: is not a memory"):
        RunTimes.unpack(taught().pack()[:cut], "m.npz")


def packed(**changes):
    data = saved.unpack(taught(("V100",)).pack(), "")
    return saved.pack(data._replace(**changes))


@pytest.mark.parametrize(
    ("note", "why"),
    [
        ("{}", "not one of run times"),
        ("", "not one of run times"),
        ({"asked": -1}, "not one of run"),
        ({"run_times": {"600": 1}}, "not one of"),
        ({"run_times": {"5": np.nan}}, "not one of"),
        ({"uses": {"5": [1.5, 1]}}, "not one of"),
        ({"log_speeds": []}, "another version"),
        ({"calibration": {"hits": []}}, "another version"),
        ({"calibration": {"waiting": {"7": []}}}, "another version"),
        ({"calibration": {"waiting": {"7": [[1.0, 1.0, 1.0, 0.5, 99]]}}}, "not one of"),
        ({"calibration": {"counts": [{"241": 1.0}]}}, "not one of"),
        # Numbers that compiled code could not bear.
        ({"calibration": {"waiting": {"7": [[1.0, 1.0, 1.0, 1e300, 0]]}}}, "not one of"),
        ({"calibration": {"waiting": {"7": [[1.0, 0.0, 0.0, 0.5, 0]]}}}, "not one of"),
        ({"calibration": {"waiting": {"7": [[1e308, 1.0, 1.0, 0.5, 0]]}}}, "not one of"),
        ({"calibration": {"hits": [[0, 1000]] * 10}}, "not one of"),
        ({"calibration": {"sizes": [[1e308, 1e308]] * 18}}, "not one of"),
        ({"blend": {"everyone": {"jobs": 10**19, "mean": 5.0, "latest": [5.0] * 10}}}, "not one"),
        ({"blend": {"everyone": {"jobs": 10**400, "mean": 5.0, "latest": [5.0] * 10}}}, "not one"),
        ({"blend": {"everyone": {"jobs": 5, "mean": 5.0, "latest": [5.0]}}}, "not one of"),
        ({"blend": {"everyone": {"jobs": 1, "mean": 1e308, "latest": [5.0]}}}, "not one of"),
        ({"blend": {"log_weights": [[1e308] * 8] * 7}}, "not one of"),
        ({"log_speeds": [1e308]}, "not one of"),
    ],
)
def test_a_file_with_other_notes_is_refused(note, why):
    if isinstance(note, dict):
        whole = json.loads(saved.unpack(taught(("V100",)).pack(), "").note)
        parts = {key: whole[key] | note.get(key, {}) for key in ("calibration", "blend")}
        note = json.dumps(whole | note | parts)
    with pytest.raises(TraceError, match=why):
        RunTimes.unpack(packed(note=note), "m.npz")


BY_USER = {
    "models": ["A", "B"], "log_speeds": [0.0, 0.0], "run_times": {}, "users": {},
    "calibration": {"counts": [{}] * 18, "sizes": [[0, 0]] * 18, "hits": [[0, 0]] * 10,
                    "waiting": {}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "is_good"),
    [
        ({}, True),
        ({"users": {"5": [3, 18.0, 400, 500]}}, True),
        ({"models": ["A"]}, False),
        ({"models": ["A", "A"]}, False),
        ({"log_speeds": [0.0]}, False),
        ({"users": {str(10**400): [3, 18.0, 400, 500]}}, False),
        ({"users": {"5": [3, 1e308, 400, 500]}}, False),
        ({"users": {"5": [3, 18.0, 0, 0]}}, False),
    ],
)
def test_files_of_statistics_by_user_are_checked_too(changed, is_good):
    data = json.dumps(BY_USER | changed)
    both = json.dumps({"user": json.dumps(BY_USER), "alike": data})
    for name, text in (("last-two", data), ("user-mean", data), ("last-two-alike", both)):
        if is_good:
            assert RunTimes.unpack(text.encode(), "m", name).models == ("A", "B")
        else:
            with pytest.raises(TraceError, match="m: "):
                RunTimes.unpack(text.encode(), "m", name)


def test_the_two_parts_of_a_file_are_of_the_same_models():
    parts = {"user": json.dumps(BY_USER), "alike": json.dumps(BY_USER | {"models": ["A", "C"]})}
    with pytest.raises(TraceError, match="m: its two parts are of different GPU models"):
        RunTimes.unpack(json.dumps(parts).encode(), "m", "last-two-alike")


def test_a_memory_of_other_roles_is_refused():
    first, *rest = SCHEMA.roles
    other = SCHEMA._replace(roles=(first._replace(weight=5.0), *rest))
    with pytest.raises(TraceError, match="another version"):
        RunTimes.unpack(packed(schema=other), "m.npz")


@pytest.mark.parametrize(
    ("seconds", "when", "source"),
    [(-1.0, 0.0, 0), (np.nan, 0.0, 0), (np.inf, 0.0, 0), (1e12, 0.0, 0), (1.0, np.nan, 0)],
)
def test_what_makes_no_sense_is_not_learned(seconds, when, source):
    found = RunTimes()
    with pytest.raises(ConfigError, match="cannot be learned"):
        found.learn(ANN, seconds, when, source)
    assert np.isnan(found.predict(ANN).seconds).all()


@pytest.mark.parametrize("source", [-1, 2**62, 2**64, 1.5, "7"])
def test_an_id_that_cannot_be_one_is_refused(source):
    found = RunTimes()
    for use in (
        lambda: found.learn(ANN, 1.0, 0.0, source),
        lambda: found.predict(ANN, source=source),
    ):
        with pytest.raises(ConfigError, match="is no id of a job"):
            use()
    found.pack()


def test_an_estimator_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="no estimator 'lasttwo'; did you mean 'last-two'"):
        RunTimes(estimator="lasttwo")


def test_a_model_that_is_not_known_is_refused():
    found = RunTimes(("V100",))
    with pytest.raises(ConfigError, match="no GPU model 'V10'; did you mean 'V100'"):
        found.predict(ANN, ("V10",))
    with pytest.raises(ConfigError, match="without a name"):
        found.predict(ANN, ("V100", ""))
    with pytest.raises(ConfigError, match="made without any"):
        RunTimes().learn(ANN, 1.0, 0.0, 0, "V100")


@pytest.mark.parametrize("speeds", [(1.0,), (1.0, 0.0), (1.0, np.inf), (1.0, 1e300)])
def test_speeds_must_be_one_above_0_for_each_model(speeds):
    with pytest.raises(ConfigError, match="one speed above 0"):
        RunTimes(("A", "B"), speeds)
