"""The benchmark of the contact kernels runs, and what it counts as faults does not occur."""

from importlib.util import find_spec

import numpy as np

from cito.benchmarks import contact
from cito.benchmarks.contact_problems import quadruped_batch, scaled_residual


def test_rows_are_complete_and_show_no_fault():
    rows = contact.run(quick=True)
    assert all(set(row) == set(rows[0]) for row in rows)
    by_name = {row["measure"]: row for row in rows}
    assert len(by_name) == len(rows)
    for name, row in by_name.items():
        if "above 1e-8" in name or "outside" in name:
            assert row["value"] == 0 and row["count"] > 100
        if "residual <=" in name or "converged" in name:
            assert row["value"] > 0.99
        if "sensitivity:" in name or "angle" in name:
            assert row["met"] is True
        if name.startswith("speed") and row["note"][:7] != "skipped":
            assert row["value"] > 0
    assert (by_name["speed: Pinocchio's ADMM, tolerance 1e-9"]["value"] is None) is (
        find_spec("pinocchio") is None
    )


def test_quadruped_problems_hold_every_mode_and_are_well_posed():
    batch = quadruped_batch(50)
    out = contact.solve_batch(batch.A, batch.b, batch.mu)
    assert set(np.unique(out.modes)) == {0, 1, 2}
    assert np.linalg.eigvalsh(batch.A).min() > 0
    assert scaled_residual(batch.dims, batch.A, batch.b, batch.mu, out.impulse).max() < 1e-11


def test_residual_sees_each_violation():
    dims, A, mu = np.array([3], dtype=np.int32), np.eye(3)[None], np.array([[0.5]])

    def residual(b, impulse):
        return float(scaled_residual(dims, A, np.array([b]), mu, np.array([impulse]))[0])

    assert residual([0.0, 0, -1], [0.0, 0, 1]) == 0
    assert residual([0.0, 0, -1], [0.0, 0, 0]) == 1  # penetrates
    assert residual([0.0, 0, 1], [0.0, 0, -1]) >= 1  # pulls
    assert residual([0.0, 0, -1], [1.0, 0, 1]) > 0.4  # more friction than the cone has
    assert residual([2.0, 0, -1], [0.0, 0, 1]) > 0.2  # slides without friction
    assert residual([0.0, 0, 1], [0.0, 0, 0.5]) > 0.7  # pushes while it opens
