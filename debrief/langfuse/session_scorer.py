"""Score one session on a Langfuse server, by its id, and store the scores there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from debrief.langfuse.client import LangfuseClient, langfuse_for
from debrief.langfuse.fetcher import SessionFetcher
from debrief.langfuse.outgoing import OutgoingScore, Redact, ScoreReceipt
from debrief.langfuse.scores import WriteOptions, write_scores
from debrief.redaction.redactor import redactor_of
from debrief.scoring.model import ChunkScorer, SessionScores
from debrief.scoring.scorer import DEFAULT, ChunkParameters, score_session
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.redaction import redact_session
from debrief.settings import Settings


@dataclass(eq=False, repr=False)
class SessionScorer:
    """Fetches a session, scores it, and stores its scores."""

    client: LangfuseClient
    scorer: ChunkScorer
    """Who scores a chunk."""
    fetcher: SessionFetcher | None = None
    """Of sessions; one on ``client`` by default."""
    parameters: ChunkParameters = DEFAULT
    """How sessions are cut."""
    options: WriteOptions | None = None
    """How scores are written."""
    redact: Redact = str
    """Takes secrets out of a comment."""

    @classmethod
    def from_settings(
        cls, settings: Settings, scorer: ChunkScorer, asked_by: str = "SessionScorer"
    ) -> SessionScorer:
        """Return one for the configured server; it takes secrets out of what it reads and writes.

        Somebody waits for its answer, so the server is asked again for what was written lately.

        Args:
            settings: the server, its project's keys, and what scores are written on.
            scorer: of a chunk, such as ``make_evaluators(settings, no_model=False).chunk_scorer``.
            asked_by: the option or function that an error names.

        Raises:
            ConfigurationError: no server is configured, or only a part of it.
        """
        client, redactor = langfuse_for(asked_by, settings), redactor_of(settings)
        return cls(
            client,
            scorer,
            SessionFetcher(client, partial(redact_session, redactor=redactor)),
            options=WriteOptions(
                score_target=settings.score_target,
                all_sessions=settings.langfuse_all_scores,
                trusted_for=timedelta(),
            ),
            redact=lambda text: redactor.redact(text).text,
        )

    def __post_init__(self) -> None:
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
        session = (self.fetcher or SessionFetcher(self.client)).fetch_session(session_id)
        row = score_session(session, self.scorer, self.parameters)
        self.store(row)
        return row

    def store(
        self,
        scores: SessionScores,
        previous: Iterable[ScoreReceipt] = (),
        annotations: Sequence[OutgoingScore] = (),
        verdict: SessionVerdict | None = None,
    ) -> list[ScoreReceipt]:
        """Write a session's scores to the server and return the receipts.

        Args:
            scores: with status ``failed`` there is nothing to write.
            previous: receipts of earlier runs; those of this object's are remembered.
            annotations: what people say of the session.
            verdict: of a person or an outcome, before whom the review does not count.
        """
        known = [*previous, *self.receipts.get(scores.session_id, ())]
        receipts = write_scores(
            self.client,
            [scores],
            known,
            verdicts={scores.session_id: verdict} if verdict is not None else {},
            annotations={scores.session_id: annotations},
            options=self.options,
            redact=self.redact,
        )
        self.receipts[scores.session_id] = [
            receipt for receipt in receipts if receipt.session_id == scores.session_id
        ]
        return receipts
