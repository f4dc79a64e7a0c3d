"""Array types and the one place where array arguments are checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int32]
MAX_THREADS = 1024


def as_array(name: str, value: ArrayLike, shape: Sequence[int | None] | None = None) -> Array:
    """`value` as a C-contiguous double array, checked.

    Args:
        name: what the caller calls the argument; it opens every error message.
        value: anything numpy understands.
        shape: expected shape; None stands for any length along that axis.

    Raises:
        ValueError: not numeric, wrong shape, NaN or infinite; says what came and what is wanted.
    """
    if _is_sound(value) and (shape is None or tuple(shape) == value.shape):  # type: ignore[union-attr]
        return value  # type: ignore[return-value]
    array = _numbers(name, value)
    if np.ndim(value) == 0:  # ascontiguousarray makes scalars 1-D
        array = array.reshape(())
    if shape is not None and not _matches(array.shape, shape):
        lengths = ", ".join("any" if s is None else str(s) for s in shape)
        wanted = f"({lengths},)" if len(shape) == 1 else f"({lengths})"
        raise ValueError(f"`{name}` must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f" at index {where}" if where else ""
        raise ValueError(f"`{name}` must be finite, got {array[where]}{place}")
    return array


def _is_sound(value: ArrayLike) -> bool:
    """Whether nothing needs to be said of `value`: the quick way out for arrays inside solvers."""
    return (
        type(value) is np.ndarray
        and value.dtype == np.float64
        and value.flags.c_contiguous
        and value.size < 10_000  # for more BLAS would wake its threads
        # silent on infinities; finite numbers whose squares overflow take the long way
        and math.isfinite(np.vdot(value, value))
    )


def freeze(record: object) -> None:
    """Replace every array of a frozen dataclass by a read-only copy: what was checked stays so."""
    for name, value in list(vars(record).items()):
        if isinstance(value, np.ndarray):
            copy = value.copy()
            copy.setflags(write=False)
            object.__setattr__(record, name, copy)


def without_native(record: object) -> dict[str, Any]:
    """The state of a system for pickle and copy: the native handle is made again on demand."""
    return {name: value for name, value in vars(record).items() if name != "native"}


def as_vector(name: str, value: ArrayLike, length: int) -> Array:
    """Like `as_array` with shape (length,); a scalar is repeated."""
    return as_array(name, _repeated(name, value, length), (length,))


def as_limits(name: str, value: ArrayLike | None, length: int) -> Array | None:
    """Limits (length,) that may be infinite; a scalar is repeated, None stands for no limit."""
    if value is None:
        return None
    limits = _numbers(name, _repeated(name, value, length))
    as_array(name, np.where(np.isinf(limits), 0.0, limits), (length,))
    return limits


def batch_axes(
    name: str, axes: tuple[int, ...], other: str, other_axes: tuple[int, ...]
) -> tuple[int, ...]:
    """The batch axes that two arguments have in common, by broadcasting."""
    try:
        return np.broadcast_shapes(axes, other_axes)
    except ValueError as error:
        raise ValueError(
            f"batch axes of `{name}` and `{other}` must fit, got {axes} and {other_axes}"
        ) from error


def positive(name: str, value: Any, *, allow_zero: bool = False) -> float:
    """`value` as a float > 0 (>= 0 where `allow_zero`).

    Raises:
        ValueError: not a number, not finite or of the wrong sign.
    """
    number = float(as_array(name, value, ()))
    if number < 0 or (number == 0 and not allow_zero):
        raise ValueError(f"`{name}` must be {'>= 0' if allow_zero else '> 0'}, got {number:g}")
    return number


def whole_number(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """`value` as an int between `minimum` and `maximum`, both included; 3.0 counts as whole.

    Raises:
        ValueError: not a number, not whole, or out of range.
    """
    try:
        number = int(value)
        sound = bool(number == value and number >= minimum)
    except (TypeError, ValueError, OverflowError):  # text, NaN, infinity
        sound = False
    if not sound:
        raise ValueError(f"`{name}` must be a whole number >= {minimum}, got {value!r:.80}")
    if maximum is not None and number > maximum:
        raise ValueError(f"`{name}` must be <= {maximum}, got {value!r:.80}")
    return number


def as_modes(name: str, value: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """Contact modes of `shape`: 0 separating, 1 sliding, 2 clamping.

    Raises:
        ValueError: wrong shape, or another value.
    """
    given = np.asarray(value)
    known = (given == 0) | (given == 1) | (given == 2)  # numpy.isin takes ten times as long
    if given.shape != shape or not np.all(known):
        raise ValueError(f"`{name}` must be 0, 1 or 2 of shape {shape}, got {value!r:.80}")
    return np.ascontiguousarray(given, dtype=np.int32).reshape(shape)


def duration(name: str, value: Any) -> float:
    """`value` as a time > 0 [s] that may be infinite.

    Raises:
        ValueError: not a number, NaN, or not positive.
    """
    return math.inf if isinstance(value, float) and value == math.inf else positive(name, value)


def _repeated(name: str, value: ArrayLike, length: int) -> ArrayLike:
    """A scalar `length` times; anything else as it is."""
    try:
        scalar = np.ndim(value) == 0
    except ValueError:  # rows of different lengths
        return value
    return np.full(length, _numbers(name, value)) if scalar else value


def _numbers(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":  # None would become NaN, and 1 + 2j lose its 2j
            raise TypeError
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`{name}` must be an array of numbers, got {value!r:.80}") from error


def _matches(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(w is None or s == w for s, w in zip(shape, wanted))
