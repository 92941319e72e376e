"""Which side of the train/eval split a session is on.

Three rules. By a hash of repository and week, which is how training sets are stored. By a hash of
the repository alone: whole repositories are held out. By a date: what began on it or later is held
out, as a team meets it that trains today and works on tomorrow.

Under each, a family of related sessions is on one side. By hash it is that of its oldest member, so
a session that joins later moves none; only where it connects two families, the younger one takes
the side of the older one. By date a family is held out as soon as one member is, so that nothing
that began later is trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Literal

from msgspec import Struct

from debrief.keys import week_of
from debrief.training.kinship import OriginSession
from debrief.training.model import Split
from debrief.training.options import EVAL_SHARE

By = Literal["week", "repository", "time"]


class SplitRule(Struct, frozen=True):
    """How sides are told."""

    by: By = "week"
    first_day: date | None = None
    """Of ``time``: the first day (UTC) that is held out."""

    def side_of(self, repository: str, started: datetime, eval_share: float = EVAL_SHARE) -> Split:
        """Return which side a session is on.

        Args:
            repository: its name; sessions without one share the empty name.
            started: time of its first record.
            eval_share: the share of all buckets, which are repositories or their weeks, that is
                held out, 0 to 1; of no meaning for ``time``. A greater one moves buckets from
                ``train`` to ``eval`` and none the other way. The week is that of the calendar
                whatever the tables are partitioned by: another width would move the sides of all
                earlier sessions.
        """
        if self.first_day is not None:
            return "eval" if started.astimezone(UTC).date() >= self.first_day else "train"
        bucket = repository if self.by == "repository" else f"{week_of(started)} {repository}"
        draw = hashlib.sha256(bucket.encode("utf-8", "surrogatepass")).digest()[:8]
        return "eval" if int.from_bytes(draw) < eval_share * 2**64 else "train"

    def side_of_family(
        self, oldest: OriginSession, latest: datetime, eval_share: float = EVAL_SHARE
    ) -> Split:
        """Return which side a family is on.

        Args:
            oldest: its oldest session.
            latest: when its latest session began.
            eval_share: as ``side_of`` takes it.
        """
        started = latest if self.by == "time" else oldest.started
        return self.side_of(oldest.repository, started, eval_share)

    def runs_over(self, started: datetime, ended: datetime) -> bool:
        """Return whether a session began on the side of training and ended on the other."""
        return self.by == "time" and self.side_of("", started) != self.side_of("", ended)


BY_WEEK = SplitRule()


def parse_split(text: str) -> SplitRule:
    """Return the rule that ``week``, ``repository`` or ``time:2026-01-31`` names.

    Raises:
        ValueError: it names none.
    """
    by, colon, day = text.partition(":")
    if by == "time" and colon:
        return SplitRule("time", date.fromisoformat(day))
    if by == "repository" and not colon:
        return SplitRule("repository")
    if by == "week" and not colon:
        return BY_WEEK
    raise ValueError("is none of week, repository and time:DATE")


class PlacedLine(Struct, frozen=True):
    """A line, by what says how the sides lie in time."""

    repository: str
    split: Split
    started: datetime
    ended: datetime


def later_than_eval(lines: Iterable[PlacedLine]) -> dict[str, bool]:
    """Return of each repository with lines on both sides whether one to train on ended after one
    that is held out began: then the future of what is asked may be in what is learned."""
    trained: dict[str, datetime] = {}
    held_out: dict[str, datetime] = {}
    for line in lines:
        name = line.repository
        if line.split == "train":
            trained[name] = max(trained.get(name, line.ended), line.ended)
        else:
            held_out[name] = min(held_out.get(name, line.started), line.started)
    return {name: trained[name] > held_out[name] for name in sorted(trained.keys() & held_out)}
