"""Many experiments over many cores, each kept as soon as it is done.

    for outcome in sweep(function, experiments, folder): ...

An experiment and its outcome are JSON objects. Each outcome is one file in `folder`, named after
what the experiment says, written under a temporary name and then renamed: a sweep that was stopped
goes on where it stopped, and two sweeps may share what they have in common.

The work goes through joblib, on all cores of this machine by default. Its other backends take the
same sweep to a cluster:

    with joblib.parallel_config(backend="dask"): ...        # or "ray"
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from cito.dynamics.files import replacing
from cito.results import json_text

Experiment = Mapping[str, Any]
Outcome = dict[str, Any]


def sweep(
    function: Callable[[Experiment], Outcome],
    experiments: Sequence[Experiment],
    folder: Path,
    jobs: int = -1,
    advance: Callable[[], object] = lambda: None,
) -> list[Outcome]:
    """The outcomes of all experiments, in their order.

    Args:
        function: a module's function, so that other processes can import it.
        experiments: what it is called with.
        folder: where the outcomes are; made if it is not there. Those found there are not run
            again.
        jobs: processes, -1 for one a core; a cluster's backend uses all its workers.
        advance: called for each outcome, those that were found included.
    """
    files = [folder / f"{key(function, experiment)}.json" for experiment in experiments]
    folder.mkdir(parents=True, exist_ok=True)
    found = {file: outcome for file in files if (outcome := read(file)) is not None}
    missing = {file: e for file, e in zip(files, experiments) if file not in found}
    for file in files:
        if file in found:
            advance()
    for file, outcome in _made(function, missing, jobs):
        found[file] = outcome
        advance()
    return [found[file] for file in files]


def key(function: Callable[[Experiment], Outcome], experiment: Experiment) -> str:
    """What the file of an experiment is called: a digest of all that it depends on."""
    name = f"{function.__module__}.{function.__qualname__}"
    text = json.dumps([name, experiment], sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def read(file: Path) -> Outcome | None:
    """An outcome; None where there is none yet, or the file is no such thing."""
    try:
        kept = json.loads(file.read_text())
        outcome: Outcome = kept["outcome"]
        return outcome
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _made(
    function: Callable[[Experiment], Outcome], missing: Mapping[Path, Experiment], jobs: int
) -> Iterator[tuple[Path, Outcome]]:
    """The missing outcomes in the order in which they come."""
    calls = [
        delayed(_kept)(function, experiment, str(file)) for file, experiment in missing.items()
    ]
    if jobs == 1 or len(calls) < 2:
        made: Any = (call(*args, **named) for call, args, named in calls)
    else:
        made = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(
            calls
        )
    for file, outcome in made:
        yield Path(file), outcome


def _kept(
    function: Callable[[Experiment], Outcome], experiment: Experiment, file: str
) -> tuple[str, Outcome]:
    """Run one experiment and keep its outcome."""
    outcome = json.loads(json_text(function(experiment)))  # as it will be read: NaN is None
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)  # on another machine it may not be there
    with replacing(path) as temporary:
        temporary.write_text(json_text({"experiment": dict(experiment), "outcome": outcome}))
    return file, outcome
