"""The policy written by hand against PyTorch, and Adam against PyTorch's."""

import numpy as np
import pytest

from cito.solvers.learning.adam import Adam, clip_norm
from cito.solvers.learning.policy import Policy

torch = pytest.importorskip("torch")


def twin(policy: Policy) -> "torch.nn.Sequential":
    """The same network in PyTorch."""
    parts = []
    for W, b in zip(policy.weights, policy.biases):
        linear = torch.nn.Linear(*W.shape, dtype=torch.float64)
        linear.weight.data, linear.bias.data = torch.tensor(W.T.copy()), torch.tensor(b.copy())
        parts += [linear, torch.nn.ELU()]
    return torch.nn.Sequential(*parts[:-1], torch.nn.Tanh())


def test_forward_and_gradients_are_those_of_torch() -> None:
    random, policy = np.random.default_rng(0), Policy((7, 16, 9, 3), seed=4)
    policy.weights[-1] *= 30.0
    o, g = random.standard_normal((5, 4, 7)), random.standard_normal((5, 4, 3))
    net, x = twin(policy), torch.tensor(o, requires_grad=True)
    a = net(x)
    a.backward(torch.tensor(g))
    h = policy.layers(o)
    deltas, g_o = policy.transposed(h, g)
    assert np.allclose(h[-1], a.detach().numpy(), atol=1e-14)
    assert np.allclose(g_o, x.grad.numpy(), atol=1e-13)
    flat = policy.gradient(h[:-1], deltas)
    layers = [part for part in net if isinstance(part, torch.nn.Linear)]
    theirs = [p for l in layers for p in (l.weight.grad.numpy().T.ravel(), l.bias.grad.numpy())]
    assert np.allclose(flat, np.concatenate(theirs), atol=1e-13)


def test_single_precision_is_double_precision_up_to_seven_digits() -> None:
    random = np.random.default_rng(3)
    double, single = Policy((7, 16, 9, 3), seed=4), Policy((7, 16, 9, 3), seed=4, single=True)
    o, g = random.standard_normal((20, 7)), random.standard_normal((20, 3))
    found = []
    for policy, kind in ((double, np.float64), (single, np.float32)):
        policy.weights[-1] *= 30.0
        h = policy.layers(o.astype(kind))
        found.append((h[-1], policy.gradient(h[:-1], policy.deltas(h, g.astype(kind)))))
        assert all(part.dtype == kind for part in (*found[-1], *h))
    for one, other in zip(*found):
        assert abs(one - other).max() < 3e-6 * abs(one).max()


def test_adam_is_that_of_torch() -> None:
    random = np.random.default_rng(1)
    w = random.standard_normal(20)
    theirs = torch.tensor(w.copy(), requires_grad=True)
    adam, optimizer = Adam(20, (0.7, 0.95)), torch.optim.Adam([theirs], 0.01, (0.7, 0.95))
    for _ in range(10):
        g = random.standard_normal(20)
        adam.update(w, g, 0.01)
        theirs.grad = torch.tensor(g)
        optimizer.step()
    assert np.allclose(w, theirs.detach().numpy(), atol=1e-12)


def test_adamp_does_not_grow_weights_whose_scale_is_idle() -> None:
    """Of f(w) = (w/|w|)_0 the gradient is orthogonal to w: Adam lengthens w, AdamP less."""
    norms = []
    for matrices in ((), ((slice(0, 8), (8, 1)),)):
        w, adam = np.linspace(1, 2, 8), Adam(8, matrices=matrices)
        for _ in range(200):
            n = np.linalg.norm(w)
            adam.update(w, (np.eye(8)[0] - w[0] * w / n**2) / n, 1e-2)
        norms.append(np.linalg.norm(w))
    assert norms[1] < norms[0]


def test_adamp_is_the_published_algorithm() -> None:
    """Written anew from the paper, with PyTorch's layout of weights (outputs, inputs)."""
    random, (n, m) = np.random.default_rng(5), (6, 4)
    b1, b2, eps, rate = 0.9, 0.999, 1e-8, 0.01
    w = random.standard_normal((n, m))
    mine, adam = np.append(w.ravel(), [1.0, 2.0]), Adam(26, matrices=[(slice(0, 24), (n, m))])
    p, mean, square = w.T.copy(), np.zeros((m, n)), np.zeros((m, n))
    projected = {"channels": 0, "layer": 0, "none": 0}

    def cosines(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1)
        return abs((rows * others).sum(axis=1)) / lengths

    def without(step: np.ndarray, rows: np.ndarray) -> np.ndarray:
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return step - unit * (unit * step).sum(axis=1, keepdims=True)

    for t in range(1, 61):
        g = random.standard_normal((m, n))
        if t % 3 == 0:  # orthogonal to every output's weights
            g = without(g, p)
        elif t % 3 == 1:  # to all of them together only
            g = without(g.reshape(1, -1), p.reshape(1, -1)).reshape(m, n)
        mean, square = b1 * mean + (1 - b1) * g, b2 * square + (1 - b2) * g**2
        step = (mean / (1 - b1**t)) / (np.sqrt(square / (1 - b2**t)) + eps)
        if cosines(g, p).max() < 0.1 / np.sqrt(n):
            step, which = without(step, p), "channels"
        elif cosines(g.reshape(1, -1), p.reshape(1, -1)).max() < 0.1 / np.sqrt(n * m):
            step = without(step.reshape(1, -1), p.reshape(1, -1)).reshape(m, n)
            which = "layer"
        else:
            which = "none"
        projected[which] += 1
        p = p - rate * step
        adam.update(mine, np.append(g.T.ravel(), [0.0, 0.0]), rate)
    assert min(projected.values()) > 5
    assert np.allclose(mine[:24].reshape(n, m), p.T, atol=1e-7)
    assert np.array_equal(mine[24:], [1.0, 2.0])


def test_clipping_keeps_the_direction() -> None:
    g = np.array([3.0, 4.0])
    assert clip_norm(g, 1.0) == 5.0
    assert np.allclose(g, [0.6, 0.8])
    assert clip_norm(g, 2.0) == pytest.approx(1.0) and np.allclose(g, [0.6, 0.8])
