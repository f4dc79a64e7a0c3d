"""What cito measures: each benchmark is one module and one command, `cito bench NAME`.

A benchmark module has `run(quick) -> rows`, each row a mapping of plain values. Where rows take
long it also has `rows(quick)`, which yields them one by one, and `total(quick)`, their number;
`tables(rows)` are the (headers, cells) that a person reads.
"""

from __future__ import annotations

BENCHMARKS = {
    "planar": "cito.benchmarks.planar",
    "random": "cito.benchmarks.random_suite",
    "contact": "cito.benchmarks.contact",
    "ddp": "cito.benchmarks.ddp",
    "reference": "cito.benchmarks.reference",
}
