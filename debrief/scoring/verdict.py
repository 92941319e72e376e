"""The verdict on a session: whether what was asked for was done, and who says so.

A person, an outcome or an LLM review gives a verdict. Rules give none: what they see is a signal
(``debrief.signals``), and a signal can only stop a review that says more than was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

from debrief.sessions.model import Evidence

VerdictName = Literal[
    "complete_verified", "complete_unverified", "partial", "failed", "undetermined"
]
"""``complete_verified``: done, and something that could have failed shows it.
``complete_unverified``: done as far as one sees, and nothing shows it. ``partial``: some of it is
open or fails. ``failed``: it was not done, or thrown away. ``undetermined``: nothing decides."""
VERDICT_NAMES: Final[tuple[VerdictName, ...]] = get_args(VerdictName)

Basis = Literal["person", "outcome", "review"]
"""Who gave a verdict. ``person``: a label. ``outcome``: what became of the work, such as a merge.
``review``: an LLM that read the session."""

Objection = Literal["failed_check", "no_proof"]
"""What a signal says against a review. ``failed_check``: the last check of a target failed.
``no_proof``: nothing that could have failed shows that it works."""

COMPLETE: Final[frozenset[VerdictName]] = frozenset(["complete_verified", "complete_unverified"])
"""The good side wherever good sessions are compared with bad ones."""
INCOMPLETE: Final[frozenset[VerdictName]] = frozenset(["partial", "failed"])
"""The bad side."""

VERDICT_LABELS: Final[Mapping[VerdictName, str]] = {
    "complete_verified": "complete, verified",
    "complete_unverified": "complete, not verified",
    "partial": "partial",
    "failed": "failed",
    "undetermined": "undetermined",
}
"""Each verdict in a few words."""
NOT_REVIEWED: Final = "not reviewed"
"""What is shown of a session on which nobody gave a verdict."""
BASIS_LABELS: Final[Mapping[Basis, str]] = {
    "person": "a person's label",
    "outcome": "what became of the work",
    "review": "an LLM review",
}
"""Each basis in a few words, where sessions are counted by it."""
WORST_FIRST: Final[tuple[VerdictName, ...]] = (
    *("failed", "partial", "complete_unverified", "complete_verified"),
    "undetermined",
)
"""Verdicts in the order of a list; what is undetermined comes last."""


class SessionVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on one session, and who gave it."""

    verdict: VerdictName
    basis: Basis
    source: str
    """Who says so: a person, an outcome's source such as ``pull-request``, or a model's name."""
    evidence: tuple[Evidence, ...] = ()
    """Where the session shows it."""
    stated: VerdictName | None = None
    """What the review said, where a signal stopped it; None where its word stands."""
    objection: Objection | None = None
    """The signal that stopped it; None where its word stands."""

    @property
    def label(self) -> str:
        """Return the verdict in a few words."""
        return VERDICT_LABELS[self.verdict]

    @property
    def is_known(self) -> bool:
        """Return whether something decided."""
        return self.verdict != "undetermined"

    @property
    def is_contradicted(self) -> bool:
        """Return whether a failed check speaks against a review that says "complete"."""
        return self.objection == "failed_check"


OUTCOME_LABELS: Final[Mapping[str, str]] = {
    "execution": "checks rerun",
    "benchmark": "benchmark tests",
    "pull-request": "pull request",
    "revert": "revert",
    "ci": "CI",
    "kept": "lines in a later commit",
    "survival": "lines still in the code",
}
"""Sources of outcomes, in words."""


def basis_text(verdict: SessionVerdict) -> str:
    """Return who gave a verdict, as one sentence without its evidence."""
    if verdict.basis == "person":
        return f"{verdict.source} said so." if verdict.source else "A person said so."
    if verdict.basis == "outcome":
        return f"Outcome: {OUTCOME_LABELS.get(verdict.source, verdict.source)}."
    said = f"Reviewed by {verdict.source}."
    if verdict.objection == "failed_check" and verdict.stated is not None:
        return f"{said} It says {VERDICT_LABELS[verdict.stated]}; the last check failed."
    if verdict.objection == "no_proof":
        return (
            f"{said} It says {VERDICT_LABELS['complete_verified']}; no check that passed shows it."
        )
    return said


def basis_with_turns(verdict: SessionVerdict) -> str:
    """Return who gave a verdict, with the turns that show it and the words of the first."""
    turns = list(dict.fromkeys(place.turn for place in verdict.evidence))
    if not turns:
        return basis_text(verdict)
    more = f" and {len(turns) - 3} more" if len(turns) > 3 else ""
    where = f"turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, turns[:3]))}{more}"
    quote = f": “{verdict.evidence[0].quote}”" if verdict.evidence[0].quote else ""
    return f"{basis_text(verdict).removesuffix('.')} ({where}{quote})."
