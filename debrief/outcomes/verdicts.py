"""Find the verdict on each session: a person's, else an outcome's, else an LLM review's.

There is none where nobody has spoken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from debrief.lake import Lake
from debrief.outcomes.store import PEOPLE, Success, success_labels
from debrief.scoring.precedence import effective_rows
from debrief.scoring.verdict import VERDICT_NAMES, SessionVerdict, VerdictName

SCORES = "session_scores"


class _Reviewed(Struct, frozen=True, kw_only=True):
    session_id: str
    status: str
    model: str = ""
    verdict: SessionVerdict | None = None


def verdicts_in(
    lake: Lake, weeks: Iterable[str] | None = None, models: Collection[str] = ()
) -> dict[str, SessionVerdict]:
    """Return the verdicts on sessions, by session id; a session without one is left out.

    Args:
        lake: with labels and reviews.
        weeks: of the reviews that are read; all by default. Labels of any session count.
        models: reviewers who come before others.
    """
    reviewed = lake.rows(SCORES, _Reviewed, None if weeks is None else list(weeks))
    found = {
        row.session_id: row.verdict
        for row in effective_rows(reviewed, models)
        if row.status == "ok" and row.verdict is not None
    }
    labelled = success_labels(lake)
    return found | {id_: labelled_verdict(success) for id_, success in labelled.items()}


def labelled_verdict(success: Success) -> SessionVerdict:
    """Return the verdict that a person's label or an outcome gives."""
    is_person = success.source in PEOPLE
    return SessionVerdict(
        verdict=_verdict_of(success),
        basis="person" if is_person else "outcome",
        source=success.label.rater if is_person else success.source,
    )


def _verdict_of(success: Success) -> VerdictName:
    said = success.label.value.strip().casefold()
    named = next((name for name in VERDICT_NAMES if name == said), None)
    return named or ("complete_verified" if success.success else "failed")
