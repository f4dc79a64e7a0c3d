"""Equilibria in PyTorch's autograd."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cito.dynamics.soft import SoftBody, block, equilibrium_vjp, held_end  # noqa: E402
from cito.dynamics.soft.torch_body import symmetric_matrices, torch_equilibrium  # noqa: E402


@pytest.mark.parametrize("d", [2, 3])
def test_gradients_through_a_solve(d: int) -> None:
    """Entries of A and bones to a loss of the pose, against finite differences."""
    mesh = block((1.0, 0.3, 0.3)[:d], (4, 2, 1)[:d])
    body = SoftBody(mesh, held_end(mesh).vertices)
    rng = np.random.default_rng(0)
    ns = d * (d + 1) // 2
    diagonal = torch.tensor([1.0] * d + [0.0] * (ns - d), dtype=torch.float64)
    entries = diagonal + 0.1 * torch.tensor(rng.normal(size=(2, body.m, ns)))
    held = torch.tensor(np.stack([mesh.vertices[body.held]] * 2)) + 0.02
    g = torch.tensor(rng.normal(size=(2, body.n, d)))
    directions = [torch.tensor(rng.normal(size=v.shape)) for v in (entries, held)]

    def loss(h: float) -> torch.Tensor:
        moved = [v + h * dv for v, dv in zip((entries, held), directions)]
        A = symmetric_matrices(moved[0])
        return (g * torch_equilibrium(body, A, moved[1], tolerance=1e-12)).sum()

    entries.requires_grad_(), held.requires_grad_()
    loss(0.0).backward()
    exact = sum(float((v.grad * dv).sum()) for v, dv in zip((entries, held), directions))
    numeric = float(loss(2e-5).detach() - loss(-2e-5).detach()) / 4e-5
    assert abs(exact) > 1e-2 and numeric == pytest.approx(exact, rel=1e-6)


def test_the_backward_pass_is_the_adjoint() -> None:
    mesh = block((1.0, 0.3), (4, 2))
    body = SoftBody(mesh, held_end(mesh).vertices)
    A = torch.eye(2, dtype=torch.float64).repeat(1, body.m, 1, 1) * 1.1
    A.requires_grad_()
    x = torch_equilibrium(body, A)
    x[..., 1].sum().backward()
    g = np.zeros((1, body.n, 2))
    g[..., 1] = 1
    wanted = equilibrium_vjp(body, A.detach().numpy(), x.detach().numpy(), g, tolerance=1e-8)
    assert np.array_equal(A.grad.numpy(), wanted.actuation)


def test_wrong_tensors_are_told_in_one_sentence() -> None:
    mesh = block((1.0, 0.3), (4, 2))
    body = SoftBody(mesh, held_end(mesh).vertices)
    with pytest.raises(ValueError, match="`actuation` must be double precision"):
        torch_equilibrium(body, torch.zeros(1, body.m, 2, 2))
    with pytest.raises(ValueError, match=r"`actuation` must have shape \(b, 16, 2, 2\)"):
        torch_equilibrium(body, torch.zeros(1, 3, 2, 2, dtype=torch.float64))
    eye = torch.eye(2, dtype=torch.float64).repeat(1, body.m, 1, 1)
    with pytest.raises(ValueError, match=r"`held` must have shape \(b, 3, 2\)"):
        torch_equilibrium(body, eye, eye[0])
    with pytest.raises(ValueError, match="`actuation` must be finite"):
        torch_equilibrium(body, eye * float("nan"))
