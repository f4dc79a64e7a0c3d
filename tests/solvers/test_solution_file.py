"""Solutions on disk: what is written comes back, and what is no solution is refused by name."""

import json
import os
import pickle
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cito
from cito import Solution, Status
from cito.solvers.solution_file import SCHEMA, from_json, to_json


@pytest.fixture(scope="module")
def solution() -> Solution:
    return cito.solve(cito.make("traverse", friction=0.5), cito.FullCone(0.03), max_iterations=8)


def rewrite(path: Path, **changes: object) -> None:
    """Change entries of the JSON text of a saved solution, or arrays beside it."""
    with np.load(path) as archive:
        members = dict(archive)
    about = json.loads(str(members["about"]))
    for name, value in changes.items():
        if isinstance(value, np.ndarray):
            members[name] = value
        elif value is ...:
            del about[name]
        else:
            about[name] = value
    members["about"] = np.array(json.dumps(about))
    np.savez(path, **members)


def test_everything_comes_back(solution: Solution, tmp_path: Path) -> None:
    extra = replace(
        solution,
        status=Status.GAP_OPEN,
        bound=-np.inf,
        gap=np.nan,
        nodes=3,
        history=({"cost": np.float64(2.5), "rows": np.arange(2), "note": "µ", "none": None},),
    )
    loaded = cito.load(extra.save(tmp_path / "run.npz"))
    for field in fields(Solution):
        before, after = getattr(extra, field.name), getattr(loaded, field.name)
        if isinstance(before, np.ndarray):
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
        elif field.name not in ("history", "parameters", "gap"):
            assert before == after, field.name
    assert np.isnan(loaded.gap)
    assert loaded.history == ({"cost": 2.5, "rows": [0, 1], "note": "µ", "none": None},)


def test_the_parameters_make_the_same_problem_again(solution: Solution, tmp_path: Path) -> None:
    loaded = cito.load(solution.save(tmp_path / "run.npz"))
    again = cito.make(loaded.task, **loaded.parameters)
    rollout = again.dynamics.rollout(again.start, loaded.controls)
    np.testing.assert_array_equal(rollout.states, loaded.states)


def test_the_file_needs_no_pickle_and_its_text_is_strict_json(
    solution: Solution, tmp_path: Path
) -> None:
    path = replace(solution, cost=np.inf).save(tmp_path / "run.npz")
    with np.load(path, allow_pickle=False) as archive:
        text = str(archive["about"])
    assert json.loads(text, parse_constant=pytest.fail)["schema"] == SCHEMA
    assert cito.load(path).cost == np.inf


def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    solution: Solution, tmp_path: Path
) -> None:
    path = solution.save(tmp_path / "run.npz")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"`parameters.robot\[1\]` cannot be saved: object"):
        replace(solution, parameters={"robot": [1, object()]}).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        solution.save(tmp_path / "nowhere" / "run.npz")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file .*gone.npz"):
        cito.load(tmp_path / "gone.npz")


@pytest.mark.parametrize("kept", [0, 1, 3, 40, 400, -200, -30, -1])
def test_a_truncated_file_is_called_damaged(solution: Solution, tmp_path: Path, kept: int) -> None:
    path = solution.save(tmp_path / "run.npz")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match="cut short|damaged|not a cito solution"):
        cito.load(path)


@pytest.mark.parametrize("member", ["states.npy", "about.npy"])
def test_a_flipped_byte_is_noticed(solution: Solution, tmp_path: Path, member: str) -> None:
    path = solution.save(tmp_path / "run.npz")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(member)
    content[info.header_offset + 30 + len(member) + 20 + info.compress_size // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        cito.load(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.savez(tmp_path / "number.npz", about=np.array("3"))
    for name in ("text.npz", "array.npy", "other.npz", "number.npz"):
        with pytest.raises(ValueError, match=f"{name} is not a cito solution"):
            cito.load(tmp_path / name)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return pytest.fail, ("unpickled",)

    objects = np.empty((), dtype=object)
    objects[()] = Trap()
    np.savez(tmp_path / "array.npz", about=objects)
    with pytest.raises(ValueError, match="damaged"):
        cito.load(tmp_path / "array.npz")
    (tmp_path / "bare.npz").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="not a cito solution"):
        cito.load(tmp_path / "bare.npz")


def test_a_newer_schema_asks_for_an_upgrade(solution: Solution, tmp_path: Path) -> None:
    path = solution.save(tmp_path / "run.npz")
    rewrite(path, schema=SCHEMA + 1)
    with pytest.raises(ValueError, match="newer cito .*upgrade"):
        cito.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"cost": ...},
        {"cost": None},
        {"cost": "low"},
        {"schema": ...},
        {"schema": "1"},
        {"schema": 1.5},
        {"status": "GREAT"},
        {"status": ["OPTIMAL"]},
        {"history": 3},
        {"history": [3]},
        {"parameters": [1]},
        {"nodes": "many"},
        {"bound": {"float": "x"}},
        {"bound": {"float": [1]}},
        {"states": np.zeros((4, 4))},
        {"states": np.zeros(())},
        {"states": np.full((31, 4), np.nan)},
        {"states": np.zeros((31, 4), complex)},
        {"states": np.full((31, 4), "0")},
        {"impulses": np.zeros((30, 0))},
        {"impulses": np.zeros((30, 4))},
        {"modes": np.full((30, 1), 3, np.int32)},
        {"modes": np.zeros((30, 1))},
    ],
    ids=lambda changes: "-".join(map(str, next(iter(changes.items()))))[:24],
)
def test_missing_and_impossible_entries_are_damage(
    solution: Solution, tmp_path: Path, changes: dict[str, object]
) -> None:
    path = solution.save(tmp_path / "run.npz")
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=f"{path.name} is damaged: .*{next(iter(changes))}"):
        cito.load(path)


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "NaN,"])
def test_a_text_that_is_no_json_is_damage(tmp_path: Path, text: str) -> None:
    np.savez(tmp_path / "run.npz", about=np.array(text))
    with pytest.raises(ValueError, match="run.npz is damaged"):
        cito.load(tmp_path / "run.npz")


def test_an_unknown_compression_is_damage(solution: Solution, tmp_path: Path) -> None:
    path = solution.save(tmp_path / "run.npz")
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(signature) + offset] = 77
    path.write_bytes(content)
    with pytest.raises(ValueError, match="run.npz is damaged"):
        cito.load(path)


def test_only_files_are_replaced(solution: Solution, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("pipe", "circle", "."):
        with pytest.raises(ValueError, match="`path` "):
            solution.save(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["circle", "pipe"]


def test_a_link_is_kept_and_its_file_replaced(solution: Solution, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.npz").symlink_to("there/run.npz")
    for _ in range(2):
        assert solution.save(tmp_path / "link.npz") == tmp_path / "link.npz"
        assert (tmp_path / "link.npz").is_symlink()
        assert os.listdir(tmp_path / "there") == ["run.npz"]
    assert cito.load(tmp_path / "there" / "run.npz").cost == solution.cost


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text().filter(lambda k: k != "float"), inner)
    ),
    max_leaves=8,
)


@given(values)
def test_json_keeps_every_value(value: object) -> None:
    text = json.dumps(to_json("value", value), allow_nan=False)
    assert from_json(json.loads(text)) == value
