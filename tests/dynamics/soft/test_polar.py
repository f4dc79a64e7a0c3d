"""The nearest rotation and its derivative, against SVD, finite differences and the numpy twin."""

import numpy as np
import pytest

from cito.dynamics.soft.polar import gains, local_step, rotation_change, stress_change
from tests.reference import polar as twin


def identity(M: np.ndarray) -> np.ndarray:
    return np.repeat(np.eye(len(M))[:, :, None], M.shape[2], axis=2)


def rotation(M: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
    return local_step(M, identity(M), near).R


def derivative(M: np.ndarray, R: np.ndarray, dM: np.ndarray) -> np.ndarray:
    eye = identity(M)
    return rotation_change(dM, eye, R, gains(M, eye, R))


def turned(d: int, values: np.ndarray, seed: int = 0) -> np.ndarray:
    """U diag(values) V' with U, V in SO(d); values (d, m), the last one may be negative."""
    rng = np.random.default_rng(seed)
    U, V = (twin.rotation(rng.normal(size=(d, d, values.shape[1]))) for _ in range(2))
    return twin.product(U * values[None], V.swapaxes(0, 1))


def pair_sums(d: int, values: np.ndarray) -> np.ndarray:
    return np.min([values[i] + values[j] for i in range(d) for j in range(i)], axis=0)


@pytest.mark.parametrize("d", [2, 3])
def test_it_is_the_rotation_of_the_largest_trace(d: int) -> None:
    M = np.random.default_rng(1).normal(size=(d, d, 400))
    R = rotation(M)
    assert np.allclose(twin.product(R, R, transpose=True), identity(M), atol=1e-13)
    assert np.allclose(np.linalg.det(np.moveaxis(R, 2, 0)), 1)
    s = np.linalg.svd(np.moveaxis(M, 2, 0), compute_uv=False)
    s[:, -1] *= np.sign(np.linalg.det(np.moveaxis(M, 2, 0)))
    assert np.allclose((R * M).sum(axis=(0, 1)), s.sum(axis=1))
    assert np.abs(R - twin.rotation(M)).max() < 1e-10


@pytest.mark.parametrize("spread", [1e-3, 0.3, 3.0])
def test_any_start_leads_to_the_same_rotation(spread: float) -> None:
    rng = np.random.default_rng(2)
    M = rng.normal(size=(3, 3, 400))
    R = rotation(M)
    spin = twin.hat(spread * rng.normal(size=(3, 400)))
    start = twin.rotation(twin.product(R, identity(M) + spin))
    assert np.abs(rotation(M, start) - R).max() < 1e-11
    assert np.abs(twin.rotation(M, start) - R).max() < 1e-11


@pytest.mark.parametrize("d", [2, 3])
def test_all_parts_are_those_of_the_twin(d: int) -> None:
    rng = np.random.default_rng(6)
    F, A, Z = rng.normal(size=(3, d, d, 50))
    A = A + A.swapaxes(0, 1)
    M = twin.product(F, A)
    R, P, energy = local_step(F, A)
    assert np.allclose(P, F - twin.product(twin.rotation(M), A), atol=1e-10)
    assert np.allclose(energy, 0.5 * (P**2).sum(axis=(0, 1)))
    wanted = twin.rotation_derivative(R, twin.gain(R, M), twin.product(Z, A))
    G = gains(F, A, R)
    assert np.allclose(rotation_change(Z, A, R, G), wanted, rtol=1e-9, atol=1e-12)
    assert np.allclose(stress_change(Z, A, R, G), Z - twin.product(wanted, A), rtol=1e-9)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("near", [1.0, 1e-2])
def test_derivative_against_finite_differences_upright_and_inverted(d: int, near: float) -> None:
    """s_d from -s_{d-1} + near, an element nearly inside out by its thickness, to s_{d-1}."""
    m = 60
    values = np.ones((d, m))
    values[0] = np.linspace(1.0, 2.0, m)
    values[-1] = np.linspace(near - 1, 1.0, m)
    M = turned(d, values)
    R = rotation(M)
    dM = np.random.default_rng(3).normal(size=M.shape)
    h = 1e-5 * near
    numeric = (rotation(M + h * dM, R) - rotation(M - h * dM, R)) / (2 * h)
    exact = derivative(M, R, dM)
    scale = np.abs(exact).max(axis=(0, 1))
    assert (scale > 1e-3).all()
    error = np.abs(numeric - exact).max(axis=(0, 1)) / np.maximum(scale, 1 / pair_sums(d, values))
    assert error.max() < 1e-6


@pytest.mark.parametrize("d", [2, 3])
def test_equal_singular_values_are_no_special_case(d: int) -> None:
    """At M = s U, dR = U skew(U' dM) / s, by the definition of the polar factor."""
    M = turned(d, np.full((d, 20), 1.7))
    U = M / 1.7
    dM = np.random.default_rng(4).normal(size=M.shape)
    P = twin.product(U, dM, transpose=True)
    wanted = twin.product(U, 0.5 * (P - P.swapaxes(0, 1))) / 1.7
    assert np.abs(derivative(M, U, dM) - wanted).max() < 1e-12


@pytest.mark.parametrize("d", [2, 3])
def test_where_the_rotation_jumps_everything_stays_finite(d: int) -> None:
    values = np.ones((d, 4))
    values[-1] = -1  # s_i + s_j = 0
    M = np.concatenate([turned(d, values), np.zeros((d, d, 1))], axis=2)
    for R in (rotation(M), rotation(M, identity(M))):
        dR = derivative(M, R, np.ones_like(M))
        assert np.isfinite(R).all() and np.isfinite(dR).all()
        assert np.allclose(np.linalg.det(np.moveaxis(R, 2, 0)), 1)
        assert np.isfinite(twin.rotation_derivative(R, twin.gain(R, M), np.ones_like(M))).all()


def test_shapes_are_checked_at_the_boundary() -> None:
    M = np.zeros((3, 3, 5))
    with pytest.raises(ValueError, match=r"`A` must have shape \(3, 3, 5\), got \(3, 3, 4\)"):
        local_step(M, M[..., :4].copy())
    with pytest.raises(ValueError, match="`F` must have shape"):
        local_step(np.zeros((4, 4, 5)), M)
