"""Fits the table of success that the program ships.

``python -m tools.fit_table FOLDER... [--write]``: folders as ``debrief validity`` takes them. Every
family has a base rate of its own, which is fitted and thrown away, and counts by the root of its
size. Without ``--write`` the table is only printed. How it does on families left out, and fitted
on, says ``python -m tools.validity``.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
from debrief.offline.success import (
    GUARD_AT_MOST,
    GUARDS,
    SPEAKS_FOR,
    VALUES,
    KindTable,
    SuccessTable,
    TableKind,
    Term,
    estimate,
    minimum,
    row_of,
)
from numpy.typing import NDArray

from debrief.offline import success
from debrief.offline.facts import facts_of
from debrief.validity.measuring import Measured, batches_of_folder

HELD = 0.02
"""How firmly weights are held to 0, by the importance of all sessions together."""
MOST = {"wrote": -0.2}
"""The furthest that a weight may go: what it took must not be the heart of the order."""
SET = {"corrections": -0.2}
"""Weights that are set, not fitted: no labelled session has a person in it who corrects."""


def read(folders: Sequence[Path]) -> Iterator[Measured]:
    """Yield the facts of all labelled sessions."""
    for folder in folders:
        for batch in batches_of_folder(folder, 0)[0]:
            for session in batch.sessions(lambda each: each):
                if run := batch.runs.get(session.id):
                    yield Measured(run=run, facts=facts_of(session), values={})


def fitted(rows: Sequence[Measured], kind: TableKind, terms: Sequence[str]) -> KindTable:
    """Return the table of a kind, fitted to these sessions."""
    rows = [each for each in rows if each.facts.kind == each.run.kind == kind]
    families = np.array([each.run.family for each in rows])
    names, place = np.unique(families, return_inverse=True)
    values = np.array([[VALUES[name](each.facts) for name in terms] for each in rows])
    inside = [values[families == name] for name in names]
    means = np.mean([part.mean(0) for part in inside], axis=0)
    scales = np.sqrt(np.mean([part.var(0) for part in inside], axis=0)) + 1e-6
    scales = np.where(scales > 1e-3, scales, 1.0)
    usual = zip(terms, means, scales, strict=True)
    numbers = KindTable(
        terms={name: Term(float(mean), float(scale), 0.0) for name, mean, scale in usual},
        guards=dict.fromkeys(GUARDS, 0.0),
    )
    x = np.array([row_of(each.facts, numbers)[:-1] for each in rows])
    own: NDArray[Any] = np.eye(len(names))[place]
    importance = (1 / np.sqrt(np.bincount(place)))[place]
    held = np.array([HELD] * x.shape[1] + [1e-4] * len(names)) * importance.sum()
    bounds = [_bounds(name) for name in (*terms, *GUARDS)]
    weights = minimum(
        np.hstack([x, own]),
        np.array([each.run.success for each in rows], dtype=float),
        importance,
        np.array([SET.get(name, 0.0) for name in (*terms, *GUARDS)] + [0.0] * len(names)),
        held,
        [*bounds, *[(None, None)] * len(names)],
    )
    found = [round(float(weight), 3) + 0.0 for weight in weights]
    return KindTable(
        terms={
            name: Term(round(term.mean, 4), round(term.scale, 4), weight)
            for (name, term), weight in zip(numbers.terms.items(), found, strict=False)
        },
        guards=dict(zip(GUARDS, found[len(terms) : len(terms) + len(GUARDS)], strict=True)),
        fitted_on=", ".join(sorted({each.run.family for each in rows})),
        sessions=len(rows),
        succeeded=sum(each.run.success for each in rows),
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        licence="numbers of this project's own; the sessions are not part of it",
    )


def _bounds(name: str) -> tuple[float | None, float | None]:
    if name in SET:
        return SET[name], SET[name]
    if name in GUARDS:
        return None, GUARD_AT_MOST
    return (0.0, None) if name in SPEAKS_FOR else (MOST.get(name), 0.0)


def table_of(rows: Sequence[Measured], without: frozenset[str] = frozenset()) -> SuccessTable:
    """Return the table fitted to these sessions, of both kinds."""
    kinds = {}
    for kind in get_args(TableKind):
        unseen = frozenset(["last_check_failed", "last_check_passed", "corrections"])
        skipped = without | (unseen if kind == "service" else frozenset())
        kinds[kind] = fitted(rows, kind, [name for name in VALUES if name not in skipped])
    table = SuccessTable(**kinds)
    for kind in get_args(TableKind):
        orders = [
            estimate(each.facts, table).order
            for each in rows
            if each.facts.kind == each.run.kind == kind
        ]
        known = np.array([order for order in orders if order is not None])
        deciles = tuple(
            round(float(one), 3) for one in np.quantile(known, np.linspace(0.1, 0.9, 9))
        )
        kinds[kind] = msgspec.structs.replace(kinds[kind], deciles=deciles)
    return SuccessTable(**kinds)


def toml(table: SuccessTable) -> str:
    """Return a table as the file that is shipped."""
    lines = ["# Made by tools/fit_table.py; docs/scores.md says how."]
    for kind in get_args(TableKind):
        numbers = getattr(table, kind)
        lines += ["", f"[{kind}]"]
        for name in ("fitted_on", "licence", "date"):
            lines.append(f'{name} = "{getattr(numbers, name)}"')
        lines += [f"sessions = {numbers.sessions}", f"succeeded = {numbers.succeeded}"]
        lines += [f"deciles = {list(numbers.deciles)}", "", f"[{kind}.terms]"]
        for name, term in numbers.terms.items():
            said = f"mean = {term.mean}, scale = {term.scale}, weight = {term.weight}"
            lines.append(f"{name} = {{ {said} }}")
        lines += ["", f"[{kind}.guards]"]
        lines += [f"{name} = {weight}" for name, weight in numbers.guards.items()]
    return "\n".join([*lines, ""])


def main() -> None:
    """Fit, and write the table when asked to."""
    folders = [Path(name) for name in sys.argv[1:] if not name.startswith("--")]
    text = toml(table_of(list(read(folders))))
    if "--write" in sys.argv:
        Path(success.__file__).with_name("table.toml").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
