"""Samples from arrays and files: what is taken and what is refused."""

import numpy as np
import pytest

from cito.dynamics.learned.motions import Motions, joined, load_motions


def rows(n: int = 2, count: int = 4) -> list[np.ndarray]:
    return list(np.random.default_rng(0).standard_normal((6, count, n)))


def test_a_file_gives_back_what_was_saved(tmp_path) -> None:
    motions = Motions(*rows())
    found = load_motions(motions.save(tmp_path / "motions.npz"))
    assert found.arrays.keys() == motions.arrays.keys() and len(found) == 4
    for name, value in motions.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], value)
    assert [path.name for path in tmp_path.iterdir()] == ["motions.npz"]


def test_a_table_is_read_by_its_header(tmp_path) -> None:
    q, v, a, tau, *_ = rows()
    names = [f"{name}{i}" for name in ("tau", "q", "a", "v") for i in range(2)]
    table = np.column_stack([tau, q, a, v, np.arange(4)])
    lines = [", ".join(map(repr, map(float, row))) for row in table]
    (tmp_path / "run.csv").write_text("\n".join([", ".join([*names, "time"]), *lines, ""]))
    found = load_motions(tmp_path / "run.csv")
    np.testing.assert_array_equal(found.v, v)
    np.testing.assert_array_equal(found.tau, tau)
    assert found.p is None


def test_motions_are_joined(tmp_path) -> None:
    with_momenta, without = Motions(*rows()), Motions(*rows()[:4])
    assert len(joined([with_momenta, without])) == 8
    assert joined([with_momenta, without]).p is None
    assert joined([with_momenta, with_momenta]).p.shape == (8, 2)
    with pytest.raises(ValueError, match="`motions` must not be empty"):
        joined([])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"v": np.zeros((4, 3))}, r"`v` must have shape \(4, 2\), got \(4, 3\)"),
        ({"tau": np.full((4, 2), np.nan)}, r"`tau` must be finite, got nan at index \(0, 0\)"),
        ({"q": np.zeros(4)}, "`q` must have shape"),
        ({"q": np.zeros((0, 2))}, r"`q` must hold samples \(N, n\), got shape \(0, 2\)"),
        ({"p": None}, "`p` and `pdot` must be given together"),
    ],
)
def test_samples_that_do_not_fit_are_refused(change: dict, message: str) -> None:
    good = dict(zip(("q", "v", "a", "tau", "p", "pdot"), rows()))
    with pytest.raises(ValueError, match=message):
        Motions(**(good | change))


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("run.npz", b"PK garbage", "run.npz is no readable .npz"),
        ("run.txt", b"", "`path` must be an .npz or a .csv"),
        ("run.csv", b"", "must hold q, v, a and tau: q, v, a, tau is missing"),
        ("run.csv", b"q0,v0,a0\n1,2,3\n", "tau is missing"),
        ("run.csv", b"q0,v0,a0,tau0\n1,2,x,4\n", "must hold numbers under a0"),
        ("run.csv", b"q0,v0,a0,tau0\n1,2,3,nan\n", "run.csv: `tau` must be finite"),
        ("run.csv", b"q0,v0,a0,tau0\n1,2,3\n", "must hold numbers under tau0"),
    ],
)
def test_files_that_are_none_are_refused(tmp_path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_motions(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load_motions(tmp_path / "elsewhere.npz")


def test_an_archive_without_an_array_is_refused(tmp_path) -> None:
    np.savez(tmp_path / "run.npz", q=np.zeros((3, 1)), v=np.zeros((3, 1)), a=np.zeros((3, 1)))
    with pytest.raises(ValueError, match="must hold q, v, a and tau: tau is missing"):
        load_motions(tmp_path / "run.npz")
