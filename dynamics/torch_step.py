"""Steps and rollouts of contact dynamics as differentiable functions of PyTorch tensors.

    x = torch_step(dynamics, x, u, gradient=FullCone(0.05))
    states = torch_rollout(dynamics, start, controls, friction=mu)

States go in and come out as coordinates, quaternions included. Of these the step sees their
direction only: torch_step(x) is step(normalized x), on all coordinates, and x+ is normalized. So
the gradient with respect to a quaternion is the ordinary one of four numbers, orthogonal to it; it
composes with any other function of coordinates, and optimizers that leave the unit sphere do no
harm. The forward pass is the hard step, always; the backward pass is the transposed step under the
contact gradient asked for, which under a relaxed gradient is no derivative of the forward pass.

Only double precision on the CPU. Python's lock is released in both passes; the threads of
`dynamics` share the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError(
        "torch_step needs PyTorch: pip install '.[learn]' in cito's folder"
    ) from error

from cito.dynamics import _native
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Exact, Gradient
from cito.dynamics.rollout_adjoint import Motions, World
from cito.dynamics.types import Array, batch_axes


def torch_step(
    dynamics: ContactDynamics,
    x: torch.Tensor,
    u: torch.Tensor,
    *,
    theta: torch.Tensor | None = None,
    friction: torch.Tensor | None = None,
    gradient: Gradient | None = None,
) -> torch.Tensor:
    """The hard step of a batch of states.

    Args:
        dynamics: what is stepped.
        x, u: (..., nx), (..., nu); batch axes are broadcast.
        theta: (np,) or (..., np); that of `dynamics` by default.
        friction: (nc,) or (..., nc), >= 0; that of `dynamics` by default.
        gradient: contact gradient of the backward pass; exact by default.

    Returns:
        x+ (..., nx); NaN, and so its gradients, where a step has no finite value.

    Raises:
        ValueError: a tensor of the wrong shape, or not of doubles on the CPU.
    """
    _check("x", x, (dynamics.nx,))
    _check("u", u, (dynamics.nu,))
    states = torch_rollout(
        dynamics, x, u[..., None, :], theta=theta, friction=friction, gradient=gradient
    )
    return states[..., 1, :]


def torch_rollout(
    dynamics: ContactDynamics,
    start: torch.Tensor,
    controls: torch.Tensor,
    *,
    theta: torch.Tensor | None = None,
    friction: torch.Tensor | None = None,
    gradient: Gradient | None = None,
) -> torch.Tensor:
    """Open-loop rollouts; the first state is `start` as it came.

    The backward pass keeps states, controls and impulses only, see `ContactDynamics.rollout_vjp`.

    Args:
        dynamics, theta, friction, gradient: as of `torch_step`.
        start, controls: (..., nx), (..., N, nu); batch axes are broadcast.

    Returns:
        States (..., N+1, nx).

    Raises:
        ValueError: as of `torch_step`.
    """
    _check("start", start, (dynamics.nx,))
    _check("controls", controls, (None, dynamics.nu))
    batch = batch_axes("start", start.shape[:-1], "controls", controls.shape[:-2])
    for name, value, width in (
        ("theta", theta, dynamics.n_theta),
        ("friction", friction, dynamics.nc),
    ):
        if value is not None:
            _check(name, value, (width,))
            batch = batch_axes("start", batch, name, value.shape[:-1])
    if friction is not None and bool((friction < 0).any()):
        raise ValueError(f"`friction` must be >= 0, got {float(friction.min()):g}")

    def rows(value: torch.Tensor | None, axes: int) -> torch.Tensor | None:
        if value is None:
            return None
        own = value.shape[value.ndim - axes :]
        return value.expand(*batch, *own).reshape(int(np.prod(batch)), *own)

    states = _Rollout.apply(
        rows(start, 1),
        rows(controls, 2),
        rows(theta, 1),
        rows(friction, 1),
        dynamics,
        Exact() if gradient is None else gradient,
    )
    result: torch.Tensor = states.reshape(*batch, *states.shape[1:])
    return result


class _Rollout(torch.autograd.Function):  # type: ignore[misc]
    """Rows of starts, controls, theta and friction to rows of states."""

    @staticmethod
    def forward(
        ctx: Any,
        start: torch.Tensor,
        controls: torch.Tensor,
        theta: torch.Tensor | None,
        friction: torch.Tensor | None,
        dynamics: ContactDynamics,
        gradient: Gradient,
    ) -> torch.Tensor:
        world = World(dynamics, _numbers(friction), _numbers(theta))
        motions = world.simulate(_array(start), _array(controls))
        states = torch.from_numpy(motions.states)
        ctx.save_for_backward(controls, theta, friction, states)
        ctx.solution, ctx.dynamics, ctx.gradient = motions[1:], dynamics, gradient
        return states

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, g_states: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        controls, theta, friction, states = ctx.saved_tensors
        dynamics, X, g = ctx.dynamics, _array(states), _array(g_states)
        m, knots, nx = g.shape
        tangent = _native.move_gradient(
            dynamics.manifold, X.reshape(-1, nx), g.reshape(-1, nx), True
        ).reshape(m, knots, dynamics.ndx)
        tangent[:, 0] = 0  # the first state is `start` itself, on the manifold or off it
        world = World(dynamics, _numbers(friction), _numbers(theta))
        out = world.transpose(Motions(X, *ctx.solution), _array(controls), tangent, ctx.gradient)
        g_start = _native.move_gradient(dynamics.manifold, X[:, 0].copy(), out.start, False)
        parts = (g_start + g[:, 0], out.controls, out.theta, out.friction)
        wanted = [torch.from_numpy(p) if n else None for p, n in zip(parts, ctx.needs_input_grad)]
        return *wanted, None, None


def _array(value: torch.Tensor) -> Array:
    return np.ascontiguousarray(value.detach().numpy())


def _numbers(value: torch.Tensor | None) -> Array | None:
    return None if value is None else _array(value)


def _check(name: str, value: torch.Tensor, shape: tuple[int | None, ...]) -> None:
    """Refuse what is no tensor (..., *shape) of doubles on the CPU."""
    check_doubles(name, value)
    own = value.shape[max(0, value.ndim - len(shape)) :]
    if len(own) != len(shape) or any(w is not None and w != s for s, w in zip(own, shape)):
        wanted = ", ".join(["...", *("N" if w is None else str(w) for w in shape)])
        raise ValueError(f"`{name}` must have shape ({wanted}), got {tuple(value.shape)}")


def check_doubles(name: str, value: torch.Tensor) -> None:
    """Refuse what is no tensor of doubles on the CPU."""
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"`{name}` must be a torch.Tensor, got {type(value).__name__}")
    if value.dtype != torch.float64 or value.device.type != "cpu":
        raise ValueError(
            f"`{name}` must be double precision (torch.float64) on the CPU, "
            f"got {value.dtype} on {value.device.type}"
        )
