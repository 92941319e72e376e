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

    def score_session(self, session_id: str) -> SessionScores:
        """Score a session of the server without storing anything.

        Raises:
            InputError: the server has nothing of it.
            LangfuseError: it cannot be asked.
        """
        return self.score(self._fetcher.fetch_session(session_id))

    def score(self, session: Session) -> SessionScores:
        """Score a session that is at hand; a failure is in the row."""
        return score_session(session, self._scorer, self._parameters)

    def store(
        self, scores: SessionScores, previous: Iterable[ScoreReceipt] = ()
    ) -> list[ScoreReceipt]:
        """Write a session's scores to the server and return the receipts."""
        return write_scores(
            self._client, [scores], previous, options=self._options, redact=self._redact
        )
