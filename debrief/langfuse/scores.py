"""Keep one score for each session and name on Langfuse up to date, and read it back.

An id stands for a session and a name alone, so a score is the same one on any day, from any
machine, by any scorer. Nothing is deleted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseClient, Row
from debrief.langfuse.errors import RequestRefusedError
from debrief.langfuse.fetcher import first_trace_id
from debrief.langfuse.outgoing import (
    NAMES,
    Destination,
    OutgoingScore,
    Redact,
    ScoreReceipt,
    ToScore,
    evidence_link,
    id_on,
    outdated_score,
    outgoing_scores,
    score_id,
)
from debrief.langfuse.sending import (
    Failures,
    differences,
    explained,
    read_back,
    score_configs,
    send,
    standing_scores,
)
from debrief.scoring.dimensions import DimensionError
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict
from debrief.settings import ScoreTarget

_AT_ONCE = 4
_NOT_THERE = (
    "the server has nothing of this session; DEBRIEF_LANGFUSE_ALL_SCORES=1 sends its scores all "
    "the same"
)


class WriteOptions(Struct, frozen=True, kw_only=True):
    """How scores are written."""

    score_target: ScoreTarget = "session"
    """What scores are written on; ``trace`` is the session's first one."""
    all_sessions: bool = False
    """Also scores of sessions that the server has nothing of."""
    read_back_within: float = 30.0
    """Seconds that a server has to show what it took."""
    trusted_for: timedelta = timedelta(days=1)
    """How long after the server was asked for a score it is not asked for it again."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def write_scores(
    client: LangfuseClient,
    scores: Iterable[ToScore],
    previous: Iterable[ScoreReceipt] = (),
    *,
    verdicts: Mapping[str, SessionVerdict] | None = None,
    annotations: Mapping[str, Sequence[OutgoingScore]] | None = None,
    options: WriteOptions | None = None,
    redact: Redact = str,
) -> list[ScoreReceipt]:
    """Write the scores of sessions, and people's annotations; return a receipt for each.

    What an earlier run wrote and nobody changed is not sent again; the server is asked once a day
    whether it still has it. A server that is away, and a score that it refuses or drops, give a
    receipt that says so and is tried again by the next run; nothing is raised for them. Sessions
    whose review failed have no score to write.

    Args:
        client: of the server.
        scores: rows of ``session_scores``, and sessions without one.
        previous: receipts of earlier runs.
        verdicts: those that count, by session; a review's own where a session has none here.
        annotations: what people say of sessions, by their ids.
        options: how to write; the defaults when None.
        redact: takes secrets out of a comment.

    Returns:
        receipts in the order of ``scores``, then those of earlier runs that are still valid.
    """
    writing = _Writing(client, options or WriteOptions(), previous, redact)
    for row in scores:
        if not isinstance(row, SessionScores) or row.status == "ok":
            verdict = (verdicts or {}).get(row.session_id)
            writing.want(row, verdict, (annotations or {}).get(row.session_id, ()))
    return writing.receipts_after()


class _Writing:
    """One time that scores are written."""

    def __init__(
        self,
        client: LangfuseClient,
        options: WriteOptions,
        previous: Iterable[ScoreReceipt],
        redact: Redact,
    ) -> None:
        self.client, self.options, self.now = client, options, options.now()
        self.redact = redact
        self.trusted_since = self.now - options.trusted_for
        self.before = {receipt.score_id: receipt for receipt in previous}
        self.rows: dict[str, ToScore] = {}
        self.wanted: dict[str, OutgoingScore] = {}
        self.receipts: dict[str, ScoreReceipt] = {}

    def want(
        self,
        row: ToScore,
        verdict: SessionVerdict | None,
        annotations: Sequence[OutgoingScore],
    ) -> None:
        """Take in what a session should have on the server."""
        try:
            scores = list(outgoing_scores(row, self.redact, verdict))
        except DimensionError as error:
            self.receipts[f"{row.session_id}:{error.culprit}"] = ScoreReceipt(
                score_id=f"{row.session_id}:{error.culprit}",
                session_id=row.session_id,
                name=error.culprit,
                value="",
                status="failed",
                reason=f"not sent: {error.reason}",
                host=self.client.host,
            )
            return
        self.rows[row.session_id] = row
        for score in (*scores, *annotations):
            self._take(score)
        self._take_outdated(row)

    def _take(self, score: OutgoingScore) -> OutgoingScore:
        """Take in a score, under its id where it is written; return it."""
        score = replace(score, id=id_on(self.options.score_target, score.id))
        self.wanted[score.id] = score
        self.receipts[score.id] = ScoreReceipt(
            score_id=score.id,
            session_id=score.session_id,
            name=score.name,
            value=score.value if isinstance(score.value, str) else format(score.value, ".6g"),
            status="written",
            host=self.client.host,
            content_digest=score.digest,
            checked=self.now,
        )
        return score

    def _take_outdated(self, row: ToScore) -> list[OutgoingScore]:
        """Take in the scores of a session that it had and has no more; return them."""
        outdated = []
        for name in NAMES:
            id = id_on(self.options.score_target, score_id(row.session_id, name))
            standing = None if id in self.wanted else self.before.get(id)
            if standing and standing.status == "written" and standing.host == self.client.host:
                score = outdated_score(row, name, standing.value, self.redact)
                outdated.append(self._take(score))
        return outdated

    def receipts_after(self) -> list[ScoreReceipt]:
        """Write what is due; return all receipts."""
        due = self._due()
        try:
            self._write(due)
        except LangfuseError as error:
            self._mark("failed", dict.fromkeys((score.id for score in due), explained(error)))
        others = [
            receipt for receipt in self.before.values() if receipt.score_id not in self.receipts
        ]
        return [*self.receipts.values(), *(other for other in others if other.status == "written")]

    def _due(self) -> list[OutgoingScore]:
        """Return what must be sent; earlier receipts that hold take the place of new ones."""
        due, claimed = [], []
        for identity, score in self.wanted.items():
            earlier = self.before.get(identity)
            if (
                earlier is None
                or earlier.content_digest != score.digest
                or earlier.host != self.client.host
                or not self._holds(earlier)
            ):
                due.append(score)
            elif (earlier.checked or self.trusted_since) > self.trusted_since:
                self.receipts[identity] = earlier
            elif earlier.status == "written":
                claimed.append(self.receipts[identity])
            else:
                due.append(score)
        try:
            lost = differences(self.client, claimed)
        except LangfuseError:
            lost = dict.fromkeys((receipt.score_id for receipt in claimed), "")
        return [*due, *(self.wanted[identity] for identity in lost)]

    def _holds(self, receipt: ScoreReceipt) -> bool:
        is_kept = receipt.status == "kept" and not self.options.all_sessions
        return receipt.status == "written" or is_kept

    def _mark(self, status: Literal["failed", "unconfirmed", "kept"], reasons: Failures) -> None:
        for identity, reason in reasons.items():
            self.receipts[identity] = replace(self.receipts[identity], status=status, reason=reason)

    def _write(self, due: Sequence[OutgoingScore]) -> None:
        """Send scores to where they belong, and read them back.

        Raises:
            LangfuseAwayError, RequestRefusedError: nothing was sent.
        """
        destinations = self._destinations(due)
        due = [score for score in due if score.session_id in destinations]
        for session in destinations:
            due += self._take_outdated(self.rows[session])
        if not due:
            return
        configs = score_configs(self.client, (score.name for score in due))
        unnamed = {
            score.id: configs.problems[score.name]
            for score in due
            if score.name in configs.problems
        }
        requests = []
        for score in due:
            if score.id not in unnamed:
                where = destinations[score.session_id]
                link = evidence_link(self.client.host, configs.project, where.subject)
                requests.append(score.request(where, configs.ids[score.name], link))
        refused, remarks = send(self.client, requests)
        self._mark("failed", unnamed | refused)
        sent = [self.receipts[score.id] for score in due if score.id not in unnamed | refused]
        unseen = read_back(self.client, sent, self.options.read_back_within)
        reasons = {i: "; ".join(filter(None, (why, remarks.get(i)))) for i, why in unseen.items()}
        self._mark("unconfirmed", reasons)

    def _destinations(self, due: Sequence[OutgoingScore]) -> dict[str, Destination]:
        """Return where each session's scores go; receipts say of the others why nowhere.

        Raises:
            LangfuseAwayError, RequestRefusedError: the server cannot be asked, or these keys may
                not ask.
        """

        def find(session: str) -> Destination | str | None:
            try:
                where = _destination(self.client, session, self.options)
                if isinstance(where, Destination) and session not in known:
                    target = self.options.score_target
                    standing.extend(standing_scores(self.client, session, where, target))
            except RequestRefusedError as error:
                if error.status in (401, 403):
                    raise
                return explained(error)
            return where

        standing: list[ScoreReceipt] = []
        known = {
            receipt.session_id for receipt in self.before.values() if receipt.status == "written"
        }
        sessions = list(dict.fromkeys(score.session_id for score in due))
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="langfuse") as pool:
            try:
                found = dict(zip(sessions, pool.map(find, sessions), strict=True))
            finally:
                pool.shutdown(cancel_futures=True)
        for receipt in standing:
            self.before.setdefault(receipt.score_id, receipt)
        for score in due:
            where = found[score.session_id]
            if where is None:
                self._mark("kept", {score.id: _NOT_THERE})
            elif isinstance(where, str):
                self._mark("failed", {score.id: where})
        return {
            session: where for session, where in found.items() if isinstance(where, Destination)
        }


def _destination(
    client: LangfuseClient, session: str, options: WriteOptions
) -> Destination | str | None:
    """Return where a session's scores go; why nowhere; None where the server has nothing of it.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    newest = _newest(client, session)
    if newest is None and not options.all_sessions:
        return None
    environment = str((newest or {}).get("environment") or "")
    environment = "" if environment.startswith("langfuse") else environment
    if options.score_target == "session":
        return Destination({"session_id": session}, environment)
    trace = first_trace_id(client, session) if newest else None
    if trace is None:
        return f"the server has no trace of session {session}"
    return Destination({"trace_id": trace}, environment)


def _newest(client: LangfuseClient, session: str) -> Row | None:
    """Return something that the server has of a session; errors as for ``_destination``."""
    seen = client.observations(sessionId=session, fields="core,basic", limit=1)
    return next(chain(seen, client.traces(sessionId=session, limit=1)), None)
