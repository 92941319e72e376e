"""Scores to Langfuse: sent once, read back, and a receipt for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseClient, RequestRefusedError
from debrief.langfuse.configs import ConfigProblem, score_configs
from debrief.langfuse.fetcher import first_trace_id
from debrief.langfuse.model import ScoreReceipt
from debrief.langfuse.outgoing import OutgoingScore, Redact, evidence_link, outgoing_scores
from debrief.langfuse.sending import read_back, send
from debrief.scoring.dimensions import VerdictError
from debrief.scoring.model import SessionScores

ScoreTarget = Literal["session", "trace"]
Rescored = Literal["replace", "keep"]


class WriteOptions(Struct, frozen=True, kw_only=True):
    """How scores are written."""

    score_target: ScoreTarget = "session"
    """``trace`` hangs them on the session's first trace, for servers without session scores."""
    rescored: Rescored = "replace"
    """What becomes of a session's score from another scorer once the new one is read back."""
    read_back_within: float = 30.0
    """Seconds that a server has to show what it took."""


def write_scores(
    client: LangfuseClient,
    scores: Iterable[SessionScores],
    previous: Iterable[ScoreReceipt] = (),
    *,
    options: WriteOptions | None = None,
    redact: Redact = str,
) -> list[ScoreReceipt]:
    """Write the scores of sessions and return a receipt for each score.

    What an earlier run wrote and nobody changed is not sent again. A server that is away, and a
    score that it refuses or drops, give a receipt that says so and is tried again by the next
    run; nothing is raised for them. Sessions whose scoring failed have no score to write.

    Args:
        client: of the server.
        scores: rows of ``session_scores``.
        previous: receipts of earlier runs.
        options: how to write; the defaults when None.
        redact: takes secrets out of a comment.

    Returns:
        receipts in the order of ``scores``, then those of earlier runs that still stand.
    """
    options = options or WriteOptions()
    before = {receipt.score_id: receipt for receipt in previous}
    receipts: dict[str, ScoreReceipt] = {}
    due: list[OutgoingScore] = []
    for row in scores:
        if row.status != "ok":
            continue
        try:
            outgoing = list(outgoing_scores(row, redact))
        except VerdictError as error:
            invalid = _invalid(client, row, error)
            receipts[invalid.score_id] = invalid
            continue
        for score in outgoing:
            receipts[score.id] = _receipt(client, score, "failed", "not sent")
            known = before.get(score.id)
            if known and known == replace(receipts[score.id], status="written", reason=""):
                receipts[score.id] = known
            else:
                due.append(score)
    if due:
        for identity, (status, reason) in _write(client, due, options).items():
            receipts[identity] = replace(receipts[identity], status=status, reason=reason)
    return [*receipts.values(), *_standing(client, before, receipts, options)]


Outcome = tuple[Literal["written", "unconfirmed", "failed"], str]


def _write(
    client: LangfuseClient, due: Sequence[OutgoingScore], options: WriteOptions
) -> Mapping[str, Outcome]:
    try:
        configs = score_configs(client)
    except LangfuseError as error:
        return {score.id: ("failed", error.reason) for score in due}
    outcomes: dict[str, Outcome] = {}
    targets = _targets(client, due, options.score_target)
    bodies = []
    sent: list[OutgoingScore] = []
    for score in due:
        config, target = configs.ids[score.name], targets[score.session_id]
        if isinstance(config, ConfigProblem):
            outcomes[score.id] = ("failed", config.reason)
        elif isinstance(target, str):
            outcomes[score.id] = ("failed", target)
        else:
            link = evidence_link(client.host, configs.project, target)
            bodies.append(score.body(target, config, link))
            sent.append(score)
    refused, remarks = send(client, bodies)
    taken = [score for score in sent if score.id not in refused]
    unseen = read_back(client, taken, options.read_back_within)
    for score in sent:
        if reason := refused.get(score.id):
            outcomes[score.id] = ("failed", reason)
        elif reason := unseen.get(score.id):
            remark = remarks.get(score.id)
            outcomes[score.id] = ("unconfirmed", f"{reason}; {remark}" if remark else reason)
        else:
            outcomes[score.id] = ("written", "")
    return outcomes


def _targets(
    client: LangfuseClient, due: Sequence[OutgoingScore], target: ScoreTarget
) -> Mapping[str, dict[str, str] | str]:
    """Return what each session's scores hang on, or why there is nothing."""
    sessions = list(dict.fromkeys(score.session_id for score in due))
    if target == "session":
        return {session: {"sessionId": session} for session in sessions}
    found: dict[str, dict[str, str] | str] = {}
    for session in sessions:
        try:
            trace = first_trace_id(client, session)
        except LangfuseError as error:
            found[session] = error.reason
            continue
        found[session] = (
            {"traceId": trace} if trace else f"the server has no trace of session {session}"
        )
    return found


def _standing(
    client: LangfuseClient,
    before: Mapping[str, ScoreReceipt],
    receipts: Mapping[str, ScoreReceipt],
    options: WriteOptions,
) -> list[ScoreReceipt]:
    """Return earlier receipts that still stand, after replacing those that were to be replaced."""
    renewed = {(r.session_id, r.name) for r in receipts.values() if r.status == "written"}
    standing = []
    for receipt in before.values():
        if receipt.score_id in receipts or receipt.status not in ("written", "unconfirmed"):
            continue
        here = receipt.host == client.host
        if options.rescored == "replace" and here and (receipt.session_id, receipt.name) in renewed:
            try:
                client.delete(f"/scores/{receipt.score_id}")
                continue
            except RequestRefusedError as error:
                if error.status == 404:
                    continue
                receipt = replace(receipt, reason=f"not replaced: {error.reason}")
            except LangfuseError as error:
                receipt = replace(receipt, reason=f"not replaced: {error.reason}")
        standing.append(receipt)
    return standing


def _receipt(
    client: LangfuseClient,
    score: OutgoingScore,
    status: Literal["written", "failed"],
    reason: str = "",
) -> ScoreReceipt:
    return ScoreReceipt(
        score_id=score.id,
        session_id=score.session_id,
        name=score.name,
        value=score.value if isinstance(score.value, str) else format(score.value, ".6g"),
        status=status,
        reason=reason,
        host=client.host,
        content_digest=score.digest,
    )


def _invalid(client: LangfuseClient, row: SessionScores, error: VerdictError) -> ScoreReceipt:
    return ScoreReceipt(
        score_id=f"{row.session_id}:{error.culprit}",
        session_id=row.session_id,
        name=error.culprit,
        value="",
        status="failed",
        reason=f"not sent: {error.reason}",
        host=client.host,
    )
