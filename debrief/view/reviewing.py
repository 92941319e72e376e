"""Reviews on pages: what a review would take, and what each reviewer's verdicts are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from debrief.certification import Certificate, certificates_in
from debrief.errors import LakeError
from debrief.lake import Lake
from debrief.review_offer import ReviewOffer, review_offer
from debrief.settings import Settings

Known = TypeVar("Known")


def certificates_of(lake: Lake, changes: int, kept: dict[str, Any]) -> Mapping[str, Certificate]:
    """Return the certificate of each reviewer, by name.

    Args:
        lake: with reviews and labels.
        changes: that the index has seen in the lake.
        kept: what was found last time, which is used while there is no further change.
    """

    def find() -> Mapping[str, Certificate]:
        try:
            return certificates_in(lake)
        except LakeError:  # the index names the damaged file on every page
            return {}

    return _once(changes, kept, "certificates", find)


def offered_review(
    lake: Lake, settings: Settings, changes: int, kept: dict[str, Any]
) -> ReviewOffer | None:
    """Return what can be offered to have sessions reviewed; None where nothing can.

    Args:
        lake: with signals, reviews and labels.
        settings: with the model.
        changes: that the index has seen in the lake.
        kept: what was found last time, which is used while there is no further change.
    """

    def find() -> ReviewOffer | None:
        try:
            return review_offer(lake, settings)
        except LakeError:
            return None

    return _once(changes, kept, "offer", find)


def _once(changes: int, kept: dict[str, Any], name: str, find: Callable[[], Known]) -> Known:
    if kept.get(name, (None, None))[0] != changes:
        kept[name] = changes, find()
    found: Known = kept[name][1]
    return found
