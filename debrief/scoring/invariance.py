"""Invariance: what cutting a session into chunks changes of its scores, which should be nothing."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from debrief.markdown import table
from debrief.scoring.dimensions import BY_NAME, OVERALL
from debrief.scoring.model import ChunkScorer
from debrief.scoring.scorer import ChunkParameters, score_session
from debrief.sessions.model import Session

_UNCUT = ChunkParameters(target=sys.maxsize)


class Movement(Struct, frozen=True, kw_only=True):
    """One score of one session, uncut and cut."""

    session_id: str
    budget: int
    """Tokens that a chunk might have."""
    chunks: int
    name: str
    """A dimension, or ``overall_quality``."""
    uncut: float | None
    cut: float | None

    @property
    def flipped(self) -> bool:
        """Whether cutting made another category of it."""
        categorical = self.name != OVERALL and BY_NAME[self.name].kind == "categorical"
        return categorical and self.cut != self.uncut

    @property
    def moved(self) -> float | None:
        """Return what cutting added; None when one of the two has no value."""
        return None if self.cut is None or self.uncut is None else self.cut - self.uncut


def chunk_flips(
    sessions: Iterable[Session], scorer: ChunkScorer, budgets: Sequence[int]
) -> Iterator[Movement]:
    """Yield the movements of each session at each budget that cuts it.

    Sessions that the scorer fails on are left out.

    Args:
        sessions: each is scored uncut, and once for each budget: a model is asked as often.
        scorer: the same for all.
        budgets: tokens that a chunk may have.
    """
    for session in sessions:
        whole = None
        for budget in budgets:
            parameters = ChunkParameters(target=budget)
            if len(parameters.chunks_of(session)) < 2:
                continue
            whole = whole or score_session(session, scorer, _UNCUT)
            row = score_session(session, scorer, parameters)
            if "failed" in (whole.status, row.status):
                continue
            pairs = [
                (one.dimension, one.value, two.value)
                for one, two in zip(whole.verdicts, row.verdicts, strict=True)
            ]
            overall = (OVERALL, whole.overall_quality, row.overall_quality)
            for name, uncut, cut in [*pairs, overall]:
                yield Movement(
                    session_id=row.session_id,
                    budget=budget,
                    chunks=len(row.chunks),
                    name=name,
                    uncut=uncut,
                    cut=cut,
                )


def flips_table(movements: Iterable[Movement]) -> str:
    """Return the movements as a Markdown table, one line a budget.

    It has in how many of the sessions cut a category flipped, any or a certain one, and how far
    the overall quality moved: up or down on average, and in either direction.
    """
    categorical = [name for name, each in BY_NAME.items() if each.kind == "categorical"]
    by_budget: dict[int, list[Movement]] = defaultdict(list)
    for movement in movements:
        by_budget[movement.budget].append(movement)
    rows = []
    for budget, found in sorted(by_budget.items()):
        cut = len({one.session_id for one in found})
        flipped = [
            {one.session_id for one in found if one.flipped and one.name in names}
            for names in (categorical, *([name] for name in categorical))
        ]
        moved = [one.moved for one in found if one.name == OVERALL and one.moved is not None]
        mean, distance = (sum(each) / max(1, len(moved)) for each in (moved, [*map(abs, moved)]))
        shares = (f"{len(each) / cut:.1%}" for each in flipped)
        rows.append((f"{budget:,}", str(cut), *shares, f"{mean:+.3f}", f"{distance:.3f}"))
    head = ("tokens", "sessions cut", "a category flipped", *categorical)
    return table((*head, OVERALL, "distance"), rows)
