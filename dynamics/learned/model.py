"""One interface for all learned models: inverse, forward and energy, on arrays and on tensors.

    tau = inverse(q, v, a),     a = forward(q, v, tau),     E = energy(q, v)

A model sees coordinates through features: cos q, sin q of a periodic one, q over its spread of any
other. All else is made free of units by the spread of the samples that it is trained on, so that
one learning rate serves every system.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cito.dynamics.learned.motions import Motions
from cito.dynamics.learned.network import Network, Tensor, torch
from cito.dynamics.learned.shape import Scales, Shape
from cito.dynamics.types import Array, as_array, whole_number

DTYPES = {"float64": torch.float64, "float32": torch.float32}


class Batch(NamedTuple):
    """Samples as tensors, each (B, n); momenta are None where the motions have none."""

    q: Tensor
    v: Tensor
    a: Tensor
    tau: Tensor
    p: Tensor | None
    pdot: Tensor | None


class Spread(NamedTuple):
    """`Scales` as tensors."""

    q: Tensor
    v: Tensor
    a: Tensor
    tau: Tensor
    p: Tensor
    pdot: Tensor


class Rate(NamedTuple):
    """Time derivative of (q, s), s the velocity or the momentum, each (B, n)."""

    q: Tensor
    s: Tensor


@dataclass(eq=False, repr=False)
class Model(ABC):
    """A model of M(q) a + c(q, v) = tau; subclasses say which.

    Args:
        shape: of its networks.
        scales: from the samples that it will be trained on.
        seed: of the weights.
    """

    kind: ClassVar[str]
    has_energy: ClassVar[bool] = True
    needs_momenta: ClassVar[bool] = False

    shape: Shape
    scales: Scales
    seed: int = 0
    networks: dict[str, Network] = field(init=False)

    def __post_init__(self) -> None:
        for name, value in asdict(self.scales).items():
            if (as_array(f"scales.{name}", value, (self.n,)) <= 0).any():
                raise ValueError(f"`scales.{name}` must be > 0, got {value}")
        rng = np.random.default_rng(whole_number("seed", self.seed, 0))
        self.networks = {
            name: Network(self._layer_sizes(*ends), rng, self.dtype)
            for name, ends in self.network_ends().items()
        }
        numbers = {name: self.tensor(value) for name, value in asdict(self.scales).items()}
        self.spread = Spread(**numbers)
        self._owner = self.tensor(_feature_owner(self.shape, self.scales))

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.parameters)
        return f"<{type(self).__name__}: n {self.n}, {count} weights, {self.shape.dtype}>"

    # --- what subclasses say

    @abstractmethod
    def network_ends(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of each network, by name."""

    @abstractmethod
    def torque(self, q: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """tau (B, n)."""

    @abstractmethod
    def acceleration(self, q: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        """a (B, n)."""

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """What training makes small: a mean over the batch, free of units."""

    def total_energy(self, q: Tensor, s: Tensor) -> Tensor:
        """E (B,) of coordinates and velocities or momenta s."""
        raise ValueError(f"a model of kind {self.kind} has no energy")

    def conjugate(self, q: Tensor, v: Tensor) -> Tensor:
        """s (B, n), in which the model's own motion is written: the velocity, or the momentum."""
        return v

    def rate(self, q: Tensor, s: Tensor, tau: Tensor) -> Rate:
        """How (q, s) changes under tau."""
        return Rate(s, self.acceleration(q, s, tau))

    # --- numpy arrays, any leading axes

    def inverse(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Forces tau (..., n) of a motion q, v, a (..., n)."""
        return self._evaluate(self.torque, q=q, v=v, a=a)

    def forward(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """Accelerations a (..., n) of q, v under tau, (..., n)."""
        return self._evaluate(self.acceleration, q=q, v=v, tau=tau)

    def energy(self, q: ArrayLike, v: ArrayLike) -> Array:
        """E (...) of q, v (..., n) [J], up to a constant.

        Raises:
            ValueError: the model knows no energy.
        """
        return self._evaluate(lambda q, v: self.total_energy(q, self.conjugate(q, v)), q=q, v=v)

    def parts(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> dict[str, Array]:
        """tau as inertial + coriolis + gravity, each (..., n).

        inertial = tau(q, v, a) - tau(q, v, 0), gravity = tau(q, 0, 0), Coriolis and centrifugal
        forces are what is left.
        """
        q, v, a = (as_array(name, x) for name, x in (("q", q), ("v", v), ("a", a)))
        whole, held = self.inverse(q, v, a), self.inverse(q, v, 0 * a)
        gravity = self.inverse(q, 0 * v, 0 * a)
        return {"inertial": whole - held, "coriolis": held - gravity, "gravity": gravity}

    def batch(self, motions: Motions) -> Batch:
        """The samples as tensors.

        Raises:
            ValueError: another number of coordinates, or no momenta where the model needs them.
        """
        if not isinstance(motions, Motions):
            raise ValueError(f"`motions` must be Motions, got {type(motions).__name__}")
        if motions.n != self.n:
            raise ValueError(f"`motions` must have n = {self.n} coordinates, got {motions.n}")
        if self.needs_momenta and motions.p is None:
            raise ValueError(f"`motions` must hold momenta p, pdot for a model of kind {self.kind}")
        numbers = {name: self.tensor(value) for name, value in motions.arrays.items()}
        return Batch(**{"p": None, "pdot": None, **numbers})

    # --- what all models share

    @property
    def n(self) -> int:
        """Degrees of freedom."""
        return self.shape.n

    @property
    def dtype(self) -> torch.dtype:
        """Of all tensors."""
        return DTYPES[self.shape.dtype]

    @property
    def parameters(self) -> list[Tensor]:
        """Weights of all networks."""
        return [p for network in self.networks.values() for p in network.parameters]

    @property
    def weights(self) -> dict[str, Array]:
        """Copies of the weights by name, "mass.0" and so on."""
        return {
            f"{name}.{i}": p.detach().numpy().copy()
            for name, network in self.networks.items()
            for i, p in enumerate(network.parameters)
        }

    def set_weights(self, weights: dict[str, Array]) -> None:
        """Put `weights` in force.

        Raises:
            ValueError: one is missing, of the wrong shape or not finite.
        """
        for name, network in self.networks.items():
            for i, p in enumerate(network.parameters):
                key = f"{name}.{i}"
                if key not in weights:
                    raise ValueError(f"`weights` must hold {key!r}, got {', '.join(weights)}")
                value = as_array(f"weights[{key!r}]", weights[key], tuple(p.shape))
                with torch.no_grad():
                    p.copy_(torch.from_numpy(value))

    def tensor(self, value: Array) -> Tensor:
        """`value` as a tensor of the model's own kind."""
        return torch.tensor(np.asarray(value), dtype=self.dtype)

    def features(self, q: Tensor) -> Tensor:
        """z (B, nz): cos of the periodic coordinates, their sin, the others over their spread."""
        on = list(self.shape.periodic)
        turning, straight = q[:, on], (q / self.spread.q)[:, [not p for p in on]]
        return torch.cat([torch.cos(turning), torch.sin(turning), straight], dim=1)

    def feature_directions(self, z: Tensor) -> Tensor:
        """dz/dq_k as rows, (B, n, nz): d cos = -sin, d sin = cos."""
        k = sum(self.shape.periodic)
        swapped = torch.cat([-z[:, k : 2 * k], z[:, :k], torch.ones_like(z[:, 2 * k :])], dim=1)
        return swapped[:, None] * self._owner

    def _layer_sizes(self, inputs: int, outputs: int) -> tuple[int, ...]:
        return (inputs, *(self.shape.width,) * self.shape.depth, outputs)

    def _evaluate(self, function: Any, **arguments: ArrayLike) -> Array:
        """`function` of tensors (B, n), given arrays with any leading axes, which are broadcast."""
        arrays = {name: as_array(name, value) for name, value in arguments.items()}
        for name, value in arrays.items():
            if value.ndim == 0 or value.shape[-1] != self.n:
                raise ValueError(f"`{name}` must have shape (..., {self.n}), got {value.shape}")
        try:
            rows = np.broadcast_arrays(*arrays.values())
        except ValueError as error:
            shapes = ", ".join(f"`{name}` {value.shape}" for name, value in arrays.items())
            raise ValueError(f"shapes must fit each other, got {shapes}") from error
        batch = rows[0].shape[:-1]
        with torch.no_grad():
            out = function(*(self.tensor(x.reshape(-1, self.n)) for x in rows))
        result: Array = out.numpy().astype(float).reshape((*batch, *out.shape[1:]))
        return result


def _feature_owner(shape: Shape, scales: Scales) -> Array:
    """Which feature belongs to which coordinate, (n, nz), with 1/spread for straight ones."""
    turning = [i for i, p in enumerate(shape.periodic) if p]
    straight = [i for i, p in enumerate(shape.periodic) if not p]
    mask = np.zeros((shape.n, shape.features))
    for k, i in enumerate([*turning, *turning, *straight]):
        mask[i, k] = 1.0 if shape.periodic[i] else 1.0 / scales.q[i]
    return mask
