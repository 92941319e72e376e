"""Comparing two sets of rubrics: what came, what went, what weighs more, what was reworded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from debrief.rubrics.judging import rubric_digest
from debrief.rubrics.model import Rubric
from debrief.scoring.model import SCORE_NAMES, ScoreName

What = Literal["came", "went", "changed", "same"]


class RubricChange(Struct, frozen=True, kw_only=True):
    """What became of one rubric from one set to another, by its key."""

    score_name: ScoreName
    key: str
    name: str
    what: What
    weight_before: float | None = None
    weight_after: float | None = None
    place_before: str = ""
    place_after: str = ""
    reworded: bool = False
    """A judge reads another text: its scores before and after are not one series."""
    held_out_before: float | None = None
    held_out_after: float | None = None


def compare_rubrics(before: Iterable[Rubric], after: Iterable[Rubric]) -> list[RubricChange]:
    """Return a change for each rubric of either set, score name by score name.

    In the order of the later set, then those that went.
    """
    old, new = ({(each.score_name, each.key): each for each in rs} for rs in (before, after))
    keys = [*new, *(key for key in old if key not in new)]
    keys.sort(key=lambda key: SCORE_NAMES.index(key[0]))
    return [_change(key, old.get(key), new.get(key)) for key in keys]


def _change(key: tuple[ScoreName, str], old: Rubric | None, new: Rubric | None) -> RubricChange:
    reworded = old is not None and new is not None and rubric_digest(old) != rubric_digest(new)
    what: What = "same"
    if old is None or new is None:
        what = "came" if old is None else "went"
    elif reworded or old.weight != new.weight:
        what = "changed"
    latest = new or old
    return RubricChange(
        score_name=key[0],
        key=key[1],
        name=latest.name if latest else "",
        what=what,
        weight_before=old.weight if old else None,
        weight_after=new.weight if new else None,
        place_before=old.id if old else "",
        place_after=new.id if new else "",
        reworded=reworded,
        held_out_before=old.held_out_effect if old else None,
        held_out_after=new.held_out_effect if new else None,
    )
