"""Verdicts, kinds of work and events in a few words, as lists and filters show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from debrief.scoring.verdict import (
    COMPLETE,
    NOT_REVIEWED,
    VERDICT_LABELS,
    SessionVerdict,
)
from debrief.signals.schema import CheckKind, CheckSignal, EventKind, WorkKind

WORK_LABELS: Final[Mapping[WorkKind, str]] = {
    "code": "code",
    "text": "text",
    "settings": "settings",
    "operations": "operations",
    "answer": "an answer",
    "nothing": "hardly anything",
}
EVENT_LABELS: Final[Mapping[EventKind, str]] = {
    "foreign_files": "somebody else’s files changed",
    "destructive": "destructive command",
    "exposure": "secret exposed",
    "correction": "corrected",
    "interruption": "interrupted",
    "refusal": "refused",
    "failed_check": "last check failed",
    "refused_change": "only change refused",
    "open_request": "last request open",
    "stopped": "stopped by a limit",
}
_CHECKED: Final[Mapping[CheckKind, str]] = {
    "test": "test",
    "lint": "lint",
    "types": "type check",
    "build": "build",
    "run": "run",
}
_BECAME: Final[Mapping[str, tuple[str, str]]] = {
    "pull-request": ("merged", "closed, not merged"),
    "revert": ("not reverted", "reverted"),
    "ci": ("CI passed", "CI failed"),
    "kept": ("lines committed", "lines not committed"),
    "survival": ("lines still in the code", "lines gone from the code"),
    "execution": ("checks passed when run again", "checks failed when run again"),
    "benchmark": ("benchmark tests passed", "benchmark tests failed"),
}
"""What became of the work, by the outcome's source: where it is complete, and where it is not."""


class ShownVerdict(NamedTuple):
    """A verdict in words: what is said, and who says so; empty where the first names it."""

    said: str
    by: str

    def __str__(self) -> str:
        """Return both: ``complete, you said so``."""
        return f"{self.said}, {self.by}" if self.by else self.said


def verdict_in_words(name: str, basis: str, source: str, reader: str = "") -> ShownVerdict:
    """Return a verdict and who gave it, for a page.

    Args:
        name: the verdict; empty where nobody gave one.
        basis: who gave it, by kind.
        source: who gave it: a person, an outcome's source, a reviewer.
        reader: the person who looks at the page.

    >>> str(verdict_in_words("complete_verified", "person", "ada", "ada"))
    'complete, you said so'
    >>> str(verdict_in_words("complete_verified", "outcome", "pull-request"))
    'merged'
    """
    verdict = next((known for known in VERDICT_LABELS if known == name), None)
    if verdict is None:
        return ShownVerdict(NOT_REVIEWED, "")
    label = VERDICT_LABELS[verdict]
    if basis == "review":
        return ShownVerdict(label, f"reviewed by {source}")
    if basis == "outcome" and source in _BECAME:
        return ShownVerdict(_BECAME[source][verdict not in COMPLETE], "")
    if basis == "outcome":
        return ShownVerdict(label, source)
    who = "you" if reader and source == reader else source or "a person"
    return ShownVerdict("complete" if verdict in COMPLETE else label, f"{who} said so")


def verdict_shown(verdict: SessionVerdict, reader: str = "") -> ShownVerdict:
    """Return a verdict and who gave it, for a page."""
    return verdict_in_words(verdict.verdict, verdict.basis, verdict.source, reader)


def objection_shown(verdict: SessionVerdict, last_check: CheckSignal | None) -> str:
    """Return what a signal says against a review: ``says complete; the last test failed``.

    Args:
        verdict: of the review.
        last_check: the check that counts; None where it is not known.

    Returns:
        the words; empty where its word stands.
    """
    if verdict.objection == "failed_check":
        kind = _CHECKED[last_check.kind] if last_check is not None else "check"
        return f"says complete; the last {kind} failed"
    if verdict.objection == "no_proof":
        return "says verified; no check that passed shows it"
    return ""
