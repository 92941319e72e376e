"""Read the labels that count for a certificate: those that were given without a score in sight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from debrief.outcomes.store import SUCCESS, UNDECIDED, Label, success_of
from debrief.scoring.verdict import VERDICT_LABELS, VERDICT_NAMES, WORST_FIRST, VerdictName


class BlindLabel(Struct, frozen=True, kw_only=True):
    """What people say of one session."""

    is_complete: bool
    verdict: VerdictName | None = None
    """As it was named; None where a person said no more than complete or incomplete."""

    @property
    def shown(self) -> str:
        """Return it in a few words."""
        if self.verdict is not None:
            return VERDICT_LABELS[self.verdict]
        return "complete" if self.is_complete else "incomplete"

    @property
    def place(self) -> tuple[bool, float]:
        """Return what orders labels from the worst to the best."""
        named = self.verdict and WORST_FIRST.index(self.verdict)
        return self.is_complete, -1 if named is None else named


def blind_labels(labels: Iterable[Label]) -> dict[str, BlindLabel]:
    """Return what people said blind of each session, by its id.

    Of one person's several the last counts, and of several people's the middle one, the worse of
    two. Left out are sessions of which people could not say.

    Args:
        labels: of people, each person's in the order in which they were given. A label names its
            session by its id, as one that stands for a plan says nothing of one session.
    """
    said: dict[str, dict[str, Label]] = defaultdict(dict)
    for label in labels:
        is_verdict = label.name.casefold() == SUCCESS and not label.loose
        if label.blind and is_verdict:
            said[label.session_id][label.rater or label.origin] = label
    found: dict[str, BlindLabel] = {}
    for session_id, own in said.items():
        read = [one for one in map(_read, own.values()) if one is not None]
        if read:
            found[session_id] = sorted(read, key=lambda one: one.place)[(len(read) - 1) // 2]
    return found


def _read(label: Label) -> BlindLabel | None:
    success = success_of(label)
    if success is None:
        return None
    said = label.value.strip().casefold()
    verdict = next((name for name in VERDICT_NAMES if name == said), None)
    return BlindLabel(is_complete=success, verdict=verdict)


def labelled_sessions(labels: Iterable[Label]) -> set[str]:
    """Return the sessions on which somebody gave a verdict, or looked and could not."""
    return {
        label.session_id
        for label in labels
        if success_of(label) is not None
        or (label.name.casefold() == SUCCESS and label.value.strip().casefold() in UNDECIDED)
    }
