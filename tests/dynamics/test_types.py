"""Array arguments are checked in one place, and every message says what came and what is wanted."""

from __future__ import annotations

import numpy as np
import pytest

from cito.dynamics.types import (
    as_array,
    as_limits,
    as_vector,
    batch_axes,
    duration,
    positive,
    whole_number,
)


def test_array_is_contiguous_double():
    for value in ([[1, 2], [3, 4]], np.arange(4, dtype=np.int32).reshape(2, 2).T):
        array = as_array("a", value, (2, None))
        assert array.dtype == np.float64 and array.flags.c_contiguous
        assert np.array_equal(array, value)
    assert as_array("a", 3).shape == ()


def test_large_finite_numbers_pass():
    for value in ([1e308, 1e308], [-1e200, 1e200]):
        assert as_array("a", np.array(value)).tolist() == value


@pytest.mark.parametrize(
    ("value", "shape", "message"),
    [
        ("text", None, "`a` must be an array of numbers, got 'text'"),
        ([[1], [1, 2]], None, "`a` must be an array of numbers"),
        (None, None, "`a` must be an array of numbers, got None"),
        ([1, 2, 3], (2,), r"`a` must have shape \(2,\), got \(3,\)"),
        ([1, 2], (None, 2), r"`a` must have shape \(any, 2\), got \(2,\)"),
        ([[0, 1], [np.nan, 0]], None, r"`a` must be finite, got nan at index \(1, 0\)"),
        ([0, -np.inf], (2,), r"`a` must be finite, got -inf at index \(1,\)"),
        (np.array([np.inf, -np.inf]), None, r"`a` must be finite, got inf at index \(0,\)"),
        (np.zeros((2, 3)), (2, 2), r"`a` must have shape \(2, 2\), got \(2, 3\)"),
        (np.nan, (), r"`a` must be finite, got nan$"),
        ([1.0, None], None, "`a` must be an array of numbers"),
        ([1, 2j], None, "`a` must be an array of numbers"),
        (10**400, (), "`a` must be an array of numbers"),
    ],
)
def test_array_refuses(value, shape, message):
    with pytest.raises(ValueError, match=message):
        as_array("a", value, shape)


def test_vector_repeats_scalars():
    assert as_vector("a", 2, 3).tolist() == [2, 2, 2]
    assert as_vector("a", [1, 2], 2).tolist() == [1, 2]
    with pytest.raises(ValueError, match="`a` must have shape"):
        as_vector("a", [1, 2], 3)
    with pytest.raises(ValueError, match="`a` must be an array of numbers, got None"):
        as_vector("a", None, 3)
    with pytest.raises(ValueError, match="`a` must be an array of numbers"):
        as_vector("a", [[1], [1, 2]], 3)


def test_limits_may_be_infinite_but_not_nan():
    assert as_limits("a", None, 2) is None
    assert as_limits("a", np.inf, 2).tolist() == [np.inf, np.inf]
    assert as_limits("a", [-np.inf, 1], 2).tolist() == [-np.inf, 1]
    for value, message in (([np.nan, 1], "finite"), ([1], "shape"), ("low", "numbers")):
        with pytest.raises(ValueError, match=f"`a` must .*{message}"):
            as_limits("a", value, 2)


def test_positive():
    assert positive("a", 2) == 2.0 and type(positive("a", np.float32(2))) is float
    assert positive("a", 0, allow_zero=True) == 0.0
    for value, allow_zero, message in (
        (0, False, "`a` must be > 0, got 0"),
        (-1, True, "`a` must be >= 0, got -1"),
        (np.inf, False, "`a` must be finite"),
        ([1, 2], False, "`a` must have shape"),
        ("x", False, "`a` must be an array of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            positive("a", value, allow_zero=allow_zero)


def test_whole_number():
    assert whole_number("a", 3.0, 1) == 3 and type(whole_number("a", np.int64(3), 1)) is int
    for value in (0, 2.5, np.nan, np.inf, "3", None, [3], np.array([3, 4]), 1j):
        with pytest.raises(ValueError, match="`a` must be a whole number >= 1, got "):
            whole_number("a", value, 1)
    with pytest.raises(ValueError, match="`a` must be <= 9, got 10"):
        whole_number("a", 10, 1, 9)


def test_a_duration_may_be_infinite():
    assert duration("a", np.inf) == np.inf and duration("a", 2) == 2.0
    for value in (0, -np.inf, np.nan, "x", None, [1, 2]):
        with pytest.raises(ValueError, match="`a` must "):
            duration("a", value)


def test_batch_axes_broadcast_or_say_whose_do_not():
    assert batch_axes("a", (3, 1), "b", (2,)) == (3, 2)
    with pytest.raises(ValueError, match=r"`a` and `b` must fit, got \(3,\) and \(2,\)"):
        batch_axes("a", (3,), "b", (2,))
