"""Steps and rollouts under PyTorch's autograd: gradcheck, quaternions, batches, threads."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cito.dynamics import ContactDynamics, FullCone, Gradient, Parameter, Signorini, point_mass
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.robots import load_robot

torch = pytest.importorskip("torch", reason="PyTorch is an optional part")

from cito.dynamics.torch_step import torch_rollout, torch_step  # noqa: E402

SEPARATING, SLIDING, CLAMPING = 0, 1, 2


def arm() -> ContactDynamics:
    """Three links, damped, no contact."""
    parts = [Parameter.mass("link 1"), Parameter.damping("link 0"), Parameter.placement("link 2")]
    bodies = [
        Body(
            f"link {i}", f"link {i - 1}" if i else None, "revolute", 1.0, np.array([0.2, 0, 0.1]),
            0.01 * np.eye(3), np.array([0.4 * (i > 0), 0, 0]), axis=np.eye(3)[i], damping=0.1,
        )
        for i in range(3)
    ]  # fmt: skip
    return ContactDynamics(TreeSystem(bodies, parameters=parts), 0.02)


def go2(threads: int = 1) -> ContactDynamics:
    robot = load_robot("go2").with_parameters([Parameter.mass("base"), Parameter.contact("FL")])
    return ContactDynamics(robot, 0.02, 0.6, threads=threads)


def standing(dynamics: ContactDynamics, count: int, speed: float = 0.0) -> np.ndarray:
    """Go2 close to its stance, drifting sideways."""
    rng = np.random.default_rng(1)
    x = np.concatenate([load_robot("go2").stance, np.zeros(18)])
    x[19:21] = speed
    dx = 0.02 * rng.standard_normal((count, dynamics.ndx))
    dx[:, 2] -= 0.01
    return dynamics.integrate(np.broadcast_to(x, (count, dynamics.nx)), dx)


def tensors(*arrays: np.ndarray) -> list:
    return [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]


def test_arm_without_contact() -> None:
    dynamics, rng = arm(), np.random.default_rng(0)
    x, u, theta = tensors(*(rng.standard_normal((4, k)) for k in (6, 3, dynamics.n_theta)))

    def step(x, u, theta):
        return torch_step(dynamics, x, u, theta=theta)

    assert torch.autograd.gradcheck(step, (x, u, theta))
    shared = theta[0].detach().requires_grad_()
    assert torch.autograd.gradcheck(step, (x, u, shared))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first = torch.autograd.grad(step(x, u, theta).square().sum(), x, create_graph=True)[0]
        first.sum().backward()


@pytest.mark.parametrize(
    ("velocity", "mode"),
    [([0.1, 0, -0.2], CLAMPING), ([3.0, 1.0, -0.2], SLIDING), ([0, 0, 2.0], SEPARATING)],
)
def test_point_mass_in_each_mode(velocity: list[float], mode: int) -> None:
    dynamics = ContactDynamics(point_mass(3), 0.05)
    state = np.array([0.3, 0.2, 0.001, *velocity])
    assert dynamics.step(state, np.zeros(3)).modes == mode
    x, u, mu = tensors(state[None], np.array([[0.2, -0.1, 0.3]]), np.array([0.5]))
    assert torch.autograd.gradcheck(
        lambda x, u, mu: torch_step(dynamics, x, u, friction=mu), (x, u, mu)
    )


@pytest.mark.parametrize("speed", [0.0, 1.5])
def test_go2_in_coordinates_off_the_unit_sphere_too(speed: float) -> None:
    dynamics, rng = go2(), np.random.default_rng(2)
    state = standing(dynamics, 2, speed)
    modes = dynamics.step(state, np.zeros((2, 12))).modes
    assert CLAMPING in modes if speed == 0 else SLIDING in modes
    state[1, 3:7] *= 1.7
    x, u = tensors(state, rng.standard_normal((2, 12)))
    theta, mu = tensors(0.01 * rng.standard_normal(dynamics.n_theta), np.full((2, 4), 0.6))

    def step(x, u, theta, mu):
        return torch_step(dynamics, x, u, theta=theta, friction=mu)

    assert torch.autograd.gradcheck(step, (x, u, theta, mu), atol=1e-4)
    y = step(x, u, theta, mu)
    torch.testing.assert_close(y[:, 3:7].norm(dim=-1), torch.ones(2, dtype=torch.float64))
    (g,) = torch.autograd.grad((y * torch.tensor(rng.standard_normal(y.shape))).sum(), x)
    along = (g[:, 3:7] * x[:, 3:7]).sum(-1)
    assert g[:, 3:7].abs().max() > 0.1 and along.abs().max() < 1e-10


def test_rollout_of_go2() -> None:
    dynamics, rng = go2(), np.random.default_rng(3)
    start = standing(dynamics, 2)
    start[1, 3:7] *= 0.6
    x, U = tensors(start, rng.standard_normal((2, 3, 12)))
    (theta,) = tensors(np.zeros(dynamics.n_theta))

    def states(x, U, theta):
        return torch_rollout(dynamics, x, U, theta=theta)

    assert torch.autograd.gradcheck(states, (x, U, theta), atol=1e-4)
    assert torch.equal(states(x, U, theta)[:, 0], x)


def test_composes_step_by_step() -> None:
    """A loop of steps in torch is the rollout, forward and backward."""
    dynamics, rng = go2(), np.random.default_rng(4)
    x, U = tensors(standing(dynamics, 3), rng.standard_normal((3, 5, 12)))
    weights = torch.tensor(rng.standard_normal((3, 6, dynamics.nx)))
    gradient = FullCone(0.05)
    together = torch_rollout(dynamics, x, U, gradient=gradient)
    state, parts = x, [x]
    for k in range(5):
        state = torch_step(dynamics, state, U[:, k], gradient=gradient)
        parts.append(state)
    apart = torch.stack(parts, dim=1)
    torch.testing.assert_close(together, apart, rtol=1e-9, atol=1e-9)
    for a, b in zip(
        torch.autograd.grad((weights * together).sum(), (x, U)),
        torch.autograd.grad((weights * apart).sum(), (x, U)),
    ):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6 * float(b.abs().max()))


@pytest.mark.parametrize("gradient", [FullCone(0.1), Signorini(0.1)])
def test_backward_is_the_transposed_step_of_the_gradient(gradient: Gradient) -> None:
    dynamics, rng = ContactDynamics(point_mass(3), 0.05, 0.5), np.random.default_rng(5)
    states, controls, g = (rng.standard_normal((7, k)) * 0.1 for k in (6, 3, 6))
    x, u = tensors(states, controls)
    y = torch_step(dynamics, x, u, gradient=gradient)
    hard = dynamics.step(states, controls)
    assert np.array_equal(y.detach().numpy(), hard.state)
    y.backward(torch.tensor(g))
    wanted = dynamics.vjp(states, controls, hard.impulse, hard.velocity, hard.modes, g, gradient)
    np.testing.assert_allclose(x.grad.numpy(), wanted.state, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(u.grad.numpy(), wanted.control, rtol=1e-13, atol=1e-13)


def test_batch_axes_are_broadcast() -> None:
    dynamics, rng = go2(), np.random.default_rng(6)
    (x,) = tensors(standing(dynamics, 1)[0])
    (u, mu, theta) = tensors(
        rng.standard_normal((2, 3, 12)), np.full((3, 4), 0.7), np.zeros(dynamics.n_theta)
    )
    y = torch_step(dynamics, x, u, theta=theta, friction=mu)
    assert y.shape == (2, 3, dynamics.nx)
    gradients = torch.autograd.grad(y.square().sum(), (x, u, theta, mu))
    for value, gradient in zip((x, u, theta, mu), gradients):
        assert gradient.shape == value.shape
    sums = [torch.zeros_like(x), torch.zeros_like(theta)]
    for i, j in np.ndindex(2, 3):
        own = [t.detach().requires_grad_() for t in (x, theta)]
        one = torch_step(dynamics, own[0], u[i, j], theta=own[1], friction=mu[j])
        torch.testing.assert_close(one, y[i, j])
        for total, part in zip(sums, torch.autograd.grad(one.square().sum(), own)):
            total += part
    torch.testing.assert_close(gradients[0], sums[0])
    torch.testing.assert_close(gradients[2], sums[1])


def test_many_threads_at_once() -> None:
    dynamics = go2(threads=2)
    starts, rng = standing(dynamics, 16), np.random.default_rng(7)
    U = rng.standard_normal((16, 10, 12))

    def gradients(i: int) -> list:
        x, u = tensors(starts[i : i + 2], U[i : i + 2])
        states = torch_rollout(dynamics, x, u, gradient=FullCone(0.1))
        states.square().sum().backward()
        return [states.detach(), x.grad, u.grad]

    alone = [gradients(i) for i in range(0, 16, 2)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for one, other in zip(alone, pool.map(gradients, range(0, 16, 2))):
                assert all(torch.equal(a, b) for a, b in zip(one, other))


def test_a_step_that_has_no_finite_value_spoils_no_other() -> None:
    dynamics = arm()
    x, u = tensors(np.zeros((2, 6)), np.array([[1.0, 0, 0], [np.inf, 0, 0]]))
    y = torch_step(dynamics, x, u)
    y.sum().backward()
    assert torch.isfinite(y[0]).all() and torch.isnan(y[1]).all()
    assert torch.isfinite(x.grad[0]).all() and torch.isnan(x.grad[1]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.zeros(6)}, r"`x` must be double precision .*, got torch.float32 on cpu"),
        ({"u": torch.zeros(3, dtype=torch.float16)}, "`u` must be double precision"),
        ({"x": np.zeros(6)}, "`x` must be a torch.Tensor, got ndarray"),
        ({"x": torch.zeros(5).double()}, r"`x` must have shape \(..., 6\), got \(5,\)"),
        ({"u": torch.zeros(()).double()}, r"`u` must have shape \(..., 3\), got \(\)"),
        ({"theta": torch.zeros(2).double()}, r"`theta` must have shape \(..., 5\)"),
        ({"friction": torch.zeros(1).double()}, r"`friction` must have shape \(..., 0\)"),
        ({"x": torch.zeros(2, 6).double(), "u": torch.zeros(3, 3).double()}, "batch axes"),
    ],
)
def test_misuse_is_named(change: dict, message: str) -> None:
    good = {"x": torch.zeros(6).double(), "u": torch.zeros(3).double()}
    with pytest.raises(ValueError, match=message):
        torch_step(arm(), **{**good, **change})


def test_negative_friction_is_refused() -> None:
    world = ContactDynamics(point_mass(2), 0.05)
    with pytest.raises(ValueError, match="`friction` must be >= 0, got -0.5"):
        zeros = torch.zeros(4).double(), torch.zeros(2).double()
        torch_step(world, *zeros, friction=torch.tensor([-0.5]).double())


def test_without_torch_one_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import cito.dynamics.torch_step"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().endswith(
        "ImportError: torch_step needs PyTorch: pip install '.[learn]' in cito's folder"
    )
