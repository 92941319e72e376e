"""Fits the weights of the order that the program ships.

``python -m tools.fit_table FOLDER... [--write]``: folders with a ``labels.csv``, as ``debrief
validity`` takes them. Facts are ranks in a family, families count alike, and every family has a
base rate of its own, which is fitted and thrown away. A fact stays whose sign is the expected one
whichever family is left out. Without ``--write`` the table is only printed.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from debrief.signals.extract import extract_signals
from debrief.scoring import order
from debrief.scoring.order import VALUES, OrderedSession, TableKind, ranks_of, values_of
from debrief.validity.references import corpora_in

HELD = 0.02
"""How firmly weights are held to 0, by the importance of all sessions together."""
FEWEST = 5
"""Sessions of each outcome that a family needs to take part."""
EXPECTED: Mapping[TableKind, Mapping[str, int]] = {
    "coding": {
        "errors": -1,
        "streak": -1,
        "repeats": -1,
        "timeouts": -1,
        "last_check_failed": -1,
        "last_check_passed": 1,
        "checks_passed": 1,
        "seen_failing": 1,
        "broke_off": -1,
    },
    "service": {"errors": -1, "streak": -1, "repeats": -1, "broke_off": -1, "asked": -1},
}
"""Facts that are fitted, and the sign that makes sense. Benchmarks ask for changes and give prompts
of their own making: what they say of ``unchanged``, ``asked`` and ``closing`` in coding sessions
holds for no person's questions and reviews."""
SET: Mapping[TableKind, dict[str, float]] = {
    "coding": {"corrections": -0.2, "interruptions": -0.2},
    "service": {},
}
"""Weights that are set: in no labelled coding session a person corrects or interrupts."""


class LabelledRun(NamedTuple):
    """A session of a benchmark."""

    family: str
    kind: TableKind
    ranks: dict[str, float]
    """Of each fact, from -1 to 1."""
    done: bool


def read(folders: Sequence[Path]) -> Iterator[LabelledRun]:
    """Yield the labelled sessions of families that are large enough to be ranked in, those of the
    family's usual kind alone."""
    for folder in folders:
        for corpus in corpora_in(folder)[0]:
            sessions = []
            for session in corpus.sessions(lambda session: session):
                facts = extract_signals(session)
                sessions.append(
                    OrderedSession(
                        session_id=session.id,
                        started=session.started,
                        tool=session.tool,
                        kind=facts.kind,
                        facts=values_of(facts),
                    )
                )
            kinds = {session.session_id: session.kind for session in sessions}
            usual = Counter(kinds.values()).most_common(1)
            for id_, (ranks, _) in ranks_of(sessions).items():
                if kinds[id_] != usual[0][0]:
                    continue
                known = corpus.references[id_]
                kind: TableKind = "service" if kinds[id_] == "service" else "coding"
                row = {name: 2 * ranks[name] - 1 for name in VALUES}
                yield LabelledRun(known.family, kind, row, known.done is True)


def weights_of(rows: Sequence[LabelledRun], names: Sequence[str]) -> NDArray[Any]:
    """Return the weights of facts that explain these sessions best."""
    families, place = np.unique([row.family for row in rows], return_inverse=True)
    own: NDArray[Any] = np.eye(len(families))[place]
    x = np.hstack([np.array([[row.ranks[name] for name in names] for row in rows]), own])
    y = np.array([row.done for row in rows], dtype=float)
    importance = (1 / np.bincount(place))[place]
    held = np.array([HELD] * len(names) + [1e-4] * len(families)) * importance.sum()

    def loss(weights: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        odds = x @ weights
        value = importance @ (np.logaddexp(0, odds) - y * odds) + 0.5 * held @ weights**2
        slope = x.T @ (importance * (1 / (1 + np.exp(-odds)) - y)) + held * weights
        return float(value), slope

    found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    return np.asarray(found[: len(names)])


def stable(rows: Sequence[LabelledRun], expected: Mapping[str, int]) -> dict[str, float]:
    """Return the weights whose sign is the expected one whatever family is left out."""
    families, names = sorted({row.family for row in rows}), list(expected)
    parts = [[row for row in rows if row.family != family] for family in families]
    fits = [weights_of(part, names) for part in (rows, *parts) if part]
    holds = (np.sign(fits) == list(expected.values())).all(axis=0)
    kept = [name for name, same in zip(names, holds, strict=True) if same]
    weights = weights_of(rows, kept) if kept else ()
    return {name: round(float(weight), 3) for name, weight in zip(kept, weights, strict=True)}


def _with_both_outcomes(rows: Sequence[LabelledRun], kind: TableKind) -> list[LabelledRun]:
    families: dict[str, list[LabelledRun]] = defaultdict(list)
    for row in rows:
        if row.kind == kind:
            families[row.family].append(row)
    return [
        row
        for own in families.values()
        if FEWEST <= sum(row.done for row in own) <= len(own) - FEWEST
        for row in own
    ]


def toml(rows: Sequence[LabelledRun]) -> str:
    """Return the table as the file that is shipped; a kind without sessions keeps its weights."""
    lines = ["# Made by tools/fit_table.py; docs/scores.md says how."]
    for kind in get_args(TableKind):
        own = _with_both_outcomes(rows, kind)
        shipped = getattr(order.shipped_table(), kind)
        weights = stable(own, EXPECTED[kind]) | SET[kind] if own else shipped.weights
        families = ", ".join(sorted({row.family for row in own}))
        date = dt.datetime.now(dt.UTC).date().isoformat() if own else shipped.date
        lines += ["", f"[{kind}]", f'fitted_on = "{families or shipped.fitted_on}"']
        lines += [f"sessions = {len(own) or shipped.sessions}"]
        lines += [f"done = {sum(row.done for row in own) or shipped.done}", f'date = "{date}"']
        lines += ["", f"[{kind}.weights]", *(f"{name} = {w}" for name, w in weights.items())]
    return "\n".join([*lines, ""])


def main() -> None:
    """Fit, and write the table when asked to."""
    folders = [Path(name) for name in sys.argv[1:] if not name.startswith("--")]
    text = toml(list(read(folders)))
    if "--write" in sys.argv:
        Path(order.__file__).with_name("order.toml").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
