"""Fits the weights of the order that the program ships.

``python -m tools.fit_table FOLDER... [--write]``: folders with a ``labels.csv``, as ``debrief
validity`` takes them. Facts are ranks in a family; every family has a base rate of its own, which
is fitted and thrown away, and counts by the root of its size. A weight whose sign is another one
when any family is left out becomes 0. Without ``--write`` the table is only printed.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from debrief.offline import order
from debrief.offline.facts import facts_of
from debrief.offline.order import VALUES, OrderedSession, TableKind, ranks_of, values_of
from debrief.validity.references import corpora_in

HELD = 0.02
"""How firmly weights are held to 0, by the importance of all sessions together."""


class LabelledRun(NamedTuple):
    """A session of a benchmark."""

    family: str
    kind: TableKind
    ranks: list[float]
    """Of each fact, from -1 to 1."""
    done: bool


def read(folders: Sequence[Path]) -> Iterator[LabelledRun]:
    """Yield all labelled sessions of families that are large enough to be ranked in."""
    for folder in folders:
        for corpus in corpora_in(folder)[0]:
            sessions = []
            for session in corpus.sessions(lambda each: each):
                facts = facts_of(session)
                sessions.append(
                    OrderedSession(
                        session_id=session.id,
                        started=session.started,
                        tool=session.tool,
                        kind=facts.kind,
                        facts=values_of(facts),
                    )
                )
            kinds = {each.session_id: each.kind for each in sessions}
            for id_, (ranks, _) in ranks_of(sessions).items():
                known = corpus.references[id_]
                kind: TableKind = "service" if kinds[id_] == "service" else "coding"
                row = [2 * ranks[name] - 1 for name in VALUES]
                yield LabelledRun(known.family, kind, row, known.done is True)


def weights_of(rows: Sequence[LabelledRun]) -> NDArray[Any]:
    """Return the weights of the facts that explain these sessions best."""
    families, place = np.unique([row.family for row in rows], return_inverse=True)
    x = np.hstack([np.array([row.ranks for row in rows]), np.eye(len(families))[place]])
    y = np.array([row.done for row in rows], dtype=float)
    importance = (1 / np.sqrt(np.bincount(place)))[place]
    held = np.array([HELD] * len(VALUES) + [1e-4] * len(families)) * importance.sum()

    def loss(weights: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        odds = x @ weights
        value = importance @ (np.logaddexp(0, odds) - y * odds) + 0.5 * held @ weights**2
        slope = x.T @ (importance * (1 / (1 + np.exp(-odds)) - y)) + held * weights
        return float(value), slope

    found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    return np.asarray(found[: len(VALUES)])


def stable(rows: Sequence[LabelledRun]) -> dict[str, float]:
    """Return the weights whose sign holds whatever family is left out."""
    whole, families = weights_of(rows), sorted({row.family for row in rows})
    signs = [
        np.sign(weights_of([row for row in rows if row.family != family]))
        for family in families
        if len(families) > 1
    ]
    kept = np.array([np.sign(whole), *signs])
    holds = (kept == kept[0]).all(axis=0)
    named = zip(VALUES, whole, holds, strict=True)
    return {name: round(float(weight), 3) for name, weight, same in named if same and weight}


def toml(rows: Sequence[LabelledRun]) -> str:
    """Return the table as the file that is shipped; a kind without sessions keeps its weights."""
    lines = ["# Made by tools/fit_table.py; docs/scores.md says how."]
    for kind in get_args(TableKind):
        own = [row for row in rows if row.kind == kind]
        shipped = getattr(order.shipped_table(), kind)
        weights = stable(own) if own else shipped.weights
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
