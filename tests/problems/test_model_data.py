"""Motions that models learn from: they obey the true dynamics, to the last digits."""

import numpy as np
import pytest

from cito.problems import handwriting
from cito.problems.model_data import (
    SYSTEMS,
    completed,
    potential,
    true_energy,
    true_parts,
    truth,
    uniform_motions,
)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_uniform_samples_obey_the_equation_of_motion_and_fill_their_box(name: str) -> None:
    modelled, motions = SYSTEMS[name], uniform_motions(name, 200, seed=0)
    M, c, _ = truth(modelled.tree, motions.q, motions.v)
    tau = np.einsum("kij,kj->ki", M, motions.a) + c
    np.testing.assert_allclose(motions.tau, tau, atol=1e-9)
    np.testing.assert_allclose(motions.p, np.einsum("kij,kj->ki", M, motions.v), atol=1e-12)
    for x, reach in ((motions.q, modelled.place), (motions.v, modelled.speed)):
        largest = np.abs(x).max(0)
        assert (largest <= reach).all() and (largest > 0.9 * np.array(reach)).all()
    if modelled.acceleration is None:
        assert (motions.tau[:, 1] == 0).all()


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_rate_of_the_momentum_is_that_of_the_motion(name: str) -> None:
    """p along q + v t + a t^2 / 2, by central differences."""
    tree, motions, h = SYSTEMS[name].tree, uniform_motions(name, 20, seed=1), 1e-5
    q, v, a = motions.q, motions.v, motions.a

    def p(t: float) -> np.ndarray:
        return completed(tree, q + t * v + t * t / 2 * a, v + t * a, a).p

    np.testing.assert_allclose(motions.pdot, (p(h) - p(-h)) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_energy_changes_by_the_power_of_the_forces(name: str) -> None:
    tree, motions, h = SYSTEMS[name].tree, uniform_motions(name, 20, seed=2), 1e-4
    q, v, a = motions.q, motions.v, motions.a
    ahead, behind = (true_energy(tree, q + t * v + t * t / 2 * a, v + t * a) for t in (h, -h))
    power = (v * motions.tau).sum(1)
    np.testing.assert_allclose((ahead - behind) / (2 * h), power, atol=1e-5 * np.abs(power).max())


def test_the_potential_is_that_of_the_centres_of_mass() -> None:
    q = np.array([[np.pi, 0.0], [0.0, np.pi / 2]])
    weight = 9.81  # of each link [N]
    expected = [weight * (2 * 0.25 + 2 * 0.75), weight * 0.25]
    np.testing.assert_allclose(potential(SYSTEMS["two-link-arm"].tree, q), expected, rtol=1e-4)


def test_parts_make_the_whole() -> None:
    motions = uniform_motions("two-link-arm", 10, seed=3)
    parts = true_parts(SYSTEMS["two-link-arm"].tree, motions.q, motions.v, motions.a)
    np.testing.assert_allclose(sum(parts.values()), motions.tau, atol=1e-10)
    assert list(parts) == ["inertial", "coriolis", "gravity"]


@pytest.mark.parametrize("character", list(handwriting.CHARACTERS))
def test_the_pen_passes_its_points_and_starts_and_ends_at_rest(character: str) -> None:
    writing = handwriting.write(character)
    motions, h = writing.motions, handwriting.TIME_STEP
    l1, l2 = handwriting.LENGTH
    q = motions.q
    pen = np.stack([l1 * np.sin(q[:, 0]) + l2 * np.sin(q.sum(1)),
                    -l1 * np.cos(q[:, 0]) - l2 * np.cos(q.sum(1))], 1)  # fmt: skip
    for digit in handwriting.CHARACTERS[character].replace(" ", ""):
        distance = np.linalg.norm(pen - handwriting.pad_point(digit), axis=1)
        assert distance.min() < 0.03
    ends = motions.v[[0]], motions.a[[0]]
    np.testing.assert_allclose(ends, 0, atol=1e-9)
    middle = (motions.q[2:] - motions.q[:-2]) / (2 * h)
    np.testing.assert_allclose(middle, motions.v[1:-1], atol=0.25)
    np.testing.assert_allclose(writing.torque(writing.times[3:5]), motions.tau[3:5], atol=1e-9)


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="`name` must be one of two-link-arm, cart-pole, furuta"):
        uniform_motions("acrobot", 10, 0)
    with pytest.raises(ValueError, match="`count` must be a whole number >= 1"):
        uniform_motions("furuta", 0, 0)
    with pytest.raises(ValueError, match="`character` must be one of"):
        handwriting.write("?")
