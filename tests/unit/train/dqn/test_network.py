"""The network in torch and the compiled one are the same function."""

import numpy as np
import pytest
import torch

from adlro.features.observation_kernel import Sizes
from adlro.nets.paper_network import flat, scratch_size, shapes, values
from adlro.train.dqn import network as networks
from adlro.train.dqn.hyperparameters import PaperDqnHyperparameters
from adlro.train.dqn.network import Convolution, QNetwork

PAPER, TALL = Sizes(4, 4, 3, 1, 16), Sizes(16, 4, 3, 2, 60)
KINDS = {
    "the paper's": (PAPER, PaperDqnHyperparameters()),
    "eight to choose from": (PAPER._replace(window=8), PaperDqnHyperparameters(window=8)),
    "a larger matrix": (TALL, PaperDqnHyperparameters(channels=3)),
    "no filters": (PAPER, PaperDqnHyperparameters(backbone="mlp")),
    "dueling": (PAPER, PaperDqnHyperparameters(is_dueling=True)),
    "dueling without filters": (PAPER, PaperDqnHyperparameters(backbone="mlp", is_dueling=True)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_network_gives_torchs_values(kind):
    sizes, recipe = KINDS[kind]
    network = QNetwork(sizes, recipe, 5)
    x = np.random.default_rng(1).random((20, sizes.observation), np.float32)
    wanted = network(torch.from_numpy(x)).detach().numpy()
    exported = network.export()
    assert {name: a.shape for name, a in exported.arrays.items()} == shapes(*exported[:3])
    assert {a.dtype for a in exported.arrays.values()} == {np.dtype(np.float32)}
    params, q = flat(exported), np.zeros(sizes.actions)
    for row, expected in zip(x, wanted, strict=True):
        values(row.astype(np.float64), params, np.zeros(scratch_size(params)), q)
        np.testing.assert_allclose(q, expected, atol=1e-5)
    assert np.ptp(wanted, axis=1).min() > 0.01  # or it would be easy to be equal


def test_a_small_convolution_is_torchs_own_with_its_gradients(monkeypatch):
    found = []
    for most in (100, 0):
        monkeypatch.setattr(networks, "_MOST_CELLS", most)
        torch.manual_seed(0)
        layer = Convolution(2, 3, Sizes(3, 5, 1, 1, 15))
        if most:
            assert hasattr(layer, "_near")
        y = layer(torch.rand(4, 30))
        (y * torch.rand(4, 45)).sum().backward()
        found.append([y.detach(), layer.weight.grad, layer.bias.grad])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_same_seed_is_the_same_network_and_the_callers_luck_is_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    one, same, other = (
        QNetwork(PAPER, PaperDqnHyperparameters(), seed).export() for seed in (1, 1, 2)
    )
    assert torch.rand(1) == expected
    assert all((one.arrays[name] == same.arrays[name]).all() for name in one.arrays)
    assert (one.arrays["values"] != other.arrays["values"]).any()


def test_dueling_values_are_a_level_and_advantages_of_mean_zero():
    network = QNetwork(PAPER, PaperDqnHyperparameters(is_dueling=True), 0)
    with torch.no_grad():
        network.values.bias += 100.0  # the same for every action: no advantage
        network.level.weight.zero_()
        network.level.bias.fill_(7.0)
    assert network(torch.rand(3, PAPER.observation)).mean(1).tolist() == pytest.approx([7, 7, 7])
