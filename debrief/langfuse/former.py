"""Scores that a server shows already; those under the ids of earlier versions, one for each scorer,
are deleted once.

A server deletes by and by, at most one score every two minutes, and deletes by its id alone: also
what was written anew under it meanwhile. So these ids are never written again, each deletion is
asked for once, and a receipt waits until the score is seen to be gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseAwayError, LangfuseClient, RequestRefusedError
from debrief.langfuse.configs import NAMES
from debrief.langfuse.outgoing import Destination, ScoreReceipt, score_id
from debrief.langfuse.sending import LACKING, shown_scores


def is_former(receipt: ScoreReceipt) -> bool:
    """Return whether a receipt is of a score under a former id: such a one has no time, as the
    versions that wrote them kept none."""
    its_own = score_id(receipt.session_id, receipt.name)
    stood = receipt.status in ("written", "unconfirmed") and receipt.checked is None
    return receipt.status == "replaced" or (stood and receipt.score_id != its_own)


def standing_scores(client: LangfuseClient, session: str, place: Destination) -> list[ScoreReceipt]:
    """Return the scores of a session that stand there, whichever machine wrote them: under their
    own ids and under former ones.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    parameters = {**place.subject, "name": ",".join(NAMES), "fields": "details"}
    try:
        rows = list(client.pages("/v3/scores", source="API", limit=100, **parameters))
    except RequestRefusedError as error:
        if error.status not in LACKING:
            raise
        return []
    return [
        ScoreReceipt(
            score_id=str(row["id"]),
            session_id=session,
            name=str(row["name"]),
            value=str(row.get("value")),
            status="written",
            host=client.host,
        )
        for row in rows
        for scorer in [str((row.get("metadata") or {}).get("scoring_fingerprint"))]
        for name in [str(row["name"])]
        if row["id"] in (score_id(session, name), score_id(session, name, scorer))
    ]


def delete_former(
    client: LangfuseClient,
    former: Sequence[ScoreReceipt],
    there: Collection[str],
    checked_before: datetime,
    now: datetime,
) -> Iterator[ScoreReceipt]:
    """Have former scores deleted; yield the receipts of those that still stand.

    Args:
        client: of the server.
        former: receipts of them.
        there: ids of the scores that are there.
        checked_before: whether a deletion was carried out is asked of those last seen before.
        now: the time.
    """
    waiting = [one for one in former if one.status == "replaced"]
    due = {one.score_id for one in waiting if (one.checked or checked_before) <= checked_before}
    try:
        gone = due - set(shown_scores(client, sorted(due)))
    except LangfuseError:
        gone = set()
    for one in waiting:
        if one.score_id not in gone:
            yield replace(one, checked=now) if one.score_id in due else one
    is_away = False
    for one in former:
        if one.status == "replaced":
            continue
        if score_id(one.session_id, one.name) not in there or is_away:
            yield one
            continue
        try:
            client.delete(f"/scores/{one.score_id}")
        except LangfuseError as error:
            if not isinstance(error, RequestRefusedError) or error.status != 404:
                is_away = isinstance(error, LangfuseAwayError)
                yield replace(one, reason=f"not deleted: {error.reason}")
        else:
            reason = "its deletion waits in the server's queue"
            yield replace(one, status="replaced", reason=reason, checked=now)
