"""Energy control on the true terms: it pumps energy, swings up, catches and holds."""

import numpy as np
import pytest

import cito
from cito.problems.cart_pole import cart_pole
from cito.solvers.energy_control import EnergyControl, EnergyGains

HEIGHT = 0.2 * 9.81 * 0.3  # m g l/2 of the pole [J]
GAINS = EnergyGains(100.0, 8.0, 4.0, value=100.0)


def potential(q: np.ndarray) -> np.ndarray:
    return -HEIGHT * np.cos(np.asarray(q)[..., 1])


@pytest.fixture(scope="module")
def dynamics() -> cito.ContactDynamics:
    return cito.ContactDynamics(cart_pole(), 0.01)


def energy(x: np.ndarray) -> float:
    inertia = 0.2 * 0.6**2 / 3
    return 0.5 * inertia * x[3] ** 2 + float(potential(x[:2]))


def test_below_the_target_it_adds_energy_and_above_it_takes_some(dynamics) -> None:
    control = EnergyControl(dynamics, potential, EnergyGains(100.0, 0.0, 0.0), 15.0)
    for rate in (2.0, -2.0, 30.0, -30.0):
        x = np.array([0.0, 0.4, 0.0, rate])
        fine = cito.ContactDynamics(cart_pole(), 1e-4)
        change = energy(fine.step(x, control.control(x)).state) - energy(x)
        free = energy(fine.step(x, [0.0]).state) - energy(x)
        target = float(potential(np.array([0.0, np.pi])))
        assert np.sign(change - free) == np.sign(target - energy(x))
        assert abs(change - free) > 1e-4


def test_it_swings_up_and_holds(dynamics) -> None:
    control = EnergyControl(dynamics, potential, GAINS, 15.0)
    x, tilts = np.array([0.0, 0.05, 0.0, 0.0]), []
    for _ in range(600):
        u = control.control(x)
        assert abs(u[0]) <= 15.0
        x = dynamics.step(x, u).state
        tilts.append(abs(x[1] % (2 * np.pi) - np.pi))
    assert tilts[0] > 3 and max(tilts[-100:]) < 0.02 and abs(x[0]) < 0.1


def test_the_catch_is_near_the_top_only(dynamics) -> None:
    control = EnergyControl(dynamics, potential, GAINS, 15.0)
    assert control.caught([0.0, np.pi + 0.1, 0.0, 0.0])
    assert control.caught([0.0, -np.pi + 0.1, 0.0, 0.0])
    assert not control.caught([0.0, 0.0, 0.0, 0.0])
    assert not control.caught([0.0, np.pi, 0.0, 20.0])
    np.testing.assert_allclose(
        control.control([0.0, np.pi + 0.1, 0.0, 0.0]),
        control.control([0.0, -np.pi + 0.1, 0.0, 0.0]),
    )


def test_misuse_is_refused(dynamics) -> None:
    with pytest.raises(ValueError, match="must have two coordinates, one control and no contact"):
        EnergyControl(cito.make("hop").dynamics, potential, GAINS, 15.0)
    with pytest.raises(ValueError, match="`limit` must be > 0"):
        EnergyControl(dynamics, potential, GAINS, 0.0)
    with pytest.raises(ValueError, match="`energy` must be > 0"):
        EnergyGains(0.0, 1.0, 1.0)
