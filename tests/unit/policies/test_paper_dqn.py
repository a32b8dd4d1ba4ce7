"""The paper's DQN as a policy: what its weights say is done, where something can start."""

import json

import numpy as np
import pytest

from adlro.config.files import adjusted, find_scenario
from adlro.errors import PolicyError
from adlro.features.observation_kernel import Sizes
from adlro.nets.paper_network import PaperNetwork, flat, shapes
from adlro.policies import paper_dqn, registry
from adlro.policies.loading import learned
from adlro.policies.registry import Policy
from adlro.sim import simulator
from adlro.sim.world import EmptyCluster
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare
from tests.trained import ORIGIN, refused
from tests.worlds import build, gpus_of, job, nodes, play


def random_network(sizes, channels=8, hidden=(64,), seed=0):
    rng = np.random.default_rng(seed)
    found = shapes(sizes, channels, hidden)
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in found.items()}
    return PaperNetwork(sizes, channels, hidden, arrays)


def fixed(sizes, values):
    """A network that gives the same values in every state."""
    network = random_network(sizes, 0, (1, 1))
    network.arrays["values"][:] = 0.0
    network.arrays["values_bias"][:] = values
    return network


def ready(network):
    params = flat(network)
    memory = paper_dqn.memory(None, params)
    return Policy("paper-dqn", paper_dqn.decide, params, memory, None, 0, False)


def three_gpus(jobs):
    return build([nodes(gpus=3)], jobs)


def test_the_free_gpu_of_the_largest_value_is_taken():
    world = three_gpus([job(0, 10), job(0, 10), job(0, 10)])
    result = play(world, ready(fixed(Sizes(1, 3, 1, 1, 3), (1, 3, 2))))
    assert [gpus_of(result, j) for j in range(3)] == [[1], [2], [0]]


def test_with_a_window_of_one_nobody_passes_the_first():
    # Job 0 holds one of the three GPUs until 10, job 1 wants all three: job 2 has to wait for it.
    world = three_gpus([job(0, 10), job(0, 5, gpus=3), job(0, 5)])
    result = play(world, ready(fixed(Sizes(1, 3, 1, 1, 3), (1, 2, 3))))
    assert result.outcome["start"].tolist() == [0, 10, 15]


def test_with_a_larger_window_a_later_job_may_go_first():
    # The same, but of the two first jobs that wait any may start; 3 GPUs: actions 3 to 5 are of the
    # second one. Job 2 starts at 0 beside job 0, job 1 when all three are free.
    world = three_gpus([job(0, 10), job(0, 5, gpus=3), job(0, 5)])
    result = play(world, ready(fixed(Sizes(1, 3, 1, 2, 3), (4, 5, 6, 1, 2, 3))))
    assert result.outcome["start"].tolist() == [0, 10, 0]


def test_the_named_gpu_is_where_a_gang_begins():
    world = build([nodes(gpus=2, count=2)], [job(0, 10, gpus=3)])
    result = play(world, ready(fixed(Sizes(2, 2, 1, 1, 4), (0, 0, 0, 1))))
    assert gpus_of(result, 0) == [0, 2, 3]  # node 1 whole, and one of the other


def test_the_type_of_a_job_decides_where_the_weights_say_so():
    network = fixed(Sizes(1, 3, 2, 1, 3), 0)
    arrays = network.arrays
    for name in ("hidden0", "hidden0_bias", "hidden1", "hidden1_bias"):
        arrays[name][:] = 0
    arrays["hidden0"][-1, 0] = arrays["hidden1"][0, 0] = 1  # the second type, through both layers
    arrays["values_bias"][0], arrays["values"][0, 2] = 0.5, 1
    result = play(three_gpus([job(0, 10), job(20, 10, type=1)]), ready(network))
    assert [gpus_of(result, j) for j in range(2)] == [[0], [2]]


@pytest.mark.parametrize("scenario", ["paper16-single", "paper16"])
@pytest.mark.parametrize("window", [1, 8])
def test_any_weights_bring_every_job_to_its_end(scenario, window):
    setting = prepare(adjusted(find_scenario(scenario), jobs=60))
    policy = ready(random_network(Sizes(4, 4, 3, window, 16), seed=window))
    layout = setting.layout
    empty = EmptyCluster(layout.pools, layout.nodes, layout.gpus)
    result = simulator.run(empty, generate(setting, 3), policy, 3)
    assert result.totals["finished"] == 60


@pytest.mark.parametrize("channels", [0, 8])
def test_a_file_plays_as_the_weights_it_was_made_of(tmp_path, channels):
    hidden = (64,) if channels else (64, 64)
    network = random_network(Sizes(4, 4, 3, 2, 16), channels, hidden)
    card = learned.save(tmp_path / "mine.npz", network, ORIGIN)
    setting = prepare(find_scenario("paper16"))
    policy = registry.load(str(tmp_path / "mine.json"), setting)
    assert (policy.name, policy.decide) == ("mine", paper_dqn.decide)
    assert policy.params.tobytes() == flat(network).tobytes()
    assert (card.policy, card.window, card.channels) == ("paper-dqn", 2, channels)
    again = learned.save(tmp_path / "again.npz", *learned.load(tmp_path / "mine.npz"))
    assert again == card.model_copy(update={"sha256_weights": again.sha256_weights,
                                            "sha256_card": again.sha256_card})  # fmt: skip


def test_weights_for_another_cluster_are_refused_in_one_line(tmp_path):
    learned.save(tmp_path / "mine.npz", random_network(Sizes(2, 8, 3, 1, 16)), ORIGIN)
    with pytest.raises(
        PolicyError,
        match=r"^policy mine cannot run paper16: its weights are for 2 nodes of up to 8 GPUs, "
        r"16 GPUs and 3 job types, and here are 4 nodes of up to 4 GPUs, 16 GPUs and 3 job types; "
        r"train some with adlro train SCENARIO --algorithm paper-dqn$",
    ):
        registry.load(str(tmp_path / "mine.npz"), prepare(find_scenario("paper16")))


def test_the_shipped_weights_play_the_papers_cluster_and_no_other():
    for name in ("paper16-single", "paper16", "paper16-surge"):
        assert registry.refusal("paper-dqn", prepare(find_scenario(name))) is None
    refusal = registry.refusal("paper-dqn", prepare(find_scenario("hetero64")))
    assert refusal.startswith("its weights are for 4 nodes of up to 4 GPUs")
    card = learned.shipped("paper-dqn").card
    assert (card.policy, card.window, card.channels, card.hidden) == ("paper-dqn", 1, 8, (64,))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": 0}, ".json: 'window': input should be greater than or equal to 1; copy"),
        ({"hidden": []}, ".json: 'hidden': tuple should have at least 1 item"),
        ({"features": ["drain"]}, ".json: 'features': unknown key; was the card changed"),
        ({"policy": "other"}, ".json: 'policy': input should be 'adlro' or 'adlro-preemptive'"),
    ],
)
def test_a_card_that_says_what_cannot_be_is_refused(tmp_path, change, message):
    path = tmp_path / "mine.npz"
    learned.save(path, random_network(Sizes(2, 2, 1, 1, 4)), ORIGIN)
    card = path.with_suffix(".json")
    card.write_text(json.dumps(json.loads(card.read_text()) | change))
    assert refused(path).startswith(message)


def test_weights_of_another_shape_than_the_card_says_are_refused(tmp_path):
    path = tmp_path / "mine.npz"
    network = random_network(Sizes(2, 2, 1, 1, 4))
    network.arrays["values"] = network.arrays["values"][:, :3]
    with pytest.raises(PolicyError, match=r"'values' has shape \(64, 3\); by the card it is \(64,"):
        learned.save(path, network, ORIGIN)
    assert not path.exists()
