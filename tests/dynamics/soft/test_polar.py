"""The nearest rotation and its derivative, against SVD and finite differences."""

import numpy as np
import pytest

from cito.dynamics.soft.polar import gain, hat, product, rotation, rotation_derivative


def turned(d: int, values: np.ndarray, seed: int = 0) -> np.ndarray:
    """U diag(values) V' with U, V in SO(d); values (d, m), the last one may be negative."""
    rng = np.random.default_rng(seed)
    U, V = (rotation(rng.normal(size=(d, d, values.shape[1]))) for _ in range(2))
    return product(U * values[None], V.swapaxes(0, 1))


def pair_sums(d: int, values: np.ndarray) -> np.ndarray:
    sums = [values[i] + values[j] for i in range(d) for j in range(i)]
    return np.min(sums, axis=0)


@pytest.mark.parametrize("d", [2, 3])
def test_it_is_the_rotation_of_the_largest_trace(d: int) -> None:
    M = np.random.default_rng(1).normal(size=(d, d, 400))
    R = rotation(M)
    eye = np.broadcast_to(np.eye(d)[:, :, None], M.shape)
    assert np.allclose(product(R, R, transpose=True), eye, atol=1e-13)
    assert np.allclose(np.linalg.det(np.moveaxis(R, 2, 0)), 1)
    s = np.linalg.svd(np.moveaxis(M, 2, 0), compute_uv=False)
    s[:, -1] *= np.sign(np.linalg.det(np.moveaxis(M, 2, 0)))
    assert np.allclose((R * M).sum(axis=(0, 1)), s.sum(axis=1))


@pytest.mark.parametrize("spread", [1e-3, 0.3, 3.0])
def test_newton_finds_what_svd_finds_from_any_start(spread: float) -> None:
    rng = np.random.default_rng(2)
    M = rng.normal(size=(3, 3, 400))
    R = rotation(M)
    start = rotation(product(R, np.eye(3)[:, :, None] + hat(spread * rng.normal(size=(3, 400)))))
    assert np.abs(rotation(M, start) - R).max() < 1e-11


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
    exact = rotation_derivative(R, gain(R, M), dM)
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
    P = product(U, dM, transpose=True)
    wanted = product(U, 0.5 * (P - P.swapaxes(0, 1))) / 1.7
    assert np.abs(rotation_derivative(U, gain(U, M), dM) - wanted).max() < 1e-12


@pytest.mark.parametrize("d", [2, 3])
def test_where_the_rotation_jumps_everything_stays_finite(d: int) -> None:
    values = np.ones((d, 4))
    values[-1] = -1  # s_i + s_j = 0
    M = np.concatenate([turned(d, values), np.zeros((d, d, 1))], axis=2)
    for R in (rotation(M), rotation(M, np.repeat(np.eye(d)[:, :, None], 5, axis=2))):
        dR = rotation_derivative(R, gain(R, M), np.ones_like(M))
        assert np.isfinite(R).all() and np.isfinite(dR).all()
        assert np.allclose(np.linalg.det(np.moveaxis(R, 2, 0)), 1)
