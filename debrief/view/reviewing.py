"""Reviews on pages: what a review would take, and what each reviewer's verdicts are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from debrief.certification import Certificate, certificates_in
from debrief.errors import LakeError
from debrief.lake import Lake
from debrief.outcomes.store import LABELS
from debrief.outcomes.verdicts import SCORES
from debrief.review_offer import ReviewOffer, review_offer
from debrief.settings import Settings
from debrief.signals.schema import TABLE as SIGNALS

Known = TypeVar("Known")


def certificates_of(lake: Lake, kept: dict[str, Any]) -> Mapping[str, Certificate]:
    """Return the certificate of each reviewer, by name.

    Args:
        lake: with reviews and labels.
        kept: what was found last time, which is used while these do not change.
    """

    def find() -> Mapping[str, Certificate]:
        try:
            return certificates_in(lake)
        except LakeError:  # the index names the damaged file on every page
            return {}

    return _once(lake, kept, "certificates", (SCORES, LABELS), find)


def offered_review(lake: Lake, settings: Settings, kept: dict[str, Any]) -> ReviewOffer | None:
    """Return what can be offered to have sessions reviewed; None where nothing can.

    Args:
        lake: with signals, reviews and labels.
        settings: with the model.
        kept: what was found last time, which is used while these do not change.
    """

    def find() -> ReviewOffer | None:
        try:
            return review_offer(lake, settings)
        except LakeError:
            return None

    return _once(lake, kept, "offer", (SIGNALS, SCORES, LABELS), find)


def _once(
    lake: Lake, kept: dict[str, Any], name: str, tables: tuple[str, ...], find: Callable[[], Known]
) -> Known:
    now = [lake.versions(table) for table in tables]
    if kept.get(name, (None, None))[0] != now:
        kept[name] = now, find()
    found: Known = kept[name][1]
    return found
