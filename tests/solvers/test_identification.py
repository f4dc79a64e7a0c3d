"""Parameters come back out of the motions that they made, and gradients are those of the misfit."""

from __future__ import annotations

import numpy as np
import pytest

import cito
from cito.dynamics.tree import Body, ContactPoint, TreeSystem
from cito.solvers.identification import Misfit, Recording, cut, identify


def sliding_mass(friction):
    return cito.ContactDynamics(cito.point_mass(3), 0.01, friction)


def slide(friction, noise=0.0, N=100):
    U = np.zeros((N, 3))
    states = sliding_mass(friction).rollout([0, 0, 0.02, 2.0, 1.0, 0.0], U).states
    return Recording(states + noise * np.random.default_rng(0).standard_normal(states.shape), U)


def tossed_box(theta=None, friction=0.5):
    """A tripod with a joint: four sliding feet would not determine their impulses."""
    corners = [(0.1, 0.0, -0.05), (-0.1, 0.1, -0.05), (-0.1, -0.1, -0.05)]
    contacts = [ContactPoint(f"c{i}", "box", np.array(p)) for i, p in enumerate(corners)]
    inertia = np.diag([1, 1, 1.6]) * 2e-3
    box = Body("box", None, "free", 0.5, inertia=inertia)
    arm = Body("arm", "box", "revolute", 0.2, np.array([0, 0, 0.1]), inertia / 10, damping=0.05)
    parameters = [cito.Parameter.mass("arm"), cito.Parameter.damping("arm")]
    system = TreeSystem([box, arm], contacts, parameters=parameters)
    return cito.ContactDynamics(system, 0.01, friction, theta=theta)


def tossed(dynamics, N=60):
    x0 = np.zeros(dynamics.nx)
    x0[:7] = 0, 0, 0.1, 0.1, -0.05, 0.0, 1.0
    x0[3:7] /= np.linalg.norm(x0[3:7])
    x0[8:14] = 1.5, 0.3, 0, 0.5, -1.0, 0.3
    u = 0.2 * np.sin(np.arange(N))[:, None]
    return Recording(dynamics.rollout(x0, u).states, u)


@pytest.mark.parametrize("guess", [0.05, 0.3, 2.0])
def test_friction_comes_back_exactly_from_a_clean_motion(guess):
    found = identify(sliding_mass(guess), slide(0.6))
    assert found.friction == pytest.approx(0.6, rel=1e-6)
    assert found.cost < 1e-12
    assert found.dynamics.friction == pytest.approx(0.6, rel=1e-6)


def test_friction_comes_back_from_a_noisy_motion():
    found = identify(sliding_mass(1.0), slide(0.35, noise=2e-3))
    assert found.friction == pytest.approx(0.35, rel=0.01)


def test_mass_damping_and_friction_come_back_together():
    truth = np.array([np.log(1.5), np.log(0.6)])
    recording = tossed(tossed_box(truth, friction=0.3))
    found = identify(tossed_box(), recording, window=10)
    np.testing.assert_allclose(found.theta, truth, atol=1e-4)
    np.testing.assert_allclose(found.friction, 0.3, rtol=1e-4)


@pytest.mark.parametrize("friction", ["shared", "each", "known"])
def test_the_gradient_is_that_of_the_misfit(friction):
    dynamics = tossed_box()
    recording = tossed(tossed_box(np.array([0.2, -0.3]), friction=0.4))
    weight = np.linspace(0.5, 2.0, dynamics.ndx)
    windows = cut(dynamics, recording, 15)
    misfit = Misfit(dynamics, windows, friction, True, weight, cito.Exact())
    z = misfit.start + 0.05
    J, g = misfit(z)
    assert misfit.value(z) == pytest.approx(J, rel=1e-12)
    steps = 1e-6 * np.eye(len(z))
    slopes = [(misfit.value(z + s) - misfit.value(z - s)) / 2e-6 for s in steps]
    assert np.abs(g).max() > 1e-3
    np.testing.assert_allclose(g, slopes, rtol=1e-5, atol=1e-6 * np.abs(g).max())


def test_recordings_are_cut_into_windows_that_start_anew():
    recording = slide(0.6, N=25)
    windows = cut(sliding_mass(0.6), [recording, recording], 10)
    assert [len(w.controls) for w in windows] == [10] * 4
    np.testing.assert_array_equal(windows[1].states, recording.states[10:21])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Recording(np.zeros((5, 6)), np.zeros((5, 3))), "`states` must have one row more"),
        (lambda: identify(sliding_mass(1.0), []), "`recordings` must not be empty"),
        (
            lambda: identify(sliding_mass(1.0), Recording(np.zeros((3, 4)), np.zeros((2, 3)))),
            r"`recordings\[0\]` must have states of 6 and controls of 3 columns, got 4 and 3",
        ),
        (
            lambda: identify(sliding_mass(1.0), slide(0.6), friction="known", theta=False),
            "`friction` and `theta` leave nothing to estimate",
        ),
        (
            lambda: identify(sliding_mass(1.0), slide(0.6), friction="some"),
            "`friction` must be 'shared', 'each' or 'known'",
        ),
        (lambda: identify(sliding_mass(1.0), slide(0.6), weight=-1.0), "`weight` must be >= 0"),
        (
            lambda: identify(sliding_mass(1.0), slide(0.6), window=1000),
            "`window` must be <= 100, got 1000",
        ),
    ],
)
def test_misuse_is_told(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
