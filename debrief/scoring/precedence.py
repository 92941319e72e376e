"""Choose the row that counts for a session where several models reviewed it.

The one that is asked for comes first, else the one of the last run: its rows come first in the
table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol, TypeVar


class ScoredSession(Protocol):
    """The columns of a row of scores that say who reviewed it."""

    @property
    def session_id(self) -> str:
        """Whose row it is."""

    @property
    def status(self) -> str:
        """``ok`` or ``failed``."""

    @property
    def model(self) -> str:
        """The reviewer's name."""


Row = TypeVar("Row", bound=ScoredSession)
Judged = TypeVar("Judged", bound="JudgedSession")


def in_order(rows: Iterable[Row], models: Collection[str] = ()) -> list[Row]:
    """Return the rows of one session with the one that counts first.

    Rows that failed come last, so that a session has scores while anybody could give them.

    Args:
        rows: of one session, in the order of the table.
        models: whose rows are asked for.
    """
    return sorted(rows, key=lambda row: (row.status != "ok", row.model not in models))


class JudgedSession(ScoredSession, Protocol):
    """The columns of a judgement that say who judged."""

    @property
    def judge(self) -> str:
        """Whose it is."""


def effective_rows(rows: Iterable[Row], models: Collection[str] = ()) -> Iterator[Row]:
    """Yield the row that counts for each session, in the order in which sessions come.

    Args:
        rows: of any sessions, each table in its order.
        models: whose rows are asked for.
    """
    by_session: dict[str, list[Row]] = {}
    for row in rows:
        by_session.setdefault(row.session_id, []).append(row)
    return (in_order(own, models)[0] for own in by_session.values())


def effective_judgements(rows: Iterable[Judged]) -> Iterator[Judged]:
    """Yield the row that counts for each judge of each session.

    Args:
        rows: of any sessions and judges, each table in its order.
    """
    by_judge: dict[tuple[str, str], list[Judged]] = {}
    for row in rows:
        by_judge.setdefault((row.session_id, row.judge), []).append(row)
    return (in_order(own)[0] for own in by_judge.values())
