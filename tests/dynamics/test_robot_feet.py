"""Which shapes become contacts: feet guessed and named, flat and round, and further contacts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cito.dynamics import _native
from cito.dynamics.robot import Robot, load_robot
from cito.problems.robots import load_robot as load_named

LEG = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint/>
  <geom name="trunk" type="box" size="0.2 0.1 0.05"/>
  <body name="shank" {tilt}><joint name="knee" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.02"/>
    <body name="{link}" pos="0 0 -0.4">{shapes}</body>
  </body></body></worldbody></mujoco>"""


def leg(folder: Path, shapes: str, link: str = "foot", tilt: str = "") -> Path:
    (folder / "leg.xml").write_text(LEG.format(shapes=shapes, link=link, tilt=tilt))
    return folder / "leg.xml"


def world(robot: Robot) -> np.ndarray:
    """Lowest points of the contacts' spheres in the stance, (nc, 3)."""
    from cito.dynamics.robot_stance import body_poses

    poses = body_poses(robot.system.bodies, robot.stance)
    return np.array(
        [
            poses[c.body].position + poses[c.body].rotation @ c.position - [0, 0, c.radius]
            for c in robot.contacts
        ]
    )


@pytest.mark.parametrize(
    ("shapes", "radius", "places"),
    [
        ('<geom type="sphere" size="0.03" pos="0.1 0 0"/>', 0.03, [[0.1, 0]]),
        ('<geom type="ellipsoid" size="0.03 0.03 0.03" pos="0.1 0 0"/>', 0.03, [[0.1, 0]]),
        (
            '<geom type="capsule" size="0.03" fromto="-0.1 0 0 0.2 0 0"/>',
            0.03,
            [[-0.1, 0], [0.2, 0]],
        ),
        (
            '<geom type="box" size="0.1 0.05 0.02"/>',
            0.0,
            [[-0.1, -0.05], [-0.1, 0.05], [0.1, -0.05], [0.1, 0.05]],
        ),
        (
            '<geom type="box" size="0.02 0.05 0.1" euler="0 90 0"/>',
            0.0,
            [[-0.1, -0.05], [-0.1, 0.05], [0.1, -0.05], [0.1, 0.05]],
        ),
        (
            '<geom type="cylinder" size="0.04 0.02"/>',
            0.0,
            [[0.04, 0], [0, 0.04], [-0.04, 0], [0, -0.04]],
        ),
        (
            '<geom type="cylinder" size="0.04 0.1" euler="0 90 0"/>',
            0.04,
            [[-0.06, 0], [0.06, 0]],
        ),
        ('<geom type="cylinder" size="0.04 0.03" euler="0 90 0"/>', 0.04, [[0, 0]]),
        ('<site name="sole" pos="0.03 0 -0.02"/>', 0.0, [[0.03, 0]]),
    ],
)  # fmt: skip
def test_shapes_of_feet(
    tmp_path: Path, shapes: str, radius: float, places: list[list[float]]
) -> None:
    link = "end" if "site" in shapes else "foot"
    robot = load_robot(leg(tmp_path, shapes, link))
    assert {c.radius for c in robot.contacts} == {radius}
    points = world(robot)
    assert np.allclose(sorted(points[:, :2].tolist()), sorted(places), atol=1e-12)
    assert np.allclose(points[:, 2], 0, atol=1e-12)  # flat on the ground
    assert len(robot.feet) == len(places) == len(set(robot.feet))
    if len(places) > 1:
        assert robot.feet == tuple(f"{link}.{k + 1}" for k in range(len(places)))


def test_the_lower_face_is_that_of_the_stance(tmp_path: Path) -> None:
    """A leg mounted upside down has its foot's other face below."""
    box = '<geom type="box" size="0.1 0.05 0.02"/>'
    upright = load_robot(leg(tmp_path, box))
    turned = load_robot(leg(tmp_path, box, tilt='euler="180 0 0"'))
    assert np.allclose([c.position[2] for c in upright.contacts], -0.42)
    assert np.allclose([c.position[2] for c in turned.contacts], -0.38)


def test_an_ellipsoid_is_refused_where_it_is_asked_for(tmp_path: Path) -> None:
    path = leg(tmp_path, '<geom name="egg" type="ellipsoid" size="0.1 0.05 0.02"/>')
    with pytest.raises(ValueError, match="`feet` names 'egg', an ellipsoid of .*leg.xml"):
        load_robot(path, feet=["egg"])
    robot = load_robot(path)
    assert robot.feet == ("foot",) and any("they are points" in text for text in robot.warnings)


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("left_foot", True),
        ("LeftFoot", True),
        ("l_sole", True),
        ("toe_left", True),
        ("ankle_roll_link", True),
        ("FL", True),
        ("rh", True),
        ("footprint", False),
        ("TorsoLeftIMU", False),  # holds "sole", and is none
        ("console", False),
        ("pad", False),
    ],
)
def test_names_of_feet(tmp_path: Path, link: str, found: bool) -> None:
    robot = load_robot(leg(tmp_path, '<geom type="sphere" size="0.03"/>', link))
    assert link in robot.feet  # as the lowest end of the tree in any case
    assert any("named like a foot" in text for text in robot.warnings) is not found


def test_the_lowest_ends_are_taken_where_no_name_tells(tmp_path: Path) -> None:
    text = """<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint/><geom size="0.1"/>
      <body name="a" pos="0.2 0 -0.5"><joint axis="0 1 0"/><geom size="0.05"/></body>
      <body name="b" pos="-0.2 0 -0.5"><joint axis="0 1 0"/><geom size="0.05"/></body>
      <body name="hand" pos="0 0.2 0.3"><joint axis="0 1 0"/><geom size="0.05"/></body>
    </body></worldbody></mujoco>"""
    (tmp_path / "plain.xml").write_text(text)
    robot = load_robot(tmp_path / "plain.xml")
    assert robot.feet == ("a", "b")
    assert any("feet=[...]" in text and "(a, b)" in text for text in robot.warnings)
    held = load_robot(tmp_path / "plain.xml", floating_base=False)
    assert held.feet == () and any("there are no contacts" in text for text in held.warnings)


def test_feet_keep_the_order_asked_for_and_legs_have_one_of_their_own() -> None:
    assert load_named("go2", feet=["RR", "FL_foot"]).feet == ("RR", "FL_foot")
    assert load_named("go2", feet=["*L", "*R"]).feet == ("FL", "RL", "FR", "RR")
    assert load_named("go2").feet == ("FL", "FR", "RL", "RR")


def test_further_contacts() -> None:
    robot = load_named("go2", contacts=["trunk", "*_knee"])
    names = [c.name for c in robot.contacts]
    assert robot.feet == ("FL", "FR", "RL", "RR") == tuple(names[:4])
    assert names[4:12] == [f"trunk.{k}" for k in range(1, 9)]
    assert names[12:] == ["FL_knee", "FR_knee", "RL_knee", "RR_knee"]
    corners = np.array([c.position for c in robot.contacts[4:12]])
    assert np.allclose(np.abs(corners), [0.1881, 0.04675, 0.057])
    assert len(np.unique(corners, axis=0)) == 8
    assert robot.friction is not None and robot.friction.tolist() == [0.8] * 16
    phi = _native.system_terms(robot.native, None, robot.stance, np.zeros(18))[4]
    assert np.allclose(phi[:4], 0, atol=1e-9) and (phi[4:] > 0.1).all()
    # A body stands for its shapes, and what is a foot already is none twice.
    assert [c.name for c in load_named("go2", contacts=["base", "FL"]).contacts[4:]] == [
        f"base.{k}" for k in range(1, 9)
    ]


def test_only_what_collides_stands_for_a_body(tmp_path: Path) -> None:
    shapes = """<geom type="sphere" size="0.09" contype="0" conaffinity="0"/>
      <geom type="capsule" size="0.03" fromto="-0.1 0 0 0.1 0 0"/>"""
    robot = load_robot(leg(tmp_path, shapes))
    assert {c.radius for c in robot.contacts} == {0.03} and len(robot.contacts) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feet": ["FLL"]}, "`feet` names 'FLL', which is not in .*go2.xml; did you mean 'FL'"),
        ({"contacts": ["tail"]}, "`contacts` names 'tail', which is not in .*go2.xml"),
        ({"feet": ["*_paw"]}, r"`feet` names '\*_paw'"),
        ({"feet": "FL"}, "`feet` must be a list"),
        ({"feet": []}, "`feet` must be a list"),
        ({"contacts": "trunk"}, "`contacts` must be a list"),
    ],
)
def test_misuse_is_named(arguments: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_named("go2", **arguments)
