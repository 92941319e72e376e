"""The verdict of a session: whether what was asked for was done, and on what basis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

from debrief.sessions.model import Evidence

VerdictName = Literal["complete_verified", "complete_unverified", "partial", "failed", "undetermined"]
"""``complete_verified``: done, and something that could have failed shows it. ``complete_unverified``:
changed as asked as far as one sees, and nothing checked it. ``partial``: some of it is open or
fails. ``failed``: it failed, or was thrown away. ``undetermined``: nothing decides."""
VERDICT_NAMES: Final[tuple[VerdictName, ...]] = get_args(VerdictName)

Basis = Literal[
    "outcome",
    "model",
    "check",
    "check_not_covering",
    "no_check",
    "open_end",
    "stopped",
    "no_change",
    "no_work",
    "many_requests",
]
"""What a verdict rests on.

``outcome``: what became of the work, or a person's label, by ``source``. ``model``: the model
``source`` read the session. All others are of the rules. ``check``: the last check that could have
failed because of the change. ``check_not_covering``: checks ran, and none after the last edit looks
at what was changed. ``no_check``: nothing was run after the last edit. ``open_end``: it breaks off.
``stopped``: the person or a limit stopped it. ``no_change``: nothing was changed, so there is
nothing to check (a question, a review). ``no_work``: hardly anything was done. ``many_requests``:
no check shows what became of each of them."""

DONE: Final[frozenset[VerdictName]] = frozenset(["complete_verified", "complete_unverified"])
SHORT_OF_DONE: Final[frozenset[VerdictName]] = frozenset(["partial", "failed"])
"""The bad side wherever good sessions are compared with bad ones; the good one is
``complete_verified``."""

SHOWN: Final[Mapping[VerdictName, str]] = {
    "complete_verified": "done, checked",
    "complete_unverified": "done, not checked",
    "partial": "partly done",
    "failed": "not done",
    "undetermined": "cannot tell",
}
"""Each verdict in a few words."""


class SessionVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on one session, with its basis."""

    verdict: VerdictName
    basis: Basis
    source: str = ""
    """Of an outcome: ``execution``, ``kept``, ``ci``, ``view`` …; of a reading the model's name;
    empty for other grounds."""
    check: str = ""
    """The command that checked the work; empty where the basis is no check."""
    evidence: tuple[Evidence, ...] = ()
    """Where the session shows it."""
    unanswered: bool = False
    """The last prompt, or a commit or push at the end, has no answer: what became of it is not
    known."""

    @property
    def shown(self) -> str:
        """Return the verdict in a few words."""
        return SHOWN[self.verdict]

    @property
    def is_known(self) -> bool:
        """Return whether something decided."""
        return self.verdict != "undetermined"


_BY_PERSON = "A person's label says so."
_OUTCOMES: Final[Mapping[str, str]] = {
    "execution": "Its checks were run before and after its change, and say so.",
    **dict.fromkeys(("person", "view", "csv", "langfuse"), _BY_PERSON),
    "benchmark": "The benchmark's tests say so.",
    "pull-request": "Its pull request was merged or closed.",
    "revert": "Its commit was reverted.",
    "ci": "CI says so.",
    "kept": "Its own lines are in a later commit.",
    "survival": "Its lines are still there.",
}


def basis_text(row: SessionVerdict) -> str:
    """Return what a verdict rests on, as one sentence without its evidence."""
    failed = row.verdict in SHORT_OF_DONE
    sentence = {
        "outcome": _OUTCOMES.get(row.source, f"Its outcome says so ({row.source})."),
        "model": f"{row.source} read the session and says so.",
        "check": f"The last check {'failed' if failed else 'passed'}: {row.check}.",
        "check_not_covering": "No check after the last edit looks at what was changed.",
        "no_check": "No check ran after the last edit.",
        "open_end": "It breaks off without a closing answer.",
        "stopped": "It was stopped before it ended.",
        "no_change": "Nothing was changed, so there is nothing to check.",
        "no_work": "Hardly anything was done.",
        "many_requests": "It holds many requests, and no check shows what became of them.",
    }[row.basis]
    more = " The last request has no answer." if row.unanswered else ""
    return sentence + more


BASIS_LABELS: Final[Mapping[Basis, str]] = {
    "outcome": "what became of the work",
    "model": "a model read it",
    "check": "the last check",
    "check_not_covering": "no check looks at what was changed",
    "no_check": "no check ran",
    "open_end": "it breaks off",
    "stopped": "it was stopped",
    "no_change": "nothing was changed",
    "no_work": "hardly anything was done",
    "many_requests": "many requests and no check",
}
"""Each basis in a few words, where sessions are counted by it."""
WORST_FIRST: Final[tuple[VerdictName, ...]] = (
    *("failed", "partial", "complete_unverified", "complete_verified"),
    "undetermined",
)
"""Verdicts in the order of a list; what cannot be told comes last."""


def basis_with_turns(row: SessionVerdict) -> str:
    """Return what a verdict rests on, with the turns that show it and the words of the first."""
    turns = list(dict.fromkeys(place.turn for place in row.evidence))
    if not turns:
        return basis_text(row)
    more = f" and {len(turns) - 3} more" if len(turns) > 3 else ""
    where = f"turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, turns[:3]))}{more}"
    quote = f": “{row.evidence[0].quote}”" if row.evidence[0].quote else ""
    return f"{basis_text(row).removesuffix('.')} ({where}{quote})."
