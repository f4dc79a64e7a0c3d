"""Symbolic systems: their derivatives, compiled code against the tape, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from cito.dynamics import _native, symbolic_build
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.symbolic import Contact, SymbolicSystem, contact_frame
from cito.problems.hop import hopper
from cito.problems.push_box_pose import box_and_finger
from tests.reference.symbolic_systems import ball_in_bowl, pendulum, rod

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = {
    "rod": rod,
    "ball_in_bowl": ball_in_bowl,
    "pendulum": pendulum,
    "hopper": hopper,
    "box": box_and_finger,
}
with_compiler = pytest.mark.skipif(
    symbolic_build.find_compiler() is None, reason="there is no C compiler on this machine"
)


def states(system: SymbolicSystem, count: int = 5) -> list[tuple[np.ndarray, np.ndarray]]:
    """(q, v) at which all terms are smooth."""
    rng = np.random.default_rng(1)
    return [tuple(0.3 * rng.standard_normal((2, system.nv)) + 0.05) for _ in range(count)]


def held(system: SymbolicSystem) -> list[np.ndarray]:
    """a, u, f, w, which the derivatives hold."""
    rng, n = np.random.default_rng(2), sum(system.contact_dims)
    return [rng.standard_normal(size) for size in (system.nv, system.nu, n, system.nv)]


# ---------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("name", SYSTEMS)
def test_derivatives_agree_with_finite_differences_of_the_terms(name):
    system = SYSTEMS[name]()
    a, u, f, w = held(system)
    theta = np.full(len(system.nominal), 0.05)

    def residuals(theta, q, v):
        M, c, B, J, phi = _native.system_terms(system.native, theta, q, v)
        return M @ a + c - B @ u - J.T @ f, J @ w, phi

    largest = 0.0
    for q, v in states(system):
        derivatives = _native.system_derivatives(system.native, theta, q, v, a, u, f, w)
        r_q, r_v, Jw_q, phi_q, r_theta, Jw_theta, phi_theta = derivatives
        by_q = central_differences(lambda q: residuals(theta, q, v), q)  # noqa: B023
        by_v = central_differences(lambda v: residuals(theta, q, v), v)  # noqa: B023
        by_theta = central_differences(lambda theta: residuals(theta, q, v), theta)  # noqa: B023
        for analytic, numeric in zip(
            (r_q, Jw_q, phi_q, r_v, r_theta, Jw_theta, phi_theta), [*by_q, by_v[0], *by_theta]
        ):
            scale = max(1.0, np.abs(numeric).max(initial=0))
            np.testing.assert_allclose(analytic, numeric, atol=2e-8 * scale, rtol=0)
        largest = max(largest, np.abs(r_q).max())
    assert largest > 0.1


def central_differences(function, x, step=1e-6):
    """Jacobian of each output of function(x)."""
    columns = []
    for e in np.eye(len(x)):
        above, below = function(x + step * e), function(x - step * e)
        columns.append([(high - low) / (2 * step) for high, low in zip(above, below)])
    if not columns:
        return [np.zeros((len(output), 0)) for output in function(x)]
    return [np.stack(column, axis=-1) for column in zip(*columns)]


@with_compiler
@pytest.mark.parametrize("system", [rod, ball_in_bowl, pendulum])
def test_compiled_code_and_tape_agree(system):
    compiled, tape = system(compile=True), system(compile=False)
    assert compiled.compiled and not tape.compiled
    theta = np.full(len(tape.nominal), 0.1)
    for q, v in states(tape):
        for arguments in ((theta, q, v), (None, q, v)):
            for one, other in zip(
                _native.system_terms(compiled.native, *arguments),
                _native.system_terms(tape.native, *arguments),
            ):
                np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)
        for one, other in zip(
            _native.system_derivatives(compiled.native, theta, q, v, *held(tape)),
            _native.system_derivatives(tape.native, theta, q, v, *held(tape)),
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


OPERATIONS = {
    "unary": "sqrt exp log sin cos tan asin acos atan sinh cosh tanh asinh atanh "
    "floor ceil fabs sign erf log1p expm1".split(),
    "binary": "fmin fmax atan2 hypot copysign fmod remainder".split(),
}


@pytest.mark.parametrize("compile", [pytest.param(True, marks=with_compiler), False])
def test_every_operation_means_what_casadi_means(compile):
    def expressions(q, v):
        x, y = q[0], v[0]
        return [
            *(getattr(ca, name)(x) for name in OPERATIONS["unary"]),
            *(getattr(ca, name)(x, y) for name in OPERATIONS["binary"]),
            ca.acosh(1 + x), x + y, x - y, x * y, x / y, -x, 1 / x, x**2, 2 * x, x**y, x**2.5,
            x < y, x <= y, x == y, x != y, ca.logic_not(x), ca.logic_and(x, y < 0),
            ca.logic_or(x < 0, y < 0), ca.if_else(x < y, ca.sin(x), y),
        ]  # fmt: skip

    n = len(expressions(ca.SX.sym("q"), ca.SX.sym("v")))
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    bias = ca.vertcat(*expressions(q, v))
    system = SymbolicSystem(
        q, v, ca.SX(0, 1), mass_matrix=ca.SX.eye(n), bias=bias, actuation=ca.SX(n, 0),
        compile=compile,
    )  # fmt: skip
    oracle = ca.Function("bias", [q, v], [bias])
    for x, y in ((0.3, 0.7), (0.7, 0.3), (0.5, 0.5), (0.3, -0.7)):
        at_q, at_v = np.full(n, x), np.full(n, y)
        c = _native.system_terms(system.native, None, at_q, at_v)[1]
        np.testing.assert_allclose(c, oracle(at_q, at_v).full().ravel(), rtol=1e-14, atol=0)


# ---------------------------------------------------------------------------- mechanics


def test_energies_give_the_mass_matrix_and_bias_of_the_hand_derivation():
    """A bead on a turning arm: M = diag(m, J + m r^2), c = (-m r w^2 + k r, 2 m r r' w)."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    m, inertia, k = 0.7, 0.2, 3.0
    T = 0.5 * m * (v[0] ** 2 + (q[0] * v[1]) ** 2) + 0.5 * inertia * v[1] ** 2
    bead = SymbolicSystem(
        q, v, ca.SX(0, 1), kinetic=T, potential=0.5 * k * q[0] ** 2, actuation=ca.SX(2, 0)
    )
    (r, _), (r_dot, rate) = q0, v0 = np.array([0.8, 0.3]), np.array([-0.4, 1.5])
    M, c, *_ = _native.system_terms(bead.native, None, q0, v0)
    np.testing.assert_allclose(M, np.diag([m, inertia + m * r**2]), rtol=1e-14)
    np.testing.assert_allclose(c, [k * r - m * r * rate**2, 2 * m * r * r_dot * rate], rtol=1e-14)


def test_hopper_agrees_with_pinocchio():
    pin = pytest.importorskip("pinocchio", reason="pinocchio, the oracle, is not installed")
    from cito.problems import hop

    model, gravity = pin.Model(), 9.81
    model.gravity.linear = np.array([0, 0, -gravity])
    L, place, identity = hop.SEGMENT_LENGTH, pin.SE3.Identity(), np.zeros((3, 3))
    joints = [pin.JointModelPX(), pin.JointModelPZ(), pin.JointModelRY(), pin.JointModelRY()]
    parent, ids = 0, []
    for i, joint in enumerate(joints):
        offset = pin.SE3(np.eye(3), np.array([0, 0, -L])) if i == 3 else place
        parent = model.addJoint(parent, joint, offset, f"joint {i}")
        ids.append(parent)
    rod = np.diag([1, 1, 0]) * L**2 / 12
    middle = np.array([0, 0, -L / 2])
    model.appendBodyToJoint(ids[1], pin.Inertia(2.0, np.zeros(3), identity), place)
    for joint_id, mass in ((ids[2], hop.THIGH_MASS), (ids[3], hop.SHANK_MASS)):
        model.appendBodyToJoint(joint_id, pin.Inertia(mass, middle, mass * rod), place)
    foot = model.addFrame(
        pin.Frame(
            "foot", ids[3], 0, pin.SE3(np.eye(3), np.array([0, 0, -L])), pin.FrameType.OP_FRAME
        )
    )
    data, system = model.createData(), hopper()
    armature = np.diag([0, 0, hop.ROTOR_INERTIA, hop.ROTOR_INERTIA])
    for q, v in states(system):
        M, c, B, J, phi = _native.system_terms(system.native, None, q, v)
        oracle = pin.crba(model, data, q)
        oracle = np.triu(oracle) + np.triu(oracle, 1).T
        np.testing.assert_allclose(M, oracle + armature, atol=1e-13)
        np.testing.assert_allclose(c, pin.nonLinearEffects(model, data, q, v), atol=1e-12)
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        jacobian = pin.computeFrameJacobian(model, data, q, foot, frame)
        np.testing.assert_allclose(J, jacobian[[0, 2]], atol=1e-13)
        pin.framesForwardKinematics(model, data, q)
        np.testing.assert_allclose(phi, data.oMf[foot].translation[2], atol=1e-13)
        np.testing.assert_array_equal(B, np.eye(4)[:, 2:])


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_normal_row_is_the_gradient_of_its_gap(name):
    system = SYSTEMS[name]()
    last = np.cumsum(system.contact_dims) - 1
    a, u, f, w = held(system)
    for q, v in states(system):
        J = _native.system_terms(system.native, None, q, v)[3]
        phi_q = _native.system_derivatives(system.native, None, q, v, a, u, f, w)[3]
        np.testing.assert_allclose(J[last], phi_q, atol=1e-9)


@pytest.mark.parametrize("normal", [[0, 0, 1], [0.6, 0, 0.8], [1, 0, 0], [0, 1, 0]])
def test_contact_frames_are_right_handed_with_the_first_tangent_along_x(normal):
    frame = ca.evalf(contact_frame(ca.SX(normal))).full()
    T1, T2, N = frame.T
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(np.cross(T1, T2), N, atol=1e-15)
    assert T1[0] > 0 or (normal == [1, 0, 0] and T1[1] == 1)


def test_planar_contact_frame_is_x_z():
    np.testing.assert_array_equal(ca.evalf(contact_frame(ca.SX([0, 1]))).full(), np.eye(2))


def test_a_gap_alone_is_a_stop_without_friction():
    dynamics = ContactDynamics(pendulum(), time_step=0.01)
    rollout = dynamics.rollout(np.zeros(2), np.full((200, 1), 30.0))
    assert rollout.states[:, 0].max() <= 0.5 + 1e-12
    # At rest against the stop, the stop carries what gravity does not: 30 - 9.81 sin(0.5) [N m].
    np.testing.assert_allclose(rollout.states[-1], [0.5, 0], atol=1e-9)
    carried = 30 - 9.81 * np.sin(0.5)
    np.testing.assert_allclose(rollout.impulses[-1] / 0.01, carried, rtol=1e-9)


def test_parameters_count_from_their_nominal_values():
    system, (q, v) = rod(), states(rod(), 1)[0]
    at_nominal = _native.system_terms(system.native, None, q, v)
    for one, other in zip(at_nominal, _native.system_terms(system.native, np.zeros(2), q, v)):
        np.testing.assert_array_equal(one, other)
    heavier = _native.system_terms(system.native, np.array([0.3, 0.0]), q, v)[0]
    np.testing.assert_allclose(heavier, at_nominal[0] * (1.2 + 0.3) / 1.2, rtol=1e-14)


def test_threads_share_a_system():
    controls = np.random.default_rng(0).standard_normal((32, 60, 1))
    start = np.array([0, 0.4, 0.3, 0.5, 0, 0])
    one = ContactDynamics(rod(), 0.02, threads=1).rollout(start, controls)
    four = ContactDynamics(rod(), 0.02, threads=4).rollout(start, controls)
    np.testing.assert_array_equal(one.states, four.states)
    assert (one.modes > 0).any()


# ---------------------------------------------------------------------------- building


def test_without_a_compiler_the_tape_runs(monkeypatch):
    monkeypatch.setattr(symbolic_build, "find_compiler", lambda: None)
    assert not rod(compile=None).compiled
    with pytest.raises(RuntimeError, match="no C compiler was found"):
        rod(compile=True)


def test_a_broken_compiler_is_quoted_or_passed_over(monkeypatch, fresh_cache):
    monkeypatch.setattr(symbolic_build, "find_compiler", lambda: (sys.executable, "-c", "1/0"))
    assert not rod(compile=None).compiled
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        rod(compile=True)
    assert list(fresh_cache.iterdir()) == []


@with_compiler
def test_threads_and_processes_build_into_one_cache(fresh_cache):
    code = "from tests.reference.symbolic_systems import rod; assert rod(compile=True).compiled"
    processes = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(2)]
    built = []
    threads = [threading.Thread(target=lambda: built.append(rod(True).compiled)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0]
    assert built == [True, True]
    assert len(list(fresh_cache.iterdir())) == 1
    library = next(fresh_cache.iterdir())
    built_at = library.stat().st_mtime_ns
    rod(compile=True)
    assert library.stat().st_mtime_ns == built_at


def test_a_cache_that_cannot_be_written_is_replaced(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("CITO_CACHE_DIR", str(blocked / "cache"))
    symbolic_build.cache_directory.cache_clear()
    try:
        assert symbolic_build.cache_directory().is_dir()
    finally:
        symbolic_build.cache_directory.cache_clear()


@pytest.fixture
def fresh_cache(monkeypatch, tmp_path):
    """An empty cache directory, also for child processes."""
    monkeypatch.setenv("CITO_CACHE_DIR", str(tmp_path))
    symbolic_build.cache_directory.cache_clear()
    yield tmp_path
    symbolic_build.cache_directory.cache_clear()


# ---------------------------------------------------------------------------- misuse

Q, V, U = (ca.SX.sym(name, 2) for name in "qvu")
STRAY = ca.SX.sym("stray")
GIVEN = {"kinetic": ca.sumsqr(V), "actuation": [[1, 0], [0, 1]]}
MATRIX = {"kinetic": None, "mass_matrix": ca.SX.eye(2), "bias": [0, 0]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinetic": ca.sum1(V**3)}, "`kinetic` must be quadratic in v"),
        ({"kinetic": STRAY * ca.sumsqr(V)}, "`mass_matrix` must not depend on stray"),
        ({"kinetic": 0.5 * V[0] ** 2}, "must be positive definite"),
        ({"kinetic": V}, r"`kinetic` must have shape \(1, 1\), got \(2, 1\)"),
        ({"potential": "high"}, "`potential` must be a casadi.SX expression"),
        ({"mass_matrix": ca.SX.eye(2)}, "`kinetic` already determines"),
        ({**MATRIX, "mass_matrix": [[1, Q[0]], [0, 1]]}, "`mass_matrix` must be symmetric"),
        ({**MATRIX, "bias": None}, "must be given as `kinetic`"),
        ({**MATRIX, "bias": [STRAY, 0]}, "`bias` must not depend on stray"),
        ({**MATRIX, "bias": [ca.erfinv(Q[0]), 0]}, "an operation that cito does not support"),
        ({"force": [0, 0, 0]}, r"`force` must have shape \(2, 1\), got \(3, 1\)"),
        ({"actuation": [1, 2]}, r"`actuation` must have shape \(2, 2\), got \(2, 1\)"),
        ({"actuation": ca.diag(V)}, "`actuation` must not depend on v_0, v_1"),
        ({"parameters": Q}, "must not share symbols"),
        ({"parameters": STRAY, "nominal": [1, 2]}, r"`nominal` must have shape"),
        ({"names": ["a"]}, "`names` must have 2 entries, got 1"),
        ({"contacts": [Contact()]}, r"`contacts\[0\]` needs a point"),
        ({"contacts": [Contact(point=Q[0])]}, r"`contacts\[0\]` must be planar"),
        ({"contacts": [Contact(velocity=V)]}, r"`contacts\[0\].gap` must be given"),
        ({"contacts": [Contact(velocity=V, gap=Q[1])]}, r"`contacts\[0\].normal` must be given"),
        ({"contacts": [Contact(point=Q, gap=V[1])]}, "`gap` must not depend on v_1"),
        ({"contacts": [Contact(point=Q, gap=2 * Q[1])]}, "a distance in metres"),
        (
            {"contacts": [Contact(gap=Q[1], normal=[0, 1], velocity=V + 1)]},
            "is not zero at v = 0",
        ),
        (
            {"contacts": [Contact(gap=Q[1], normal=[0, 1], velocity=V * V[1])]},
            "must be linear in v",
        ),
    ],
)
def test_misuse_is_told_in_a_sentence(changes, message):
    with pytest.raises(ValueError, match=message):
        SymbolicSystem(Q, V, U, **{**GIVEN, **changes})


@pytest.mark.parametrize("q", [ca.MX.sym("q", 2), Q**2, ca.SX.sym("q", 1, 2), [1.0, 2.0]])
def test_coordinates_must_be_symbols(q):
    with pytest.raises(ValueError, match="`q` must be a column of casadi.SX symbols"):
        SymbolicSystem(q, V, U, **GIVEN)


def test_the_module_docstring_is_true():
    import textwrap

    import cito.dynamics.symbolic as module

    lines = module.__doc__.splitlines()
    first = next(i for i, line in enumerate(lines) if "import casadi" in line)
    last = next(i for i, line in enumerate(lines) if i > first and line.startswith("and "))
    scope: dict = {}
    exec(textwrap.dedent("\n".join(lines[first:last])), scope)
    ContactDynamics(scope["rod"], time_step=0.02, friction=0.5).step(np.zeros(6), np.zeros(1))
