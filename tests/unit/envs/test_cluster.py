"""adlro/Cluster-v0: the environment of Gymnasium, single and vector."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import adlro.envs  # noqa: F401  registers adlro/Cluster-v0
from adlro.config.files import adjusted, find_scenario
from adlro.envs import render
from adlro.envs.cluster import ClusterEnv
from adlro.errors import ConfigError, PolicyError
from adlro.evaluate.compare import run_one
from adlro.evaluate.metrics import measure
from adlro.policies import registry
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.scenario_files import refusal
from tests.stepping import stepped
from tests.worlds import build, fails, job, nodes

NAME = "adlro/Cluster-v0"
FULL = {"scenario": "paper16", "window": 3, "observation": "full", "wait": True}


def made(**options):
    return gymnasium.make(NAME, **{"jobs": 20, **options}).unwrapped


def many(count, **options):
    mode = "vector_entry_point"
    options = {"jobs": 20, **options}
    return gymnasium.make_vec(NAME, num_envs=count, vectorization_mode=mode, **options)


def lowest(mask):
    """The lowest action that is allowed."""
    return int(np.argmax(mask))


def played(env, choose, **reset):
    """An episode: its rewards and the last info."""
    _, info = env.reset(**reset)
    rewards, over = [], False
    while not over:
        _, reward, over, _, info = env.step(choose(info["action_mask"]))
        rewards.append(reward)
    return rewards, info


@pytest.mark.parametrize("options", [{}, FULL], ids=["paper", "full"])
def test_the_checker_finds_nothing(options):
    check_env(made(**options))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, FULL], ids=["paper", "full"])
def test_the_checker_of_stable_baselines3_finds_nothing(options):
    from stable_baselines3.common.env_checker import check_env as check_env_of_sb3

    check_env_of_sb3(made(**options))


def test_spaces_are_those_of_the_paper_or_all_that_a_scheduler_needs():
    # paper16: 4 nodes of 4 GPUs, 3 types, 3 pools.
    paper, full = made(), made(**FULL)
    assert paper.observation_space.shape == (4 * 4 + 1 + 1 * (1 + 3),)
    assert full.observation_space.shape == (4 * 4 + 1 + 3 * (1 + 3) + 3 * (3 + 2),)
    assert (paper.action_space.n, full.action_space.n) == (16, 3 * 16 + 1)
    assert (paper.observation_space.low[0], full.observation_space.low[0]) == (0, -1)


def test_a_seed_plays_the_jobs_of_that_seed_of_the_simulator():
    scenario = adjusted(find_scenario("paper16-single"), jobs=20)
    env = made()
    env.reset(seed=7)
    expected = generate(prepare(scenario), 7)
    assert env.worlds.workload(0).jobs.tobytes() == expected.jobs.tobytes()
    assert env.worlds.workload(0).seconds.tobytes() == expected.seconds.tobytes()


def test_the_lowest_gpu_of_the_first_job_is_fcfs_on_a_cluster_of_one_node(tmp_path):
    file = tmp_path / "one.toml"
    node = "[[cluster.nodes]]\nname = 'n'\ngpu = 'V100'\ngpus = 4\ncores = 8\nmemory_gb = 64\n"
    type_ = "[[types]]\nname = 't'\nshare = 1.0\nkind = 'ml'\nsize = { median_s = 10 }\n"
    file.write_text(f"jobs = 50\n[cluster]\nname = 'c'\n{node}{type_}gpus = 2\n")
    _, info = played(made(scenario=str(file), jobs=None), lowest, seed=3)
    setting = prepare(find_scenario(str(file)))
    jobs = generate(setting, 3)
    result = run_one(setting, jobs, registry.load("fcfs", setting), 3)
    metrics = measure(setting, jobs, result)
    assert info["mean_jct_s"] == pytest.approx(metrics.mean_jct_s, rel=1e-12)
    assert info["idle_gpu_s"] == result.totals["idle_seconds"]
    assert info["makespan_s"] == pytest.approx(metrics.makespan_s, rel=1e-12)


def test_rewards_are_minus_the_sum_of_jct_and_weighted_idle_time_in_units_of_the_scale():
    env = made(idle_weight=0.25, reward_scale=50.0)
    rewards, info = played(env, lowest, seed=0)
    whole = 20 * info["mean_jct_s"] + 0.25 * info["idle_gpu_s"]
    assert sum(rewards) == pytest.approx(-whole / 50, rel=1e-9)


def test_the_usual_scale_is_the_gpu_seconds_of_a_mean_job():
    env = made(load=0.5)
    setting = prepare(find_scenario("paper16-single"))
    assert env.setup.scale == pytest.approx(16 / setting.capacity_per_s)


def test_resets_go_on_with_seeds_that_follow_from_the_first_and_are_no_tables():
    env = made()
    first = [env.reset(seed=5)[1]["seed"], played(env, lowest)[1]["seed"], env.reset()[1]["seed"]]
    again = [env.reset(seed=5)[1]["seed"], env.reset()[1]["seed"], env.reset()[1]["seed"]]
    assert first == again
    assert first[0] == 5
    assert 1_000_000 <= min(first[1:]) < max(first[1:]) < 2**31
    env.reset(seed=6)
    assert env.reset()[1]["seed"] not in first


def test_a_drawn_seed_is_the_one_whose_jobs_are_played():
    env = made()
    env.reset(seed=5)
    _, info = env.reset()
    jobs = generate(env.setup.setting, info["seed"]).jobs
    assert env.worlds.workload(0).jobs.tobytes() == jobs.tobytes()


def test_single_environments_with_neighbouring_seeds_play_different_episodes():
    # Episodes of one job: the second step begins the next one, of which each has a new seed.
    envs = gymnasium.make_vec(NAME, num_envs=4, vectorization_mode="sync", jobs=1)
    seeds = envs.reset(seed=0)[1]["seed"].tolist()
    for _ in range(3):
        envs.step(np.zeros(4, np.int64))
        seeds += envs.step(np.zeros(4, np.int64))[4]["seed"].tolist()
    assert len(set(seeds)) == 16


@pytest.mark.parametrize("seed", [-1, 0.5, True, "1", 2**63])
@pytest.mark.parametrize("env", [made(), many(2)], ids=["single", "vector"])
def test_what_is_no_seed_is_refused(env, seed):
    with pytest.raises(ConfigError, match=r"^seed: "):
        env.reset(seed=seed)


def test_a_seed_of_numpy_is_as_good():
    assert made().reset(seed=np.int64(3))[1]["seed"] == 3


@pytest.mark.parametrize("env", [made(), many(2)], ids=["single", "vector"])
def test_without_a_seed_none_that_a_table_uses_is_played(env):
    assert np.min(env.reset()[1]["seed"]) >= 1_000_000


def test_the_mask_in_info_is_that_of_the_method_and_fit_for_sampling():
    env = made()
    _, info = env.reset(seed=1)
    assert info["action_mask"].dtype == np.int8
    assert info["action_mask"].tolist() == env.action_masks().tolist()
    env.step(env.action_space.sample(info["action_mask"]))


def test_a_wrapped_environment_hands_out_its_mask():
    env = gymnasium.make(NAME, jobs=20)
    _, info = env.reset(seed=1)
    mask = env.get_wrapper_attr("action_masks")()
    assert mask.tolist() == info["action_mask"].astype(bool).tolist()


def test_a_forbidden_action_is_replaced_by_the_nearest_and_info_says_so():
    # Seed 1: the first job may use any GPU. GPU 5 taken, 5 stands for 4 (as near as 6).
    env = made()
    env.reset(seed=1)
    _, _, _, _, info = env.step(5)
    assert (info["action"], info["action_mask"][4:7].tolist()) == (5, [1, 0, 1])
    assert env.step(5)[4]["action"] == 4


def test_a_forbidden_action_can_be_an_error():
    env = made(forbidden="error")
    env.reset(seed=1)
    env.step(5)
    with pytest.raises(PolicyError, match=r"^action 5 .* is not allowed now$"):
        env.step(5)


def test_half_an_action_is_an_error():
    env = made()
    env.reset(seed=1)
    for action in (0.5, [0, 0], True):
        with pytest.raises(PolicyError, match=r"^action: a whole number is needed, not "):
            env.step(action)


def test_an_action_may_stand_in_an_array():
    env = made()
    env.reset(seed=1)
    assert env.step(np.array([5]))[4]["action"] == 5


@pytest.mark.parametrize("action", [-1, 16])
def test_what_is_no_action_is_an_error(action):
    env = made()
    env.reset(seed=1)
    with pytest.raises(PolicyError, match=rf"action {action} \(there are 0 to 15\)"):
        env.step(action)


def test_a_step_after_the_end_asks_for_a_reset():
    env = made()
    played(env, lowest, seed=0)
    with pytest.raises(ResetNeeded):
        env.step(0)


def test_the_end_is_told_with_an_empty_mask():
    env = made()
    assert not env.action_masks().any()
    _, info = played(env, lowest, seed=0)
    assert not info["action_mask"].any()
    assert not env.action_masks().any()
    env.reset()
    assert env.action_masks().any()


def test_the_last_rendering_is_that_of_the_end():
    env = made(render_mode="ansi")
    _, info = played(env, lowest, seed=0)
    lines = env.render().splitlines()
    assert lines[0].endswith("s: 0 waiting, 0 running, 20 of 20 done")
    assert len(lines) == 5
    first = env.worlds.workload(0).jobs["arrival"][0]
    assert lines[0].startswith(f"{first + info['makespan_s']:,.0f} s")


def test_render_shows_each_gpu_and_who_is_next():
    # So many jobs come that job 1 is there before job 0, on GPU 2 of the first node, is done.
    env = made(render_mode="ansi", load=50.0)
    env.reset(seed=0)
    env.step(2)
    lines = env.render().splitlines()
    assert lines[0].endswith("s: 1 waiting, 1 running, 0 of 20 done")
    assert lines[1].split() == ["volta-0", "-", "-", "0", "-"]
    assert lines[5].startswith("  next: job 1, ")
    assert made().render() is None


def test_a_rendering_shows_slices_and_nodes_that_are_down():
    # Node 1 is down; job 0, 30 % of a GPU, is on node 0. Job 1, half a GPU, waits at 2.
    jobs = [job(0, 9, share=300), job(2, 9, share=500), job(3, 9, gpus=2)]
    world = build([nodes(gpus=2, count=2)], jobs, events=[fails(1, 1)])
    worlds = stepped(world)
    worlds.step([0])
    layout = SimpleNamespace(node_names=("a", "node"))
    scenario = SimpleNamespace(types=[SimpleNamespace(name="ml")])
    setting = SimpleNamespace(layout=layout, scenario=scenario)
    assert render.render(setting, worlds.world(0)).splitlines() == [
        "2 s: 1 waiting, 1 running, 0 of 3 done",
        "  a     30% -",
        "  node  x x",
        "  next: job 1, ml, GPUs 0.5, waiting for 0 s",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"widow": 1}, "adlro/Cluster-v0: widow"),
        ({"window": 0}, "adlro/Cluster-v0: window"),
        ({"scenario": "paper61"}, "unknown scenario 'paper61'; did you mean 'paper16'"),
        ({"jobs": 0}, "adlro/Cluster-v0: jobs"),
        ({"observation": "all"}, "adlro/Cluster-v0: observation"),
    ],
)
def test_wrong_arguments_are_named(options, said):
    assert said in refusal(lambda: gymnasium.make(NAME, **options))


@pytest.mark.parametrize("mode", ["human", "text"])
def test_a_render_mode_that_there_is_not_is_refused(mode):
    said = refusal(lambda: ClusterEnv(render_mode=mode))
    assert said == f"adlro/Cluster-v0: render_mode: None or 'ansi' is needed, not '{mode}'"


def test_the_vector_says_how_it_resets():
    assert many(2).metadata["autoreset_mode"] == AutoresetMode.SAME_STEP


def test_the_vector_plays_what_single_environments_play():
    envs, singles = many(3, **FULL), [made(**FULL) for _ in range(3)]
    seen, info = envs.reset(seed=4)
    expected = [env.reset(seed=4 + i) for i, env in enumerate(singles)]
    assert info["seed"].tolist() == [4, 5, 6]
    over = np.zeros(3, np.bool_)
    while not over.any():
        assert all(np.array_equal(seen[i], expected[i][0]) for i in range(3))
        actions = [lowest(mask) for mask in info["action_mask"]]
        seen, rewards, over, _, info = envs.step(np.array(actions))
        steps = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert rewards.tolist() == [step[1] for step in steps]
        assert over.tolist() == [step[2] for step in steps]
        expected = [(step[0],) for step in steps]
    i = int(np.argmax(over))
    assert np.array_equal(info["final_obs"][i], expected[i][0])
    for name, value in steps[i][4].items():
        assert np.array_equal(info["final_info"][name][i], value)
    assert info["_final_info"].tolist() == over.tolist()
    assert np.array_equal(seen[i], singles[i].reset(seed=int(info["seed"][i]))[0])


def test_the_vector_tells_of_the_end_what_gymnasiums_own_tells():
    # Both play seeds 0 to 2; the episodes that follow are not the same. Copy 1 waits if it may, so
    # that the others end before it.
    own = gymnasium.make_vec(
        NAME, num_envs=3, vectorization_mode="sync", jobs=5, wait=True,
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
    )  # fmt: skip
    pair = (many(3, jobs=5, wait=True), own)
    masks, _ = (envs.reset(seed=0)[1]["action_mask"] for envs in pair)
    over = np.zeros(3, np.bool_)
    while not over.any():
        actions = masks.argmax(axis=1)
        actions[1] = 16 if masks[1, 16] else actions[1]
        (*_, ours), (_, _, over, _, theirs) = (envs.step(actions) for envs in pair)
        masks = ours["action_mask"]
    assert not over.all()
    assert set(ours) == set(theirs)
    for name in ("action", "_action", "_seed", "_action_mask", "_final_obs", "_final_info"):
        assert (ours[name].dtype, ours[name].tolist()) == (
            theirs[name].dtype,
            theirs[name].tolist(),
        )
    assert set(ours["final_info"]) == set(theirs["final_info"])
    for name, values in theirs["final_info"].items():
        found = ours["final_info"][name]
        assert (found.dtype, found.tolist()) == (values.dtype, values.tolist())
    for found, expected in zip(ours["final_obs"], theirs["final_obs"], strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("seeds", [[9, 3], np.array([9, 3])], ids=["list", "array"])
def test_the_vector_takes_a_seed_for_each_and_draws_the_others(seeds):
    envs = many(2, jobs=1)
    shown = []
    for _ in range(2):
        assert envs.reset(seed=seeds)[1]["seed"].tolist() == [9, 3]
        *_, info = envs.step(np.array([lowest(mask) for mask in envs.worlds.masks]))
        assert info["final_info"]["seed"].tolist() == [9, 3]
        shown.append([*info["seed"].tolist(), *envs.reset()[1]["seed"].tolist()])
    assert shown[0] == shown[1]
    assert min(shown[0]) >= 1_000_000
    assert len(set(shown[0])) == 4


@pytest.mark.parametrize("seeds", [[1], [1, 2, 3], np.array([[1, 2]]), np.array(1)])
def test_there_must_be_a_seed_for_each(seeds):
    with pytest.raises(ConfigError, match=r"^seed: 2 whole numbers are needed"):
        many(2).reset(seed=seeds)


@pytest.mark.parametrize("seeds", [[1, None], [1, -1], [[1], [2]], np.array([0.5, 1.5])])
def test_each_seed_must_be_one(seeds):
    with pytest.raises(ConfigError, match=r"^seed: a whole number from 0 to "):
        many(2).reset(seed=seeds)


def test_the_vector_replaces_forbidden_actions_one_by_one():
    envs = many(2)
    envs.reset(seed=[1, 1])
    envs.step(np.array([5, 0]))
    *_, info = envs.step(np.array([5, 5]))
    assert info["action"].tolist() == [4, 5]


def test_what_a_step_returns_is_not_changed_by_the_next():
    envs = many(2)
    envs.reset(seed=1)
    first = envs.step(np.array([0, 0]))
    kept = [array.copy() for array in first[:4]], first[4]["action_mask"].copy()
    envs.step(np.array([1, 1]))
    assert all(np.array_equal(a, b) for a, b in zip(first[:4], kept[0], strict=True))
    assert np.array_equal(first[4]["action_mask"], kept[1])


def test_the_example_of_the_docs_runs_in_a_process_of_its_own():
    page = (Path(__file__).parents[3] / "docs" / "gymnasium.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    words = [sys.executable, "-W", "error", "-c", code]
    mean_jct, idle, makespan = map(float, subprocess.check_output(words, text=True).split())
    assert makespan > mean_jct > 0
    assert idle > 0


def test_without_gymnasium_the_extra_is_named_and_the_package_still_imports():
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import adlro\n"
        "from adlro.errors import MissingExtraError\n"
        "try:\n    import adlro.envs\n"
        "except MissingExtraError as exc:\n    print(exc)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "adlro.envs needs the extra: pip install 'adlro[gym]'\n"
