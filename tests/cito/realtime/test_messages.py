"""Messages between the loop and a simulator: nothing that was not agreed on is understood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cito.realtime.messages import HEADER, MAGIC, BadMessage, Format, Kind

FORMAT = Format(nq=19, nv=18, nu=12, feet=4)


@pytest.mark.parametrize("kind", list(Kind))
def test_what_is_packed_comes_out_again(kind: Kind) -> None:
    parts = [np.random.default_rng(kind).normal(size=n) for n in FORMAT.lengths(kind)]
    message = FORMAT.unpack(FORMAT.pack(kind, 7, 1.25, *parts))
    assert (message.kind, message.sequence, message.time) == (kind, 7, 1.25)
    assert len(message.parts) == len(parts)
    for sent, received in zip(parts, message.parts):
        assert (sent == received).all()


def test_every_other_size_is_refused() -> None:
    whole = FORMAT.pack(Kind.STATE, 1, 0.0, np.zeros(19), np.zeros(18), np.zeros(12))
    for length in range(0, len(whole)):
        with pytest.raises(BadMessage):
            FORMAT.unpack(whole[:length])
    with pytest.raises(BadMessage, match=f"STATE of {len(whole) + 8} bytes where {len(whole)}"):
        FORMAT.unpack(whole + b"12345678")


@given(st.binary(max_size=600))
def test_foreign_bytes_are_refused(raw: bytes) -> None:
    if raw[:4] != MAGIC:
        with pytest.raises(BadMessage):
            FORMAT.unpack(raw)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BadMessage, match="does not come from cito"):
        FORMAT.unpack(HEADER.pack(MAGIC, 99, 0, 0.0))


def test_parts_of_other_lengths_are_not_sent() -> None:
    with pytest.raises(ValueError, match=r"`parts` of RESET must have \(19, 18\) numbers"):
        FORMAT.pack(Kind.RESET, 0, 0.0, np.zeros(19), np.zeros(19))
