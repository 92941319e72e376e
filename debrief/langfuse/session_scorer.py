"""A session on the server, from its id to scores that stand beside it."""

from __future__ import annotations

from collections.abc import Iterable

from debrief.langfuse.client import LangfuseClient
from debrief.langfuse.fetcher import SessionFetcher
from debrief.langfuse.model import ScoreReceipt
from debrief.langfuse.outgoing import Redact
from debrief.langfuse.scores import WriteOptions, write_scores
from debrief.scoring.model import ChunkScorer, SessionScores
from debrief.scoring.scorer import ChunkParameters, score_session
from debrief.sessions.model import Session


class SessionScorer:
    """Fetches a session, scores it, and stores its scores.

    Args:
        client: of the server.
        scorer: who scores a chunk.
        fetcher: of sessions; one on ``client`` by default.
        parameters: how sessions are cut.
        options: how scores are written.
        redact: takes secrets out of a comment.
    """

    def __init__(
        self,
        client: LangfuseClient,
        scorer: ChunkScorer,
        fetcher: SessionFetcher | None = None,
        parameters: ChunkParameters | None = None,
        options: WriteOptions | None = None,
        redact: Redact = str,
    ) -> None:
        self._client = client
        self._scorer = scorer
        self._fetcher = fetcher or SessionFetcher(client)
        self._parameters = parameters
        self._options = options
        self._redact = redact
        self.receipts: dict[str, list[ScoreReceipt]] = {}
        """What the server confirmed, by session."""

    def score_session(self, session_id: str) -> SessionScores:
        """Fetch a session, score it, and store its scores; what was confirmed is in ``receipts``.

        A server that does not take a score costs nothing: the scores are returned all the same,
        and storing them again writes what is missing.

        Raises:
            InputError: the server has nothing of the session.
            LangfuseError: it cannot be asked for it.
        """
        row = self.score(self._fetcher.fetch_session(session_id))
        self.store(row)
        return row

    def score(self, session: Session) -> SessionScores:
        """Score a session that is at hand, without storing anything; a failure is in the row."""
        return score_session(session, self._scorer, self._parameters)

    def store(
        self, scores: SessionScores, previous: Iterable[ScoreReceipt] = ()
    ) -> list[ScoreReceipt]:
        """Write a session's scores to the server and return the receipts.

        Args:
            scores: with status ``failed`` there is nothing to write.
            previous: receipts of earlier runs; those of this object's are remembered.
        """
        known = [*previous, *self.receipts.get(scores.session_id, ())]
        receipts = write_scores(
            self._client, [scores], known, options=self._options, redact=self._redact
        )
        self.receipts[scores.session_id] = [
            receipt for receipt in receipts if receipt.session_id == scores.session_id
        ]
        return receipts
