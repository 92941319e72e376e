"""Say what the next run drops of what models said."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from debrief.lake import Lake
from debrief.markdown import counted
from debrief.sessions.model import SessionHead

_OF_MODELS = ("session_scores", "judge_evaluations")
"""Tables with rows of models that somebody paid for."""


def lost_rows(lake: Lake, weeks: Sequence[str], model: str) -> str:
    """Say what the next run drops of what models said, as sessions are read otherwise now.

    A row is of one reading of a session; after an upgrade, or when a session went on, it is of
    another one than the lake has.

    Args:
        lake: with the sessions as they are read now.
        weeks: to look at.
        model: that is asked by this run, and gives its rows anew.

    Returns:
        a sentence with the models, the sessions and the remedy; empty when nothing is dropped.
    """
    digests = {head.id: head.digest for head in lake.rows("raw_sessions", SessionHead, weeks)}
    lost = {
        (row.session_id, row.model)
        for table in _OF_MODELS
        for row in lake.rows(table, _OfSession, weeks)
        if row.model != model
        and row.status != "failed"
        and digests.get(row.session_id) != row.session_digest
    }
    if not lost:
        return ""
    names = sorted({name for _, name in lost})
    sessions = counted(len({session for session, _ in lost}), "session")
    return (
        f"what {', '.join(names)} said of {sessions} is of an earlier reading of them. To have it "
        f"anew: debrief run --model {names[0]}."
    )


class _OfSession(Struct, frozen=True, kw_only=True):
    session_id: str
    session_digest: str = ""
    status: str = ""
    model: str = ""
