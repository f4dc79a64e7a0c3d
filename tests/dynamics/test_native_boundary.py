"""Nothing that reaches the native core through Python can crash it: misuse is a ValueError."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.candidates import ContactPoint
from cito.dynamics.contact import ContactProblem, relax_batch, sensitivity_batch, solve_batch
from cito.dynamics.contact_dynamics import ContactDynamics
from cito.dynamics.gradients import Bundled, FullCone, Randomized, Signorini
from cito.dynamics.linear import point_mass
from cito.dynamics.tree import Body, TreeSystem

EXACT = _native.Gradient()
Z = np.zeros


def integers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


# Calls that are sound: nv = 2, nu = 2, one contact (T, N); two problems, three knots.
DIMS, MODES = integers(2), Z((2, 1), np.int32)
BATCH = {"dims": DIMS, "A": np.tile(np.eye(2), (2, 1, 1)), "b": Z((2, 2)), "mu": Z((2, 1))}
SOLUTION = {"impulse": Z((2, 2)), "velocity": Z((2, 2)), "modes": MODES, "gradient": EXACT}
LINEAR = {
    "M": np.eye(2),
    "K": Z((2, 2)),
    "D": Z((2, 2)),
    "c0": Z(2),
    "B": np.eye(2),
    "J": np.eye(2),
    "G": np.eye(2)[1:],
    "phi0": Z(1),
    "dims": DIMS,
}
SYSTEM = _native.linear_system(*LINEAR.values())
MODEL = _native.TimeStepping(SYSTEM, 0.1, Z(1), None)
SPACE = _native.euclidean_space(2, 2)
STEPS = {
    "states": Z((3, 4)),
    "controls": Z((3, 2)),
    "impulses": Z((3, 2)),
    "velocities": Z((3, 2)),
    "modes": Z((3, 1), np.int32),
}
ROLLOUT: dict[str, Any] = {
    "start": Z((1, 4)),
    "controls": Z((1, 3, 2)),
    "alphas": np.ones(3),
    "states": Z((4, 4)),
    "feedforward": Z((3, 2)),
    "feedback": Z((3, 2, 4)),
    "lower": Z(2),
    "upper": Z(2),
    "gaps": Z((3, 4)),
    "impulses": Z((3, 2)),
    "threads": 1,
}
THETA = {"theta": Z(1), "q": Z(2), "v": Z(2)}
PLACEMENT = {"rotation": np.eye(3), "position": Z(3)}
GROUND = _native.plane(**PLACEMENT)
TREE: dict[str, Any] = {
    "parent": integers(-1, 0),
    "type": integers(0, 1),
    "placement": np.tile(np.append(np.eye(3), Z(3)), (2, 1)),
    "axis": np.tile([0.0, 0, 1], (2, 1)),
    "mass": np.ones(2),
    "com": Z((2, 3)),
    "inertia": np.tile(np.eye(3).ravel(), (2, 1)),
    "armature": Z(7),
    "damping": Z(7),
    "actuation": Z((7, 1)),
    "point_body": integers(1),
    "point": Z((1, 3)),
    "radius": Z(1),
    "shape_body": integers(-1),
    "shapes": [GROUND],
    "parameters": np.array([[0, 1, 0], [3, 1, 2], [4, 0, 1]], np.int32),
    "limit_body": integers(1),
    "limit_side": integers(-1),
    "limit": Z(1),
    "stiffness": np.append(Z(6), 1.0),
    "pull": Z(7),
    "drive_damping": Z(7),
    "dry_friction": np.ones(7),
}
RICCATI: dict[str, Any] = {
    "f_x": Z((3, 4, 4)),
    "f_u": Z((3, 4, 2)),
    "l_x": Z((4, 4)),
    "l_u": Z((3, 2)),
    "l_xx": Z((4, 4, 4)),
    "l_uu": np.tile(np.eye(2), (3, 1, 1)),
    "l_ux": Z((3, 2, 4)),
    "gaps": Z((3, 4)),
    "controls": Z((3, 2)),
    "lower": Z(2),
    "upper": Z(2),
}
# Kinds of cost: system, lengths of weight and reference, whether in controls, index, parameters.
ROBOT = TreeSystem(
    [Body("base", None, "free", 1.0, inertia=np.eye(3)), Body("arm", "base", "revolute", 1.0)],
    [ContactPoint("foot", "arm", Z(3))],
).native  # nq 8, nv 7, nu 1
COSTS: list[tuple[str, Any, int, int, int, tuple[int, ...], int]] = [
    ("state", SYSTEM, 4, 4, 0, (), 0),
    ("control", SYSTEM, 2, 2, 1, (), 0),
    ("control limits", SYSTEM, 2, 4, 1, (), 0),
    ("entries", ROBOT, 2, 2, 0, (7, 14, 6, 13), 0),
    ("entry limits", ROBOT, 1, 2, 0, (7, 6), 0),
    ("pose", ROBOT, 6, 7, 0, (1,), 3),
    ("twist", ROBOT, 6, 6, 0, (0, 2), 3),
    ("com", ROBOT, 3, 3, 0, (), 0),
    ("slip", ROBOT, 1, 0, 0, (0,), 1),
    ("air", ROBOT, 1, 1, 0, (0,), 1),
]
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "hard_solve": (_native.hard_solve, {**BATCH, "warm": Z((2, 2))}),
    "relaxed_solve": (_native.relaxed_solve, {**BATCH, **SOLUTION, "smoothing": np.ones((2, 1))}),
    "contact_sensitivity": (
        _native.contact_sensitivity,
        {**BATCH, **SOLUTION, "knots": Z(2, np.uint64)},
    ),
    "linear_system": (lambda **a: _native.linear_system(*a.values()), LINEAR),
    "system_terms": (lambda **a: _native.system_terms(SYSTEM, **a), THETA),
    "system_joint_forces": (
        lambda **a: _native.system_joint_forces(SYSTEM, **a),
        {"theta": Z(SYSTEM.np), "q": Z(2)},
    ),
    "system_derivatives": (
        lambda **a: _native.system_derivatives(SYSTEM, **a),
        {**THETA, "a": Z(2), "u": Z(2), "f": Z(2), "w": Z(2)},
    ),
    "on_manifold": (
        lambda **a: _native.on_manifold(SYSTEM, **a, integrate=True),
        {"x0": Z((3, 4)), "other": Z((3, 4))},
    ),
    "TimeStepping": (
        lambda **a: _native.TimeStepping(SYSTEM, 0.1, **a),
        {"friction": Z(1), "theta": Z(1), "restitution": Z(1)},
    ),
    "rollout": (MODEL.rollout, ROLLOUT),
    "linearize": (
        lambda **a: _native.linearize(MODEL, **a, threads=1),
        {**STEPS, "explicit_impulses": Z((3, 2))},
    ),
    "step_vjp": (
        lambda g, **a: MODEL.step_vjp(*a.values(), g, EXACT, 1),
        {**STEPS, "g": Z((3, 4))},
    ),
    "transposed_derivatives": (
        lambda **a: _native.transposed_derivatives(SYSTEM, **a),
        {
            **THETA,
            **{"a": Z(2), "u": Z(2), "f": Z(2), "w": Z(2)},
            **{"y": Z(2), "z": Z(2), "zeta": Z(1)},
        },
    ),
    "move_gradient": (
        lambda **a: _native.move_gradient(SYSTEM, **a, to_tangent=True),
        {"x": Z((3, 4)), "g": Z((3, 4))},
    ),
    "simulate": (
        lambda **a: _native.simulate(MODEL, **a, threads=1),
        {
            "start": Z((2, 4)),
            "controls": Z((2, 3, 2)),
            "previous": Z((2, 2)),
            "friction": Z((2, 1)),
            "theta": Z((2, 1)),
        },
    ),
    "rollout_vjp": (
        lambda **a: _native.rollout_vjp(MODEL, **a, gradient=EXACT, first=0, threads=1),
        {
            "states": Z((2, 4, 4)),
            "controls": Z((2, 3, 2)),
            "impulses": Z((2, 3, 2)),
            "velocities": Z((2, 3, 2)),
            "modes": Z((2, 3, 1), np.int32),
            "g_states": Z((2, 4, 4)),
            "friction": Z((2, 1)),
            "theta": Z((2, 1)),
            "g_theta": Z((2, 1)),
            "g_friction": Z((2, 1)),
        },
    ),
    "relaxed_step": (lambda **a: MODEL.relaxed_step(*a.values(), EXACT), STEPS),
    "tree_system": (lambda **a: _native.tree_system(**a, gravity=9.81, slip_speed=0.1), TREE),
    "plane": (_native.plane, PLACEMENT),
    "box": (lambda **a: _native.box(**a, radius=1.0), {**PLACEMENT, "half": Z(3)}),
    "height_field": (
        _native.height_field,
        {"spline": Z((5, 5)), "origin": Z(2), "rate": np.ones(2)},
    ),
    "shape_distance": (
        lambda points: _native.shape_distance(GROUND, points),
        {"points": Z((2, 3))},
    ),
    "riccati": (lambda **a: _native.riccati(**a, regularization=0.0), RICCATI),
    "linear_rollout": (
        _native.linear_rollout,
        {
            "f_x": Z((3, 4, 4)),
            "f_u": Z((3, 4, 2)),
            "feedforward": Z((3, 2)),
            "feedback": Z((3, 2, 4)),
        },
    ),
    **{
        f"CostTable.add {kind}": (
            lambda system=system, kind=kind, **a: _native.CostTable(system, 3).add(kind, **a),
            {
                "weight": Z(weights),
                "reference": Z((4 - controls, width)),
                "active": Z(4 - controls, bool),
                "index": integers(*index),
                "parameters": Z(parameters),
            },
        )
        for kind, system, weights, width, controls, index, parameters in COSTS
    },
    "CostTable.value": (
        _native.CostTable(SYSTEM, 3).value,
        {"states": Z((2, 4, 4)), "controls": Z((2, 3, 2))},
    ),
    "CostTable.expansion": (
        _native.CostTable(SYSTEM, 3).expansion,
        {"states": Z((4, 4)), "controls": Z((3, 2))},
    ),
}
AXES = [
    (call, name, axis)
    for call, (_, arguments) in CALLS.items()
    for name, value in arguments.items()
    if isinstance(value, np.ndarray)
    for axis in range(value.ndim)
    if value.shape[axis]
]
# Lengths that no other argument fixes.
FREE = {
    ("rollout", "alphas", 0),
    ("simulate", "controls", 1),
    ("linear_system", "B", 1),
    ("tree_system", "actuation", 1),
    ("tree_system", "parameters", 0),
    ("height_field", "spline", 0),
    ("height_field", "spline", 1),
    ("shape_distance", "points", 0),
}


@pytest.mark.parametrize("call", CALLS)
def test_sound_calls_pass(call: str) -> None:
    function, arguments = CALLS[call]
    function(**arguments)


@pytest.mark.parametrize(("call", "name", "axis"), AXES)
@pytest.mark.parametrize("change", [-1, 1])
def test_every_length_is_checked(call: str, name: str, axis: int, change: int) -> None:
    function, arguments = CALLS[call]
    value = arguments[name]
    if change < 0:
        changed = np.ascontiguousarray(np.delete(value, 0, axis))
    else:
        changed = np.ascontiguousarray(np.concatenate([value, value.take([0], axis)], axis))
    if (call, name, axis) in FREE:
        function(**{**arguments, name: changed})
        return
    with pytest.raises(ValueError, match="must"):
        function(**{**arguments, name: changed})


@pytest.mark.parametrize(
    ("call", "name", "value"),
    [
        ("hard_solve", "dims", integers(0, 2)),
        ("hard_solve", "dims", integers(4)),
        ("hard_solve", "dims", integers(-1, 3)),
        ("hard_solve", "threads", 0),
        ("relaxed_solve", "modes", MODES + 3),
        ("contact_sensitivity", "modes", MODES - 1),
        ("linear_system", "dims", integers(5)),
        ("linearize", "modes", STEPS["modes"] + 3),
        ("step_vjp", "modes", STEPS["modes"] - 7),
        ("relaxed_step", "modes", STEPS["modes"] + 3),
        ("rollout_vjp", "modes", Z((2, 3, 1), np.int32) - 1),
        ("rollout", "start", Z((0, 4))),
        ("rollout", "controls", Z((0, 3, 2))),
        ("rollout", "states", None),
        ("rollout", "threads", -1),
        ("riccati", "controls", None),
        ("tree_system", "parent", integers(-1, 1)),
        ("tree_system", "parent", integers(-2, 0)),
        ("tree_system", "type", integers(0, 4)),
        ("tree_system", "point_body", integers(2)),
        ("tree_system", "point_body", integers(-1)),
        ("tree_system", "stiffness", np.ones(7)),
        *(("tree_system", "limit_body", integers(i)) for i in (-1, 0, 2)),
        *(("tree_system", "limit_side", integers(i)) for i in (-2, 0, 2)),
        *(
            ("tree_system", "parameters", integers(*row).reshape(1, 3))
            for row in ((5, 0, 0), (-1, 0, 0), (0, 2, 0), (4, 1, 0), (3, -1, 0), (3, 0, 3))
        ),
        ("tree_system", "shape_body", integers(-2)),
        ("tree_system", "shape_body", integers(2)),
        ("tree_system", "shape_body", integers(1)),
        ("tree_system", "shapes", []),
        ("height_field", "spline", Z((3, 4))),
        ("height_field", "spline", Z((4, 3))),
        ("CostTable.add state", "reference", Z((0, 4))),
        ("CostTable.add entries", "index", integers(15, 14, 6, 13)),
        ("CostTable.add entries", "index", integers(7, 14, 6, -1)),
        ("CostTable.add entry limits", "index", integers(7, 14)),
        ("CostTable.add pose", "index", integers(2)),
        ("CostTable.add twist", "index", integers(0, 3)),
        ("CostTable.add slip", "index", integers(1)),
        ("CostTable.add air", "index", integers(-1)),
    ],
)
def test_values_that_index_are_checked(call: str, name: str, value: Any) -> None:
    function, arguments = CALLS[call]
    with pytest.raises(ValueError, match="`(" + name + "|controls|threads)` must"):
        function(**{**arguments, name: value})


def test_empty_horizons_and_batches() -> None:
    none = _native.hard_solve(DIMS, Z((0, 2, 2)), Z((0, 2)), Z((0, 1)), None)
    assert none[0].shape == (0, 2)
    table = _native.CostTable(SYSTEM, 0)
    nothing = integers(), Z(0)
    table.add("state", np.full(4, 2.0), Z((1, 4)), np.ones(1, bool), *nothing)
    for rows in (0, 1):
        table.add("control", np.ones(2), Z((rows, 2)), Z(0, bool), *nothing)
    with pytest.raises(ValueError, match="`active` must have shape"):
        table.add("control", np.ones(2), Z((1, 2)), np.ones(1, bool), *nothing)
    assert table.value(np.ones((1, 1, 4)), Z((1, 0, 2))).tolist() == [4.0]
    states = MODEL.rollout(
        Z((1, 4)), Z((1, 0, 2)), np.ones(1), None, None, None, None, None, None, None, 1
    )[0]
    assert states.shape == (1, 1, 4)


@pytest.mark.parametrize(
    "build",
    [
        lambda: _native.TimeStepping(SPACE, 0.1, Z(0), None),
        lambda: _native.system_terms(SPACE, None, Z(2), Z(2)),
        lambda: _native.system_derivatives(SPACE, None, *[Z(2)] * 4, Z(0), Z(2)),
        lambda: _native.TimeStepping(SYSTEM, 0.0, Z(1), None),
        lambda: _native.TimeStepping(SYSTEM, np.nan, Z(1), None),
        lambda: _native.euclidean_space(-1, 2),
        lambda: _native.euclidean_space(2**30, 2),
        lambda: _native.CostTable(SYSTEM, -1),
        lambda: _native.CostTable(SYSTEM, 2**31 - 1),
        lambda: _native.CostTable(SYSTEM, 3).add(
            "stat", Z(4), Z((1, 4)), Z(4, bool), integers(), Z(0)
        ),
        lambda: _native.CostTable(SYSTEM, 3).add(
            "pose", Z(6), Z((1, 7)), Z(4, bool), integers(0), Z(3)
        ),
        lambda: _native.Gradient(kind=6),
        lambda: _native.Gradient(kind=-1),
        lambda: _native.Gradient(kind=3, samples=-1),
        lambda: _native.hard_solve(
            np.full(10**5, 3, np.int32), Z((0, 1, 1)), Z((0, 1)), Z((0, 1)), None
        ),
        lambda: _native.compiled_program(0, 1),
    ],
)
def test_refused(build: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        build()


OPERATIONS = {name: k for k, name in enumerate(_native.tape_operations())}


def tape(*rows: tuple[str | int, int, int, int], work: int = 2) -> Any:
    numbers = [(OPERATIONS.get(str(op), op), *rest) for op, *rest in rows]
    columns = np.array(numbers, dtype=np.int32).reshape(-1, 4).T
    return _native.tape_program(*np.ascontiguousarray(columns), Z(len(rows)), work)


@pytest.mark.parametrize(
    "row",
    [
        ("ADD", 2, 0, 1),
        ("ADD", 0, 2, 1),
        ("ADD", 0, 0, 2),
        ("ADD", -1, 0, 0),
        ("SQ", 0, -1, 0),
        ("CONST", 2, 0, 0),
        ("INPUT", 2, 0, 0),
        ("INPUT", 0, -1, 0),
        ("INPUT", 0, 0, -1),
        ("OUTPUT", 0, 2, 0),
        ("OUTPUT", -1, 0, 0),
        (len(OPERATIONS), 0, 0, 0),
        (-1, 0, 0, 0),
    ],
)
def test_tapes_stay_in_their_registers(row: tuple[str | int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        tape(row)
    with pytest.raises(ValueError, match="`work` must"):
        tape(work=2**62)


@pytest.mark.parametrize(
    "row", [("INPUT", 0, 3, 0), ("INPUT", 0, 1, 1), ("OUTPUT", 5, 0, 0), ("OUTPUT", 0, 0, 1)]
)
def test_tapes_stay_in_their_inputs_and_outputs(row: tuple[str, int, int, int]) -> None:
    sound = tape(("INPUT", 0, 1, 0), ("OUTPUT", 0, 0, 0))  # of one coordinate: M = q
    system = _native.symbolic_system(sound, tape(), tape(), 1, 0, Z(0), integers())
    assert _native.system_terms(system, None, np.full(1, 7.0), Z(1))[0].tolist() == [[7.0]]
    with pytest.raises(ValueError, match="`terms` must"):
        _native.symbolic_system(tape(row), tape(), tape(), 1, 0, Z(0), integers())


def test_symbolic_layout_is_checked() -> None:
    for nv, nu, dims in ((-1, 0, ()), (1, -1, ()), (1, 0, (4,)), (2**20, 0, ())):
        with pytest.raises(ValueError, match="must"):
            _native.symbolic_system(tape(), tape(), tape(), nv, nu, Z(0), integers(*dims))


def test_many_threads_give_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    b = rng.normal(size=(40, 6))
    A = np.tile(np.eye(6), (40, 1, 1))
    one, many = (solve_batch(A, b, np.full((40, 2), 0.5), threads=t) for t in (1, 1000))
    for x, y in zip(one, many):
        assert np.array_equal(x, y)
    layout = integers(3, 3)
    most = _native.hard_solve(layout, A, b, np.full((40, 2), 0.5), None, 2**31 - 1)
    assert np.array_equal(most[0], one.impulse)


def run_with_little_memory(setup: str, spare: int, call: str) -> str:
    """What a process prints that may take `spare` more bytes for `call` than after `setup`."""
    if not sys.platform.startswith("linux") or "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the limit on memory needs Linux and no sanitizer")
    limit = f"""
import resource
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {spare}, resource.RLIM_INFINITY))
"""
    script = "import numpy as np\nfrom cito.dynamics import _native\n" + setup + limit + call
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_exceptions_in_threads_reach_the_caller() -> None:
    """A workspace of 16 GB that no thread gets."""
    setup = """
none, zero = np.zeros(0, np.int32), np.zeros
huge = _native.tape_program(none, none, none, none, zero(0), 2**31 - 2)
system = _native.symbolic_system(huge, huge, huge, 1, 0, zero(0), none)
model = _native.TimeStepping(system, 0.1, zero(0), None)
"""
    call = """
for threads in (1, 2):
    try:
        model.rollout(zero((1, 2)), zero((1, 1, 0)), np.ones(4), *[None] * 7, threads)
    except MemoryError:
        print("refused", end=" ")
"""
    assert run_with_little_memory(setup, 2**30, call) == "refused refused"


def test_no_thread_to_be_had() -> None:
    """Where the system refuses a thread, the caller does its share."""
    setup = """
A, b = np.tile(np.eye(3), (8, 1, 1)), -np.ones((8, 3))
arguments = np.array([3], np.int32), A, b, np.ones((8, 1)), None
one = _native.hard_solve(*arguments, 1)[0]
"""
    call = "print(np.array_equal(_native.hard_solve(*arguments, 4)[0], one))"
    assert run_with_little_memory(setup, 2**20, call) == "True"


# ---------------------------------------------------------------------------- the Python layer
PROBLEM = ContactProblem(np.eye(2), [0.3, -1.0], [0.5])
HARD = PROBLEM.solve()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("impulse", Z(3)),
        ("velocity", Z(1)),
        ("velocity", [np.nan, 0]),
        ("modes", integers(3)),
        ("modes", integers(0, 0)),
        ("modes", np.array([0.5])),
    ],
)
def test_hard_solutions_are_checked(field: str, value: Any) -> None:
    start = HARD._replace(**{field: value})
    for use in (PROBLEM.relax, lambda g, start: PROBLEM.derivatives(g, start=start)):
        with pytest.raises(ValueError, match=rf"`start\.{field}` must"):
            use(FullCone(), start=start)
    A, b, mu = np.eye(2)[None], Z((1, 2)), np.full((1, 1), 0.5)
    hard = solve_batch(A, b, mu)._replace(**{field: np.asarray(value)[None]})
    for batch in (relax_batch, sensitivity_batch):
        with pytest.raises(ValueError, match=rf"`hard\.{field}` must"):
            batch(A, b, mu, FullCone(), hard=hard)


@pytest.mark.parametrize("knot", [-1, 0.5, 2**60, np.nan])
def test_knots_are_checked(knot: float) -> None:
    with pytest.raises(ValueError, match="`knot` must"):
        PROBLEM.derivatives(Randomized(), knot=knot)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`knots` must"):
        sensitivity_batch(np.eye(2)[None], Z((1, 2)), np.ones((1, 1)), Randomized(), knots=[knot])


def test_trajectories_and_steps_are_checked() -> None:
    dynamics = ContactDynamics(point_mass(2), 0.1)
    rollout = dynamics.rollout(Z(4), Z((3, 2)))
    for field in ("states", "controls", "impulses", "velocities"):
        broken = np.array(getattr(rollout, field))
        broken[1, 0] = np.nan
        with pytest.raises(ValueError, match=rf"`rollout\.{field}` must be finite"):
            dynamics.linearize(rollout._replace(**{field: broken}))
    with pytest.raises(ValueError, match=r"`rollout\.modes` must"):
        dynamics.linearize(rollout._replace(modes=rollout.modes + 3))
    step = dynamics.step(Z(4), Z(2))
    for field, value in (
        ("modes", integers(3)),
        ("modes", integers(0, 1)),
        ("impulse", Z(3)),
        ("velocity", [np.inf, 0]),
    ):
        with pytest.raises(ValueError, match=rf"`about\.{field}` must"):
            dynamics.relaxed_step(Z(4), Z(2), FullCone(), step._replace(**{field: value}))


@pytest.mark.parametrize("threads", [0, -1, 1.5, 2**31, np.nan, np.inf, "2", None])
def test_threads_are_whole_numbers(threads: Any) -> None:
    with pytest.raises(ValueError, match="`threads` must"):
        ContactDynamics(point_mass(2), 0.1, threads=threads)
    with pytest.raises(ValueError, match="`threads` must"):
        solve_batch(np.eye(2)[None], Z((1, 2)), np.ones((1, 1)), threads=threads)


@pytest.mark.parametrize("kind", [Randomized, Bundled])
def test_samples_are_whole_numbers(kind: Any) -> None:
    gradient = kind(samples=64.0, seed=np.int64(3))
    assert (type(gradient.samples), type(gradient.seed)) == (int, int)
    assert gradient == kind(samples=64, seed=3) and gradient.native().samples == 64
    for name, values in (
        ("samples", (0, 64.5, 10**6 + 2, np.inf, "64", None)),
        ("seed", (-1, 0.5, 2**63, np.nan)),
    ):
        for value in values:
            with pytest.raises(ValueError, match=f"`{name}` must"):
                kind(**{name: value})


def test_flags_of_gradients() -> None:
    assert type(Randomized(order=1.0).order) is int  # type: ignore[arg-type]
    for order in (2, 0.5, None):
        with pytest.raises(ValueError, match="`order` must"):
            Randomized(order=order)  # type: ignore[arg-type]
    for kind in (Signorini, FullCone):
        assert kind(relative=np.bool_(True)).relative is True  # type: ignore[arg-type]
        for relative in (1, "no", None):
            with pytest.raises(ValueError, match="`relative` must"):
                kind(relative=relative)  # type: ignore[arg-type]


def test_trees_reach_the_core() -> None:
    body = Body("base", None, "free", 1.0, inertia=np.eye(3))
    native = TreeSystem([body], [ContactPoint("foot", "base", Z(3))]).native
    assert (native.nq, native.nv, native.n) == (7, 6, 3)
