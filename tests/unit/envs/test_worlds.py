"""Copies of a scenario, stepped together."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adlro.envs.worlds import Worlds
from adlro.errors import ConfigError, PolicyError
from tests.stepping import (
    first_actions,
    play_episode,
    random_actions,
    replayed,
    shipped_supply,
    stepped,
    supply_of,
)
from tests.worlds import build, fails, is_repaired, job, nodes, play, random_world

SCENARIOS = ("datacenter", "gavel16", "hetero64", "paper16", "paper16-single", "paper16-surge",
             "quotas64", "rough64")  # fmt: skip


def two_jobs(**more):
    """A V100 and a T4; two jobs at 0 and 1."""
    return build([nodes("V100"), nodes("T4")], [job(0, 4, 6), job(1, 3, 5)], **more)


def test_a_step_pays_the_time_of_all_jobs_and_half_of_what_is_idle():
    # Job 0 starts on the V100 at 0. Until job 1 comes, at 1: 1 second in the system, the T4 idle:
    # 1 + 0.5. It starts on the T4, 1-6. Until 4 both are in the system, none idle: 6; until 6 one,
    # the V100 idle: 2 + 0.5 * 2. In all (4 + 5) + 0.5 * (1 + 2).
    worlds = stepped(two_jobs())
    worlds.step([0])
    assert (worlds.rewards.tolist(), worlds.dones.tolist()) == ([-1.5], [False])
    assert worlds.masks.tolist() == [[False, True]]
    worlds.step([1])
    assert (worlds.rewards.tolist(), worlds.dones.tolist()) == ([-9.0], [True])
    assert worlds.endings[0].item() == (0, 2, 9.0, 3.0, 6.0)


def test_what_passes_before_the_first_decision_is_paid_with_the_first():
    # The only node is down until 3. Job 0 waits 3, runs 4: its JCT is 7, and nothing up is idle.
    world = build([nodes()], [job(0, 4)], events=[fails(0, 0), is_repaired(3, 0)])
    worlds = stepped(world)
    assert worlds.world(0).totals["now"].tolist() == [3]
    worlds.step([0])
    assert worlds.rewards.tolist() == [-7]


def test_two_starts_in_one_moment_are_two_steps_and_the_first_costs_nothing():
    worlds = stepped(build([nodes(gpus=2)], [job(0, 4), job(0, 4)]))
    worlds.step([1])
    assert (worlds.rewards.tolist(), worlds.masks.tolist()) == ([0], [[True, False]])


def check_against_the_simulator(supply, window, seed):
    """An episode of random starts: rewards add up to what the simulator says of the same starts."""
    worlds = Worlds(supply, 1, window, 0.3)
    starts, rewards, ending = play_episode(worlds, random_actions, seed)
    result, jobs = replayed(supply, 0, starts), supply.draw(0).jobs
    jct = float((result.outcome["finish"] - jobs["arrival"]).sum())
    idle = float(result.totals["idle_seconds"])
    assert sum(rewards) == pytest.approx(-(jct + 0.3 * idle), rel=1e-9)
    assert (ending["episode"], ending["jobs"]) == (0, len(jobs))
    assert (ending["job_seconds"], ending["idle_seconds"]) == pytest.approx((jct, idle), rel=1e-9)
    assert ending["span"] == result.outcome["finish"].max() - jobs["arrival"][0]


@pytest.mark.parametrize("name", SCENARIOS)
def test_rewards_add_up_to_jct_and_idle_time_on_every_scenario(name):
    check_against_the_simulator(shipped_supply(name, 60), 2, seed=1)


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_rewards_add_up_in_worlds_of_slices_gangs_failures_and_quotas(seed, window):
    check_against_the_simulator(supply_of(random_world(seed)), window, seed)


def test_the_next_episode_pays_for_itself_alone():
    worlds = Worlds(shipped_supply("paper16", 30), 1, 2, 0.3)
    play_episode(worlds, random_actions)
    _, rewards, ending = play_episode(worlds, random_actions)
    whole = ending["job_seconds"] + 0.3 * ending["idle_seconds"]
    assert ending["episode"] == 1
    assert sum(rewards) == pytest.approx(-whole, rel=1e-9)


def test_the_first_pool_that_fits_is_fcfs_where_every_pool_is_one_node():
    # Which GPU of a node is taken makes no difference: the same sums, to the last digit.
    rng = np.random.default_rng(5)
    jobs = [
        job(float(t), *rng.exponential(9, 2), gpus=int(n))
        for t, n in zip(np.cumsum(rng.exponential(2, 200)), rng.integers(1, 5, 200), strict=True)
    ]
    world = build([nodes("V100", 4), nodes("T4", 8)], jobs)
    _, _, ending = play_episode(stepped(world), first_actions)
    result = play(world, "fcfs")
    assert ending["job_seconds"] == result.totals["job_seconds"]
    assert ending["idle_seconds"] == result.totals["idle_seconds"]


def test_copies_take_episodes_in_order_and_begin_the_next_in_the_same_step():
    # Episodes of one job, of 1, 2, ... 5 s, and then the same again.
    worlds = stepped(*(build([nodes()], [job(0, k + 1)]) for k in range(5)), count=3)
    worlds.step([0, 0, 0])
    assert worlds.dones.all()
    assert worlds.endings["episode"].tolist() == [0, 1, 2]
    assert worlds.endings["job_seconds"].tolist() == [1, 2, 3]
    assert worlds.episodes.tolist() == [3, 4, 5]
    assert worlds.following == 6
    assert worlds.masks.all()


def test_copies_do_what_each_does_alone():
    supply, rng = shipped_supply("paper16", 30), np.random.default_rng(0)
    together = Worlds(supply, 3, 2, 0.5)
    alone = [Worlds(supply, 1, 2, 0.5) for _ in range(3)]
    for i in range(3):
        alone[i].begin(i)
    for _ in range(25):
        actions = random_actions(together.masks, rng)
        together.step(actions)
        for i in range(3):
            alone[i].step(actions[i : i + 1])
            assert together.rewards[i] == alone[i].rewards[0]
            assert together.observations[i].tobytes() == alone[i].observations[0].tobytes()
            assert together.masks[i].tolist() == alone[i].masks[0].tolist()


def test_a_piece_is_the_next_jobs_with_the_first_of_them_at_0():
    world = build([nodes()], [job(10, 1), job(12, 2), job(15, 3), job(19, 4)])
    worlds = Worlds(supply_of(world, pieces=2), 2, 1, 0.0)
    assert worlds.workload(1).jobs["arrival"].tolist() == [0, 4]
    assert worlds.workload(1).seconds.tolist() == [[3], [4]]
    worlds.begin(3)  # the second piece of the second workload, then the first of the third
    assert worlds.workload(0).jobs["arrival"].tolist() == [0, 4]
    assert worlds.workload(1).jobs["arrival"].tolist() == [0, 2]


def test_a_piece_finds_the_cluster_as_it_was_when_it_began():
    # Node 0 failed at 2 and comes back at 20. The second piece begins at 15: 5 seconds before.
    events = [fails(2, 0), is_repaired(20, 0)]
    jobs = [job(0, 1), job(15, 9)]
    world = build([nodes(count=2)], jobs, events=events)
    worlds = Worlds(supply_of(world, pieces=2), 2, 1, 0.0)
    assert worlds.masks.tolist() == [[True, True], [False, True]]
    assert worlds.workload(1).events["time"].tolist() == [-13, 5]


def test_jobs_that_cannot_be_cut_evenly_are_refused():
    with pytest.raises(ConfigError, match="2 jobs cannot be cut into 3 episodes of the same"):
        Worlds(supply_of(two_jobs(), pieces=3), 1, 1, 0.5)


def test_workloads_of_different_lengths_are_refused():
    worlds = (two_jobs(), build([nodes("V100"), nodes("T4")], [job(0, 1, 1)]))
    with pytest.raises(ConfigError, match="all workloads of a supply must have as many jobs"):
        stepped(*worlds, count=2)


def after(worlds, rng, steps):
    """The bytes of all that so many random steps show."""
    shown = []
    for _ in range(steps):
        worlds.step(random_actions(worlds.masks, rng))
        arrays = (worlds.observations, worlds.masks, worlds.rewards, worlds.dones, worlds.endings)
        shown += [array.tobytes() for array in arrays]
    return shown


@pytest.mark.parametrize(("name", "pieces"), [("rough64", 1), ("paper16-single", 3)])
def test_going_on_from_a_checkpoint_gives_the_same_steps(name, pieces):
    supply = shipped_supply(name, 30, pieces)
    worlds, other = Worlds(supply, 4, 2, 0.5), Worlds(supply, 4, 2, 0.5)
    after(worlds, np.random.default_rng(0), 50)
    file = io.BytesIO()
    np.savez(file, **worlds.checkpoint())
    after(other, np.random.default_rng(7), 13)
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        other.restore(arrays)
    assert other.masks.tolist() == worlds.masks.tolist()
    expected = after(worlds, np.random.default_rng(1), 150)
    assert after(other, np.random.default_rng(1), 150) == expected


def test_a_checkpoint_does_not_change_with_the_worlds_it_was_taken_of():
    worlds = stepped(two_jobs())
    kept = worlds.checkpoint()
    worlds.step([0])
    worlds.restore(kept)
    assert worlds.world(0).totals["now"].tolist() == [0]


def test_a_checkpoint_of_other_worlds_is_refused():
    worlds = stepped(two_jobs())
    kept = {name: array.tobytes() for name, array in worlds.checkpoint().items()}
    with pytest.raises(ConfigError, match=r"'state\.totals' is missing or of other worlds"):
        worlds.restore(stepped(two_jobs(), count=2).checkpoint())
    assert {name: array.tobytes() for name, array in worlds.checkpoint().items()} == kept
    with pytest.raises(ConfigError, match="'following' is missing"):
        stepped(two_jobs()).restore({})


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (0, r"action 0 \(start the job of slot 0 on GPU 0\)"),
        (2, r"action 2 \(there are 0 to 1\)"),
        (-1, r"action -1 \(there are 0 to 1\)"),
    ],
)
def test_a_forbidden_action_is_an_error_and_nothing_moves(action, words):
    worlds = stepped(two_jobs(), two_jobs(), count=2)
    worlds.step([0, 0])
    kept = worlds.checkpoint()
    with pytest.raises(PolicyError, match=rf"^copy 1: {words} is not allowed now$"):
        worlds.step([1, action])
    assert {k: v.tobytes() for k, v in worlds.checkpoint().items()} == {
        k: v.tobytes() for k, v in kept.items()
    }


@pytest.mark.parametrize(("actions", "words"), [([0, 0], r"int64 \(2,\)"), ([0.5], "float64")])
def test_a_whole_number_for_each_copy_is_asked_for(actions, words):
    with pytest.raises(PolicyError, match=rf"^actions: a whole number for each of 1 .* {words}"):
        stepped(two_jobs()).step(actions)


def test_to_wait_is_to_let_the_next_event_come():
    # Waiting is action 2, once something runs. Job 1 lets job 0 finish on the V100, at 4, and
    # follows it there, 4-7: JCTs 4 and 6.
    worlds = stepped(two_jobs(), wait=True)
    assert worlds.masks.tolist() == [[True, True, False]]
    worlds.step([0])
    assert worlds.masks.tolist() == [[False, True, True]]
    worlds.step([2])
    assert worlds.world(0).totals["now"].tolist() == [4]
    assert worlds.masks.tolist() == [[True, True, False]]
    worlds.step([0])
    assert worlds.endings["job_seconds"].tolist() == [10]


def test_full_observations_add_the_estimates_the_gang_and_the_waiting_time():
    # A typical job takes 3 GPUs / 1 a second = 3 s. Job 1, two GPUs, has waited 2 s at 3, when job
    # 0 leaves the V100s; it may not use the T4. Logs are in units of log 1000.
    jobs = [job(0, 3, 9, gpus=2), job(1, 30, 9, gpus=2)]
    worlds = stepped(build([nodes("V100", 2), nodes("T4")], jobs), full=True)
    worlds.step([0])
    log = np.log
    expected = [log(10) / log(1000), 1, log(3) / log(4), log(1 + 2 / 3) / log(1001)]
    assert worlds.observations[0, -4:].tolist() == pytest.approx(expected, rel=1e-6)


def test_what_was_seen_at_the_end_is_an_empty_cluster():
    worlds = stepped(two_jobs())
    worlds.step([0])
    worlds.step([1])
    assert worlds.finals.tolist() == [[0, 0, 0, 0, 0]]
    assert worlds.observations[0, 2] > 0


def test_worlds_without_a_copy_are_refused():
    with pytest.raises(ConfigError, match=r"^copies: at least 1, not 0$"):
        stepped(two_jobs(), count=0)


def test_one_copy_can_be_told_to_stop_with_its_last_state_until_it_begins_anew():
    worlds = stepped(two_jobs(), stops=True)
    worlds.step([0])
    worlds.step([1])
    world = worlds.world(0).totals[0]
    assert worlds.dones.tolist() == [True]
    assert (world["waiting"], world["running"], world["finished"]) == (0, 0, 2)
    worlds.begin(worlds.following)
    assert (worlds.dones.tolist(), worlds.episodes.tolist()) == ([False], [1])
    assert (world["waiting"], world["finished"]) == (1, 0)


@pytest.mark.parametrize(("count", "pieces"), [(2, 1), (1, 2)])
def test_only_one_copy_of_whole_workloads_can_stop(count, pieces):
    with pytest.raises(ConfigError, match=r"^copies: to stop at the end, 1 that plays whole"):
        Worlds(supply_of(two_jobs(), pieces=pieces), count, 1, 0.5, stops=True)


def test_a_copy_that_stops_is_not_named_in_errors():
    worlds = stepped(two_jobs(), stops=True)
    with pytest.raises(PolicyError, match=r"^action 9 \(there are 0 to 1\) is not allowed now$"):
        worlds.step([9])
    world = build([nodes()], [job(1, 4)], events=[fails(0, 0)])
    with pytest.raises(PolicyError, match=r"^the player left 1 jobs waiting"):
        stepped(world, stops=True)


def test_a_job_that_can_never_start_is_an_error_that_names_the_copy():
    # The only node fails before anything comes and is never repaired.
    world = build([nodes()], [job(1, 4)], events=[fails(0, 0)])
    with pytest.raises(PolicyError, match=r"^copy 0 left 1 jobs waiting"):
        stepped(world)
