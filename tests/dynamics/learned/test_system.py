"""A learned Lagrangian in the native core: the same numbers as in PyTorch, steps, contact, DDP."""

import numpy as np
import pytest

import cito
from cito.dynamics import _native
from cito.dynamics.learned.lagrangian import StructuredLagrangian
from cito.dynamics.learned.model_file import new_model
from cito.dynamics.learned.motions import Motions
from cito.dynamics.learned.system import LearnedSystem
from cito.dynamics.symbolic_build import find_compiler


def a_model(kind: str = "lagrangian-structured", periodic=(True, False)) -> StructuredLagrangian:
    spread = np.array([1.0, 1.5, 4.0, 3.0])[:, None, None]
    motions = Motions(*(spread * np.random.default_rng(0).standard_normal((4, 30, len(periodic)))))
    return new_model(kind, motions, periodic, seed=2, width=6)


@pytest.fixture(scope="module")
def model() -> StructuredLagrangian:
    return a_model()


@pytest.fixture(scope="module")
def system(model: StructuredLagrangian) -> LearnedSystem:
    return LearnedSystem(model, compile=False)


def test_the_core_has_the_models_mass_matrix_and_forces(model, system) -> None:
    rng = np.random.default_rng(1)
    for q, v, a in rng.standard_normal((5, 3, 2)):
        M, c, *_ = _native.system_terms(system.native, None, q, v)
        np.testing.assert_allclose(M, model.mass_matrix(q), rtol=1e-12)
        np.testing.assert_allclose(M @ a + c, model.inverse(q, v, a), rtol=1e-10, atol=1e-12)


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_compiled_and_interpreted_systems_agree(model, system) -> None:
    compiled = LearnedSystem(model, compile=True)
    assert compiled.compiled and not system.compiled
    x, U = np.array([0.3, -0.2, 0.5, 1.0]), np.ones((5, 2))
    a, b = (cito.ContactDynamics(s, 0.01).rollout(x, U).states for s in (compiled, system))
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    assert np.abs(a[-1] - x).max() > 1e-3


def test_derivatives_of_steps_agree_with_finite_differences(system) -> None:
    assert cito.check_gradients(cito.ContactDynamics(system, 0.02)).passed


def test_a_learned_body_keeps_to_the_known_ground(model) -> None:
    """M and bias from the network, contact from geometry: the tip of an arm that swings down."""
    import casadi as ca

    def tip(q):
        reach = ca.vertcat(q[1] + ca.cos(q[0]) / 2, 0.3 + ca.sin(q[0]) / 2)
        return [cito.Contact(point=reach, name="tip")]

    arm = LearnedSystem(model, contacts=tip, names=("swing", "slide"), compile=False)
    assert arm.contact_dims == (2,) and arm.contact_names == ("tip",)
    dynamics = cito.ContactDynamics(arm, 0.01, friction=0.6)
    motion = dynamics.rollout([0.8, 0.0, -3.0, 0.4], np.zeros((120, 2)))
    heights = 0.3 + np.sin(motion.states[:, 0]) / 2
    assert heights.min() > -0.01 and motion.residual < 1e-6
    assert (motion.modes > 0).any() and (motion.modes == 0).any()
    assert cito.check_gradients(dynamics, samples=3).passed


def test_ddp_solves_a_problem_on_a_learned_system(model, system) -> None:
    dynamics = cito.ContactDynamics(system, 0.05)
    goal = np.array([0.5, 0.3, 0.0, 0.0])
    costs = [
        cito.ControlCost([1e-4, 1e-4]),
        cito.StateCost(np.full(4, 100.0), goal, knots="terminal"),
    ]
    problem = cito.Problem("reach", dynamics, np.zeros(4), 20, tuple(costs))
    solution = cito.solve(problem)
    assert np.abs(solution.states[-1] - goal).max() < 0.05


def test_what_is_no_structured_lagrangian_is_refused(model) -> None:
    with pytest.raises(ValueError, match="`model` must be a StructuredLagrangian"):
        LearnedSystem(a_model("network"))
    with pytest.raises(ValueError, match=r"`actuation` must have shape \(2, any\)"):
        LearnedSystem(model, np.eye(3))
    with pytest.raises(ValueError, match="`names` must have 2 entries, got 1"):
        LearnedSystem(model, names=("one",))
