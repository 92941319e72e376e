"""Certify the reviewers of a lake, and draw the sessions to label next.

Nothing is stored: what a certificate says follows from labels and reviews at once. Of both only
what changed is read again, as every page asks.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from msgspec import Struct

from debrief.certification.certificate import Certificate, certify
from debrief.certification.labels import blind_labels, labelled_sessions
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.outcomes.store import PEOPLE, all_labels
from debrief.outcomes.verdicts import SCORES
from debrief.scoring.verdict import SessionVerdict, VerdictName

Reviews = dict[str, dict[str, VerdictName]]
"""Verdicts by reviewer and session id."""


class _Reviewed(Struct, frozen=True, kw_only=True):
    session_id: str
    status: str
    model: str = ""
    verdict: SessionVerdict | None = None


def certificates_in(lake: Lake) -> dict[str, Certificate]:
    """Return the certificate of each reviewer of a lake, by its name.

    A reviewer on whom nobody gave a label has one, too: it says how many labels would tell.

    Args:
        lake: with labels and reviews.
    """
    said = list(all_labels(lake, PEOPLE))
    labels, labelled = blind_labels(said), labelled_sessions(said)
    return {
        name: certify(name, labels, own, labelled)
        for name, own in sorted(_reviews_in(lake).items())
    }


def waiting_sessions(lake: Lake) -> list[str]:
    """Return the sessions to label next: those that have a review, and no label by a person.

    They come in an order that chance decides once for a lake, so that the labelled ones are a
    random part of all, wherever labelling ends.

    Args:
        lake: with labels and reviews.
    """
    labelled = labelled_sessions(all_labels(lake, PEOPLE))
    reviewed = {session_id for own in _reviews_in(lake).values() for session_id in own}
    return sorted(reviewed - labelled, key=lambda session_id: digest_of(lake.url, session_id))


def _reviews_in(lake: Lake) -> Reviews:
    found: Reviews = defaultdict(dict)
    for week, version in lake.versions(SCORES).items():
        for model, session_id, verdict in _reviews_of(lake.url, week, version):
            found[model][session_id] = verdict
    return found


@lru_cache(maxsize=1_024)
def _reviews_of(url: str, week: str, version: str) -> tuple[tuple[str, str, VerdictName], ...]:
    """Return the reviews of a week, read once while its file, of this version, stays."""
    rows = Lake(url).read(SCORES, week, _Reviewed)
    return tuple(
        (row.model, row.session_id, row.verdict.verdict)
        for row in rows
        if row.status == "ok" and row.verdict is not None
    )
