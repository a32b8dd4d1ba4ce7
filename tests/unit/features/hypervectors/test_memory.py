"""The associative memory: by hand, against its plain twin, its bound, and what it forgets."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.errors import ConfigError
from adlro.features.hypervectors.memory import Size, Weighing, copy, empty, work_for
from adlro.features.hypervectors.recall_kernel import scan, weighted_select
from adlro.features.hypervectors.schema import Role, Schema, space_of
from tests.plain.hypervectors import PlainMemory
from tests.remembered import PLAIN, SCHEMA, mind

MODELS = ("V100", "T4", "MI100")
compiled = settings(max_examples=60, deadline=None)  # the first call compiles
FADING = Weighing(fresh=1.0, fading=1.0)
jobs = st.lists(
    st.tuples(
        st.floats(-5, 15), st.sampled_from("abcd"), st.sampled_from("xyz"), st.sampled_from(MODELS)
    ),
    min_size=1,
    max_size=40,
)


def test_an_empty_memory_knows_nothing():
    got, sources = mind().recall(mind().query("ada"))
    assert math.isnan(got["log_seconds"])
    assert got["confidence"] == got["evidence"] == 0
    assert len(sources) == 0


def test_two_outcomes_of_a_pattern_weigh_by_how_many_jobs_came_since():
    # ages 2 and 1, 1 / (1 + age): weights 1/3 and 1/2. Half of 5/6 is more than 1/3: the median is
    # 3; spread (1/3 * 2) / (5/6) = 0.8; mean (1/3 + 3/2) / (5/6) = 2.2. Two jobs: 2 / (2 + 1).
    one = mind()
    one.learn(1.0, "ada", "x", source=7)
    one.learn(3.0, "ada", "x", source=8)
    # The GPU model is missing: 2 nats of 8, so the evidence is 2 exp(-2).
    got, sources = one.recall(one.query("ada", "x"), FADING)
    assert got["log_seconds"] == 3.0
    assert got["spread"] == pytest.approx(0.8)
    assert got["evidence"] == pytest.approx(2 * math.exp(-2))
    assert got["confidence"] == pytest.approx(2 * math.exp(-2) / (2 * math.exp(-2) + 1))
    assert sources["source"].tolist() == [7, 8]
    assert sources["share"] == pytest.approx([0.4, 0.6])
    assert sources["weight"] == pytest.approx([math.exp(-2) / 3, math.exp(-2) / 2])
    assert one.recall(one.query("ada", "x"), FADING._replace(mean=1.0))[0][
        "log_seconds"
    ] == pytest.approx(2.2)
    assert one.memory.head[0]["size"] == 1


def test_a_pattern_weighs_by_the_bits_in_which_it_differs():
    # lin's jobs differ from ada's in about half of 128 bits, each of which takes 1/16 nat off
    one = mind()
    one.learn(1.0, "ada", "x")
    slot = one.learn(2.0, "lin", "x")
    query = one.query("ada", "x")
    scan(one.memory, query, one.work)
    gap = one.work.gaps[slot]
    assert 40 < gap < 88
    _, sources = one.recall(query)
    assert sources["weight"][1] / sources["weight"][0] == pytest.approx(math.exp(-gap / 16))


def test_roles_that_a_query_does_not_know_make_no_difference_between_patterns():
    one = mind()
    one.learn(1.0, "ada", "x")
    one.learn(2.0, "lin", "x")
    _, sources = one.recall(one.query(name="x"))
    # 4 nats of user and 2 of the model are missing
    assert sources["weight"] == pytest.approx([math.exp(-6), math.exp(-6)])


def test_what_is_older_than_the_latest_counts_as_one_at_its_mean():
    # of four outcomes two are kept; the other two: mean 1.5 of weight 2
    one = mind(Size(slots=4, latest=2, half_jobs=math.inf))
    for source, value in enumerate((1.0, 2.0, 5.0, 6.0)):
        one.learn(value, "ada", source=source)
    got, sources = one.recall(one.query("ada"))
    by_source = {row["source"]: row for row in sources}
    assert by_source.keys() == {-1, 2, 3}
    assert by_source[-1]["log_seconds"] == 1.5
    assert by_source[-1]["share"] == pytest.approx(0.5)
    assert got["log_seconds"] == 1.5


def test_log_seconds_follow_the_difference_of_the_extra_numbers():
    one = mind()
    one.learn(1.0, "ada", extra=3.0)
    follow = PLAIN._replace(slope=0.5)
    assert one.recall(one.query("ada", extra=5.0), follow)[0]["log_seconds"] == 1.0 + 0.5 * 2.0
    assert one.recall(one.query("ada"), follow)[0]["log_seconds"] == 1.0
    one.learn(9.0, "lin")  # says nothing of the extra number
    assert one.recall(one.query("lin", extra=5.0), follow)[0]["log_seconds"] == 9.0


def test_only_the_nearest_of_each_model_are_asked():
    one = mind(models=MODELS, nearest=2)
    for model in MODELS:
        for i, name in enumerate("uvwx"):
            one.learn(float(i), "ada", name, source=i, model=model)
    _, sources = one.recall(one.query("ada", "x"))
    assert len(sources) == 2 * len(MODELS)
    assert sum(sources["source"] == 3) == len(MODELS)


def test_of_equally_near_patterns_the_first_ones_are_taken():
    # the query knows the user only, so that all names are equally near
    one = mind(nearest=3)
    for i, name in enumerate("uvwxyz"):
        one.learn(float(i), "ada", name, source=i)
    _, sources = one.recall(one.query("ada"))
    assert sources["source"].tolist() == [0, 1, 2]


def test_jobs_on_another_model_count_less_and_by_the_ratio_of_speeds():
    one = mind(models=MODELS)
    one.learn(4.0, "ada", "x", source=1, model="T4")
    query = one.query("ada", "x", prior=[1.0, 0.25, 0.0])
    got, sources = one.recall(query, model="V100")
    assert got["log_seconds"] == 4.0 + 0.25 - 1.0  # V100 is exp(0.75) times as fast
    gap = one.memory.model_distances[0, 1]
    assert got["evidence"] == pytest.approx(math.exp(-gap / 16))
    assert sources["model"].tolist() == [1]
    same, _ = one.recall(query, model="T4")
    assert same["log_seconds"] == 4.0
    assert same["evidence"] == pytest.approx(1.0)


def test_outcomes_on_the_model_displace_those_on_others():
    # Alike jobs differ by 1.25 * 0.4 = 0.5 until more is known, classes by 0.25: (0.25 / 0.5)^2 is
    # 1/4. With one outcome on the model (1 / 1.25 of its say) each of two on the other counts
    # 1 / (1 + 1/4 * 2 * 0.8) as much as without.
    one = mind(models=MODELS)
    for i, model in enumerate(("V100", "T4", "T4")):
        one.learn(4.0 + i, "ada", "x", source=i, model=model)
    query, apart = one.query("ada", "x"), PLAIN._replace(apart=0.25)
    _, alike = one.recall(query, PLAIN, "V100")
    got, own = one.recall(query, apart, "V100")
    ratio = (own["share"][1] / own["share"][0]) / (alike["share"][1] / alike["share"][0])
    assert ratio == pytest.approx(1 / (1 + 0.25 * 2 * 0.8))
    assert got["outcomes"] == 1.0
    assert one.recall(query, apart, "T4")[0]["outcomes"] == 2.0


@compiled
@given(
    st.lists(st.tuples(st.floats(-5, 15), st.integers(1, 9)), min_size=1, max_size=6),
)
def test_low_and_high_are_the_distances_of_the_sources_quantiles(pairs):
    one = mind(Size(slots=64, half_jobs=math.inf), nearest=64)
    for value, times in pairs:
        for _ in range(times):
            one.learn(value, "ada", "x")
    got, sources = one.recall(one.query("ada", "x"))
    for p, value in (
        (0.1, got["log_seconds"] - got["low"]),
        (0.9, got["log_seconds"] + got["high"]),
    ):
        near = np.abs(sources["log_seconds"] - value) < 1e-9
        below = sources["share"][(sources["log_seconds"] < value) & ~near].sum()
        assert below <= p + 1e-9
        assert below + sources["share"][near].sum() >= p - 1e-9


def test_one_scan_for_all_models_answers_as_a_query_with_the_model_would():
    # The model's part from the table = the distance of whole patterns, model and all.
    one = mind(models=MODELS)
    rng = np.random.default_rng(3)
    for i in range(30):
        user, name = rng.choice(list("abc"), 2)
        one.learn(rng.normal(), user, name, source=i, model=str(rng.choice(MODELS)))
    query = one.query("a", "b")
    mask, space = one.memory.model_mask, one.space
    for m in range(len(MODELS)):
        got, sources = one.recall(query, model=MODELS[m])
        bits = (query.bits & ~mask) | one.memory.model_bits[m]
        scan(one.memory, query._replace(bits=bits, known=query.known | mask), one.work)
        nats = -space.nats_per_bit * one.work.gaps[sources["slot"]]
        assert got["evidence"] == pytest.approx(np.exp(nats).sum())
        assert sources["share"] == pytest.approx(np.exp(nats) / np.exp(nats).sum())


@compiled
@given(jobs, st.integers(1, 12), st.integers(1, 4), st.sampled_from([0.0, 1.0]))
def test_the_plain_twin_answers_the_same(learned, slots, latest, mean):
    size = Size(slots=slots, latest=latest, half_s=40.0, half_jobs=13.0)
    one = mind(size, MODELS, nearest=5)
    twin = PlainMemory(SCHEMA, slots, latest, 40.0, 13.0, MODELS)
    weighing = Weighing(fresh=2.0, fading=0.7, nats=0.5, slope=0.3, mean=mean)
    for i, (value, user, name, model) in enumerate(learned):
        bits, _ = one.pattern(user, name)
        plain = np.unpackbits(bits.view(np.uint8), bitorder="little").tolist()
        one.learn(value, user, name, float(i), i, model, extra=value / 2)
        twin.learn(plain, value, value / 2, float(i), i, MODELS.index(model))
    query = one.query("a", "x", extra=1.0)
    bits, known = (
        np.unpackbits(row.view(np.uint8), bitorder="little").tolist()
        for row in (query.bits, query.known)
    )
    for m, model in enumerate(MODELS):
        got, _ = one.recall(query, weighing, model)
        want = twin.recall(bits, known, 1.0, weighing, 5, m)
        assert got["log_seconds"] == pytest.approx(want.log_seconds, abs=1e-9)
        assert got["spread"] == pytest.approx(want.spread, abs=1e-9)
        assert got["confidence"] == pytest.approx(want.confidence, abs=1e-12)


@compiled
@given(jobs)
def test_what_was_learned_is_recalled(learned):
    one = mind(models=MODELS)
    for i, (value, user, name, model) in enumerate(learned):
        one.learn(value, user, name, float(i), i, model)
    value, user, name, model = learned[-1]
    sharp = PLAIN._replace(nats=8.0, fresh=0.1, fading=8.0)  # only equal patterns, only the last
    got, sources = one.recall(one.query(user, name), sharp, model)
    assert got["log_seconds"] == value
    assert sources["source"][sources["share"].argmax()] == len(learned) - 1


@compiled
@given(jobs, st.integers(1, 5))
def test_the_memory_never_holds_more_than_its_bound_and_equal_patterns_once(learned, slots):
    one = mind(Size(slots=slots, half_jobs=5.0), MODELS)
    for i, (value, user, name, model) in enumerate(learned):
        one.learn(value, user, name, float(i), i, model)
        size = one.memory.head[0]["size"]
        assert size <= slots
        patterns = {
            (*one.memory.patterns[:, s].tolist(), int(one.memory.models[s])) for s in range(size)
        }
        assert len(patterns) == size
        assert sorted(one.memory.heap[:size]) == list(range(size))
        assert (one.memory.table > 0).sum() == size
    assert one.memory.head[0]["learned"] == len(learned)


def test_the_pattern_with_the_least_weight_left_makes_room():
    # half after 2 jobs. After five: a at turns 0, 1, 2 has 2^-2.5 + 2^-2 + 2^-1.5 = 0.78,
    # b at 3 has 2^-1 = 0.5, c at 4 has 2^-0.5 = 0.71: d takes the place of b.
    one = mind(Size(slots=3, half_jobs=2.0))
    slots = [one.learn(0.0, user) for user in "aaabc"]
    assert slots == [0, 0, 0, 1, 2]
    assert one.learn(0.0, "d") == 1
    # now d has 0.71, c 0.5, a 0.55: e takes the place of c, and then f that of a (0.39, e 0.71)
    assert one.learn(0.0, "e") == 2
    assert one.learn(0.0, "f") == 0


def test_weights_halve_after_a_time():
    one = mind(Size(half_s=100.0, half_jobs=math.inf))
    one.learn(1.0, "ada", when=0.0)
    before, _ = one.recall(one.query("ada"))
    one.learn(1.0, "somebody else", when=100.0)
    after, _ = one.recall(one.query("ada"))
    assert before["evidence"] == pytest.approx(math.exp(-4))  # name and model are missing
    assert after["evidence"] == pytest.approx(math.exp(-4) / 2, rel=0.05)


@compiled
@given(jobs, st.sampled_from("abcd"), st.sampled_from("xyz"))
def test_more_evidence_never_makes_an_answer_less_confident(learned, user, name):
    one = mind(models=MODELS)  # as many are asked as there can be of a model
    before = 0.0
    for i, (value, *job, model) in enumerate(learned):
        one.learn(value, *job, float(i), i, model)
        got, _ = one.recall(one.query(user, name), model="T4")
        assert before - 1e-12 <= got["confidence"] < 1
        before = got["confidence"]


@compiled
@given(jobs)
def test_recalls_leave_no_trace_and_a_copy_lives_on_its_own(learned):
    one, other = mind(models=MODELS), mind(models=MODELS)
    for i, (value, user, name, model) in enumerate(learned):
        one.learn(value, user, name, float(i), i, model)
        one.recall(one.query(name, user))
        other.learn(value, user, name, float(i), i, model)
    for ours, theirs in zip(one.memory, other.memory, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    kept = copy(one.memory)
    first, _ = one.recall(one.query("a", "x"))
    other.learn(99.0, "a", "x")
    one.learn(99.0, "a", "x")
    again, _ = one._replace(memory=kept).recall(one.query("a", "x"))
    assert again.tobytes() == first.tobytes()


def test_the_same_jobs_in_another_order_make_the_same_slots():
    # without fading only which outcome was last differs; two orders of a pattern with one kept
    both = []
    for values in ((1.0, 2.0, 4.0), (2.0, 1.0, 4.0)):
        one = mind(Size(slots=4, latest=1, half_jobs=math.inf))
        for value in values:
            one.learn(value, "ada")
        both.append(one.recall(one.query("ada"))[0])
    assert both[0].tobytes() == both[1].tobytes()
    assert both[0]["log_seconds"] == 1.5


@compiled
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 9)), min_size=1, max_size=30),
)
def test_the_weighted_median_is_the_middle_of_all_taken_as_often_as_they_weigh(pairs):
    values, weights = (np.array(column, float) for column in zip(*pairs, strict=True))
    everyone = sorted(value for value, weight in pairs for _ in range(weight))
    got, _, _ = weighted_select(values.copy(), weights.copy(), 0, len(values), weights.sum() / 2)
    assert got == everyone[(len(everyone) - 1) // 2]


@pytest.mark.parametrize(
    ("size", "models", "words"),
    [
        (Size(slots=0), (), "1 to 4194304 slots, not 0"),
        (Size(latest=0), (), "outcomes a pattern"),
        (Size(classes=-1), (), "classes"),
        (Size(half_s=0.0), (), "forget"),
        (Size(half_jobs=math.nan), (), "forget"),
        (Size(), ("T4", "T4"), "twice"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(size, models, words):
    with pytest.raises(ConfigError, match=words):
        empty(space_of(SCHEMA), size, models)


def test_models_need_their_role():
    with pytest.raises(ConfigError, match="no role 'gpu model'"):
        empty(space_of(Schema((Role("user", "word"),))), Size(), ("T4",))


def test_a_recall_needs_a_neighbour():
    with pytest.raises(ConfigError, match="not 0"):
        work_for(mind().memory, 0)
