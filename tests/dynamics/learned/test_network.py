"""Derivatives of the perceptron along directions, against PyTorch's own."""

import numpy as np
import pytest
import torch
from torch.autograd.functional import hessian, jacobian

from cito.dynamics.learned.network import Network


@pytest.fixture
def network() -> Network:
    return Network((3, 7, 6, 2), np.random.default_rng(0))


def along(network: Network, z: torch.Tensor, dz: torch.Tensor):
    """s (k,) -> y(z + s dz) of one sample."""
    return lambda s: network.value(z + s @ dz)


def test_first_derivatives_agree_with_autograd(network: Network) -> None:
    z, dz = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 4, 3, dtype=torch.float64)
    y, dy = network.first(z, dz)
    assert torch.equal(y, network.value(z)) or torch.allclose(y, network.value(z), atol=1e-14)
    for b in range(5):
        J = jacobian(along(network, z[b], dz[b]), torch.zeros(4, dtype=z.dtype))
        torch.testing.assert_close(dy[b], J.T, rtol=1e-12, atol=1e-13)


def test_second_derivatives_agree_with_autograd(network: Network) -> None:
    z, dz = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 5, 3, dtype=torch.float64)
    y, dy, ddy = network.second(z, dz, 2)
    torch.testing.assert_close(dy, network.first(z, dz)[1], rtol=1e-12, atol=1e-13)
    for b in range(4):
        y_b = along(network, z[b], dz[b])
        for i in range(2):
            whole = hessian(lambda s, i=i, y_b=y_b: y_b(s)[i], torch.zeros(5, dtype=z.dtype))
            torch.testing.assert_close(ddy[b, :, :, i], whole[:2], rtol=1e-11, atol=1e-12)
    assert float(ddy.detach().abs().min()) > 0


def test_the_gradient_with_respect_to_weights_passes_through_the_derivatives() -> None:
    network = Network((2, 5, 1), np.random.default_rng(1))
    z, dz = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 2, 2, dtype=torch.float64)

    def loss() -> torch.Tensor:
        return sum((x**2).sum() for x in network.second(z, dz, 1))

    loss().backward()
    W = network.parameters[0]
    with torch.no_grad():
        W[0, 1] += 1e-6
        above = loss()
        W[0, 1] -= 2e-6
        below = loss()
    assert float(W.grad[0, 1]) == pytest.approx(float((above - below).detach()) / 2e-6, rel=1e-7)


def test_one_seed_makes_one_network() -> None:
    a, b, c = (Network((2, 3, 1), np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(a.parameters[0], b.parameters[0])
    assert not torch.equal(a.parameters[0], c.parameters[0])
