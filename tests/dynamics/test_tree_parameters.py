"""theta of kinematic trees: what it changes, and every derivative with respect to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cito.dynamics import (
    ContactDynamics,
    Exact,
    FullCone,
    Gradient,
    Parameter,
    Randomized,
    Signorini,
    _native,
)
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.check import finite_difference
from cito.dynamics.contact import sensitivity_batch
from cito.dynamics.tree import Body, TreeSystem
from cito.problems.robots import load_robot
from tests.dynamics.test_tree import random_state, random_tree

SCALES = ("mass", "damping", "armature")


def every_parameter(tree: TreeSystem) -> list[Parameter]:
    """All that the tree has, joints of the root included."""
    parameters = [Parameter.mass(body.name) for body in tree.bodies]
    parameters += [Parameter.placement(body.name) for body in tree.bodies]
    parameters += [Parameter.damping(body.name) for body in tree.bodies if body.damping]
    jointed = [body for body in tree.bodies if body.joint != "free"]
    parameters += [Parameter.armature(body.name) for body in jointed if body.armature]
    return parameters + [Parameter.contact(contact.name) for contact in tree.contacts]


def by_hand(tree: TreeSystem, theta: np.ndarray) -> TreeSystem:
    """The tree whose nominal numbers are those at theta."""
    bodies = {body.name: body for body in tree.bodies}
    contacts = {contact.name: contact for contact in tree.contacts}
    first = 0
    for parameter in tree.parameters:
        value, first = theta[first : first + parameter.size], first + parameter.size
        kind, of = parameter.kind, parameter.of
        if kind == "contact":
            contacts[of] = replace(contacts[of], position=contacts[of].position + value)
        elif kind == "placement":
            bodies[of] = replace(bodies[of], position=bodies[of].position + value)
        elif kind == "mass":
            scale = np.exp(value[0])
            bodies[of] = replace(
                bodies[of], mass=scale * bodies[of].mass, inertia=scale * bodies[of].inertia
            )
        else:
            bodies[of] = replace(bodies[of], **{kind: np.exp(value[0]) * getattr(bodies[of], kind)})
    return replace(
        tree, bodies=tuple(bodies.values()), contacts=tuple(contacts.values()), parameters=()
    )


TREES = {
    "floating": random_tree(0, bodies=6),
    "fixed": random_tree(2, bodies=6, floating=False),
    "limited": random_tree(3, bodies=6, limits=True),
    "balls": random_tree(7, bodies=6, balls=True),
}


@pytest.mark.parametrize("name", TREES)
def test_theta_changes_the_numbers_it_names(name: str) -> None:
    plain, rng = TREES[name], np.random.default_rng(0)
    tree = plain.with_parameters(every_parameter(plain))
    theta = 0.3 * rng.standard_normal(tree.native.np)
    x = random_state(plain, rng)
    q, v = x[: plain.native.nq], x[plain.native.nq :]
    for offsets, other in ((None, plain), (0 * theta, plain), (theta, by_hand(tree, theta))):
        ours = _native.system_terms(tree.native, offsets, q, v)
        for a, b in zip(ours, _native.system_terms(other.native, None, q, v)):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
    assert len(tree.parameter_names) == len(set(tree.parameter_names)) == len(theta)


@pytest.mark.parametrize("name", TREES)
def test_derivatives_of_terms_by_theta(name: str) -> None:
    tree, rng = TREES[name].with_parameters(every_parameter(TREES[name])), np.random.default_rng(2)
    system = tree.native
    nq, nv, n, nc = system.nq, system.nv, system.n, system.nc
    x = random_state(tree, rng)
    q, v = x[:nq], x[nq:]
    a, u, f, w = (rng.standard_normal(k) for k in (nv, system.nu, n, nv))
    at = 0.3 * rng.standard_normal(system.np)

    def residual(rows: np.ndarray) -> np.ndarray:
        out = []
        for theta in rows:
            M, c, B, J, phi = _native.system_terms(system, theta, q, v)
            damping, *_ = _native.system_joint_forces(system, theta, q)  # at the end of a step
            r = M @ a + c + damping * (w - v) - B @ u - J.T @ f
            out.append(np.concatenate([r, J @ w, phi]))
        return np.array(out)

    numeric = finite_difference(residual, at, step=1e-4)
    *_, r_theta, Jw_theta, phi_theta = _native.system_derivatives(system, at, q, v, a, u, f, w)
    assert r_theta.shape == (nv, system.np) and phi_theta.shape == (nc, system.np)
    analytic = np.vstack([r_theta, Jw_theta, phi_theta])
    np.testing.assert_allclose(analytic, numeric, rtol=0, atol=1e-9 * np.abs(numeric).max())
    kinds = np.repeat([p.kind for p in tree.parameters], [p.size for p in tree.parameters])
    for kind in set(kinds):  # each kind is felt, offsets also by contacts
        assert np.abs(numeric[:nv, kinds == kind]).max() > 0.01
        felt = np.abs(numeric[nv:, kinds == kind]).max()
        assert felt == 0 if kind in SCALES else felt > 0.1


# ---------------------------------------------------------------------------- steps


def world(name: str) -> tuple[ContactDynamics, np.ndarray]:
    """A world with every parameter, and a state to sample around."""
    if name == "go2":
        robot = load_robot("go2")
        robot = robot.with_parameters(every_parameter(robot.system))
        center = np.concatenate([robot.stance, np.zeros(robot.native.nv)])
        return ContactDynamics(robot, 0.02, 0.6), center
    seed, floating = {"floating": (7, True), "fixed": (2, False)}[name]
    tree = random_tree(seed, bodies=6, floating=floating)
    tree = tree.with_parameters(every_parameter(tree))
    center = np.zeros(tree.native.nq + tree.native.nv)
    if floating:
        center[6] = 1
    return ContactDynamics(tree, 0.02, 0.6), center


def samples(dynamics: ContactDynamics, center: np.ndarray, count: int, seed: int = 3):
    """States, controls and cotangents of x+."""
    rng = np.random.default_rng(seed)
    dx = rng.standard_normal((count, dynamics.ndx))
    if dynamics.nc == 4:  # Go2: all four feet near the ground
        dx *= 0.4
        dx[:, : dynamics.ndx // 2] *= 2 * dynamics.time_step
    x = dynamics.integrate(np.broadcast_to(center, (count, dynamics.nx)), dx)
    u, g = (rng.standard_normal((count, k)) for k in (dynamics.nu, dynamics.ndx))
    return zip(x, u, g)


def by_theta(dynamics: ContactDynamics, step) -> np.ndarray | None:
    """d x+ / d theta (ndx, np) of step(world); None where a contact changes its mode."""
    modes = []

    def states(rows: np.ndarray) -> np.ndarray:
        system, h, mu = dynamics.system, dynamics.time_step, dynamics.friction
        worlds = [ContactDynamics(system, h, mu, row) for row in rows]
        modes.extend(world.step(*at).modes for world in worlds for at in [step.at])
        return np.array([step(world) for world in worlds])

    numeric = finite_difference(
        states, np.zeros(dynamics.n_theta), step=1e-5, difference=dynamics.difference
    )
    return numeric if (np.array(modes) == modes[0]).all() else None


class HardStep:
    """x+ of the hard step from x under u."""

    def __init__(self, x: np.ndarray, u: np.ndarray) -> None:
        self.at = (x, u)

    def __call__(self, dynamics: ContactDynamics) -> np.ndarray:
        return dynamics.step(*self.at).state


class RelaxedStep(HardStep):
    """x+ of the relaxed step, mode and slip direction held as at theta = 0."""

    def __init__(self, dynamics: ContactDynamics, x, u, gradient: Gradient) -> None:
        super().__init__(x, u)
        self.gradient, self.hard = gradient, dynamics.step(x, u)

    def __call__(self, dynamics: ContactDynamics) -> np.ndarray:
        return dynamics.relaxed_step(*self.at, self.gradient, self.hard).state


@pytest.mark.parametrize(("name", "count"), [("floating", 15), ("fixed", 15), ("go2", 4)])
def test_theta_of_the_hard_step(name: str, count: int) -> None:
    dynamics, center = world(name)
    seen, used, felt = set(), 0, np.zeros(dynamics.n_theta)
    for x, u, g in samples(dynamics, center, count):
        numeric = by_theta(dynamics, HardStep(x, u))
        if numeric is None:
            continue
        used += 1
        hard = dynamics.step(x, u)
        seen |= set(hard.modes.tolist())
        ours = dynamics.vjp(x, u, hard.impulse, hard.velocity, hard.modes, g, Exact())
        scale = max(1.0, np.abs(numeric).max())
        np.testing.assert_allclose(ours.theta, g @ numeric, rtol=0, atol=1e-6 * scale)
        felt = np.maximum(felt, np.abs(numeric).max(axis=0))
    assert used >= count // 2 and seen == {0, 1, 2}
    assert (felt > 1e-4).mean() > 0.9


@pytest.mark.parametrize(("name", "count"), [("floating", 10), ("fixed", 10), ("go2", 3)])
@pytest.mark.parametrize("gradient", [Signorini(0.1), FullCone(0.1, eps=0.02)])
def test_theta_of_the_relaxed_step(name: str, count: int, gradient: Gradient) -> None:
    """At the relaxed impulse itself the transposed step is that of the relaxed map as a whole."""
    dynamics, center = world(name)
    used = 0
    for x, u, g in samples(dynamics, center, count, seed=4):
        numeric = by_theta(dynamics, RelaxedStep(dynamics, x, u, gradient))
        if numeric is None:
            continue
        used += 1
        at, modes = dynamics.relaxed_step(x, u, gradient), dynamics.step(x, u).modes
        ours = dynamics.vjp(x, u, at.impulse, at.velocity, modes, g, gradient)
        scale = max(1.0, np.abs(numeric).max())
        np.testing.assert_allclose(ours.theta, g @ numeric, rtol=0, atol=1e-6 * scale)
    assert used >= count // 2


@pytest.mark.parametrize(
    "gradient",
    [Exact(), Signorini(0.1), FullCone(0.1), Randomized(order=0), Randomized(order=1)],
    ids=lambda g: f"{g.name} {getattr(g, 'order', '')}",
)
def test_theta_of_every_gradient_is_the_chain_of_its_links(gradient: Gradient) -> None:
    """dv+ = v_theta + M^-1 J' (d lambda/d b) (J v_theta + (J v+)_theta + e_N phi_theta / h)."""
    dynamics, center = world("floating")
    system, h, nv = dynamics.system.native, dynamics.time_step, dynamics.ndx // 2
    for x, u, g in samples(dynamics, center, 5):
        hard = dynamics.step(x, u)
        q, v, w = x[: system.nq], x[system.nq :], hard.state[system.nq :]
        M, c, B, J, phi = _native.system_terms(system, None, q, v)
        M += h * np.diag(_native.system_joint_forces(system, None, q)[0])
        a, f = (w - v) / h, hard.impulse / h
        *_, r_theta, Jw_theta, phi_theta = _native.system_derivatives(
            system, None, q, v, a, u, f, w
        )
        normal = np.zeros((system.n, system.nc))
        normal[2::3] = np.eye(system.nc)
        Y, v_theta = np.linalg.solve(M, J.T), -h * np.linalg.solve(M, r_theta)
        b = J @ (v + h * np.linalg.solve(M, B @ u - c)) + normal @ phi / h
        K = sensitivity_batch((J @ Y)[None], b[None], 0.6, gradient).db[0]
        v_theta += Y @ K @ (J @ v_theta + Jw_theta + normal @ phi_theta / h)
        ours = dynamics.vjp(
            x, u, hard.impulse, hard.velocity, hard.modes, np.r_[np.zeros(nv), g[nv:]], gradient
        )
        expected = g[nv:] @ v_theta
        np.testing.assert_allclose(
            ours.theta, expected, rtol=0, atol=1e-8 * max(1, np.abs(expected).max())
        )


# ---------------------------------------------------------------------------- misuse

ARM = [Body("arm", None, "revolute", 1.0, inertia=np.eye(3), damping=0.1)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ([Parameter.mass("leg")], "the body 'leg', which is not there; there are arm"),
        ([Parameter.contact("foot")], "the contact 'foot', which is not there; there are none"),
        ([Parameter.armature("arm")], "armature of 'arm' must be > 0 to be scaled"),
        ([Parameter.mass("arm")] * 2, "the mass of 'arm' twice"),
        (["mass"], "must be Parameter each"),
    ],
)
def test_broken_parameters_are_refused(parameters: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeSystem(ARM, parameters=parameters)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="`kind` must be one of"):
        Parameter("inertia", "arm")  # type: ignore[arg-type]


def test_theta_has_a_place_for_each_parameter() -> None:
    tip = ContactPoint("tip", "arm", np.array([0.5, 0, 0]))
    parameters = [Parameter.contact("tip"), Parameter.damping("arm")]
    tree = TreeSystem(ARM, [tip], parameters=parameters)
    assert tree.parameter_names == (
        "contact tip.x",
        "contact tip.y",
        "contact tip.z",
        "damping arm",
    )
    with pytest.raises(ValueError, match=r"`theta` must have shape \(4,\)"):
        ContactDynamics(tree, 0.01, theta=np.zeros(3))
