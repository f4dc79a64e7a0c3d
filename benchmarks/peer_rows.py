"""Candidates for the same work, measured in turn, and the rows that tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cito.benchmarks.timing import Lap, interleaved

Row = dict[str, Any]


class Candidate(NamedTuple):
    """One of those that do the same work.

    Args:
        name: whose it is.
        lap: does it once for all states; None where the peer is missing.
        note: what must be known of it.
        contacts: with a force, mean over the states.
        bar: most microseconds of cito itself, least ratio of a peer.
    """

    name: str
    lap: Lap | None
    note: str = ""
    contacts: float | None = None
    bar: float | None = None


def compared(what: str, candidates: list[Candidate], rounds: int, units: int) -> Iterator[Row]:
    """Rows of candidates, of which the first is cito; a lap is `units` units of work."""
    laps = {c.name: c.lap for c in candidates if c.lap is not None}
    seconds = interleaved(laps, rounds)
    cito = seconds[candidates[0].name]
    for c in candidates:
        if c.name not in seconds:
            yield row(c.name, what, None, None, c.note)
            continue
        us = 1e6 * seconds[c.name] / units
        ratio = float(np.median(seconds[c.name] / cito))
        told = row(c.name, what, float(np.median(us)), ratio, c.note, c.contacts, c.bar)
        yield {**told, "least_us": float(us.min())}


def row(
    name: str,
    what: str,
    median_us: float | None,
    ratio: float | None,
    note: str = "",
    contacts: float | None = None,
    bar: float | None = None,
) -> Row:
    """One candidate's share in a comparison; without time where it was skipped."""
    met = None
    if bar is not None and median_us is not None and ratio is not None:
        met = median_us <= bar if name.startswith("cito") else ratio >= bar
    return {
        "name": name,
        "what": what,
        "median_us": median_us,
        "least_us": median_us,
        "ratio_to_cito": ratio,
        "active_contacts": contacts,
        "bar": bar,
        "met": met,
        "note": note,
    }


def tables(rows: list[Row]) -> list[tuple[list[str], list[list[Any]]]]:
    """The rows as a person reads them: comparisons, scaling, notes."""
    compared = [row for row in rows if not row["what"].startswith("scaling")]
    scaled = [row for row in rows if row["what"].startswith("scaling")]
    found = [
        (["work", "", "us", "x cito", "contacts", "bar"], [_cells(row) for row in compared]),
        (["work", "", "note"], [[r["what"], r["name"], r["note"]] for r in compared if r["note"]]),
    ]
    if scaled:
        names = list(dict.fromkeys(row["name"] for row in scaled))
        table = {row["what"]: [row["what"].partition(": ")[2]] for row in scaled}
        for row in scaled:
            table[row["what"]].append(f"{row['median_us']:.1f}")
        found.insert(1, (["scaling, microseconds", *names], list(table.values())))
    return found


def _cells(row: Row) -> list[Any]:
    bar = None
    if row["bar"] is not None:
        limit = (
            f"<= {row['bar']:.3g} us" if row["name"].startswith("cito") else f">= {row['bar']:g}"
        )
        bar = limit + {True: ", met", False: ", missed", None: ""}[row["met"]]
    numbers = [
        None if row[key] is None else f"{row[key]:.{digits}f}"
        for key, digits in (("median_us", 1), ("ratio_to_cito", 2), ("active_contacts", 1))
    ]
    return [row["what"], row["name"], *numbers, bar]
