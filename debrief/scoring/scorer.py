"""Score sessions: chunks to a scorer, its answers to one row, nothing scored twice.

A row is taken over from an earlier run when the session's digest and the scoring fingerprint are
what they were and it was a success; failures are tried again. One failure never costs the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.evaluation import evaluate, failure_of, version_of
from debrief.keys import digest_of
from debrief.models.answers import Answer
from debrief.models.fencing import is_suspected
from debrief.models.language_model import DryRunError
from debrief.models.subject import asking_about
from debrief.models.templates import SCORER, load_template
from debrief.models.usage import total_cost
from debrief.scoring.chunking import MIN_CHUNK_RATIO, OVERLAP, TARGET, chunk_by_tokens
from debrief.scoring.dimensions import (
    DIMENSIONS,
    UNCERTAIN_BELOW,
    agreement_of,
)
from debrief.scoring.facets import whole_facets
from debrief.scoring.gate import VERSION as GATE
from debrief.scoring.gate import gate_scores
from debrief.scoring.llm_review import whole_review
from debrief.scoring.model import Chunk, ChunkScorer, ChunkScores, SessionScores
from debrief.scoring.model_scorer import ModelChunkScorer, scoring_prompt
from debrief.scoring.traces import FORM, traces_of
from debrief.sessions.model import Session
from debrief.signals.extract import VERSION as SIGNALS
from debrief.signals.lines import token_efficiency, user_turn_efficiency
from debrief.tokens import ENCODING


class ChunkParameters(Struct, frozen=True):
    """How sessions are cut."""

    target: int = TARGET
    """Tokens a chunk may have at most."""
    overlap: int = OVERLAP
    min_chunk_ratio: float = MIN_CHUNK_RATIO

    def chunks_of(self, session: Session) -> list[Chunk]:
        """Return a session's chunks; none for a session without turns."""
        traces = traces_of(session)
        return chunk_by_tokens(traces, self.target, self.overlap, self.min_chunk_ratio)


DEFAULT = ChunkParameters()


def verdict_version() -> str:
    """Return the digest of all that decides verdicts beside a session and its review."""
    return digest_of("verdict", SIGNALS, GATE)[:8]


def scoring_fingerprint(scorer: ChunkScorer, parameters: ChunkParameters = DEFAULT) -> str:
    """Return the first 8 hex digits of the digest of all that decides a session's scores.

    The scorer's ``version``, if it has one, is in it.
    """
    shown = (ENCODING, FORM)
    asked = (scorer.model, version_of(scorer), DIMENSIONS, load_template(SCORER), parameters)
    judges = [(each.name, each.body, each.needs) for each in getattr(scorer, "judges", ())]
    return digest_of("scoring-v4", *asked, shown, judges)[:8]


def score_session(
    session: Session, scorer: ChunkScorer, parameters: ChunkParameters = DEFAULT
) -> SessionScores:
    """Return the review and the scores of one session.

    Nothing is raised for what a session or a model does: the row has status ``failed`` and the
    reason then. A setting that concerns every session, like a template that is not there, is
    raised.

    Args:
        session: of any length.
        scorer: reviews each chunk.
        parameters: how the session is cut.
    """
    row = SessionScores(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        model=scorer.model,
        scoring_fingerprint=scoring_fingerprint(scorer, parameters),
        status="failed",
        token_efficiency=token_efficiency(session),
        user_turn_efficiency=user_turn_efficiency(session),
    )
    try:
        chunks = parameters.chunks_of(session)
        if not chunks:
            return replace(row, failure="the session has no turns")
        with asking_about(session.id):
            parts = _reviewed_parts(session, chunks, scorer)
        agreement = agreement_of(parts)
        turns = [(chunk.traces[0].number, chunk.traces[-1].number) for chunk in chunks]
        reviews = [part.review for part in parts if part.review is not None]
        review = whole_review(reviews, turns, [part.own_tokens for part in parts])
        suspected = is_suspected(session)
        gated = gate_scores(row, review, session)
    except Exception as error:
        return replace(row, failure=failure_of(error))
    return replace(
        gated,
        status="ok",
        tokens=sum(chunk.own_tokens for chunk in chunks),
        facets=whole_facets(part.facets for part in parts),
        chunks=tuple(replace(part, review=None, facets=()) for part in parts),
        chunk_agreement=agreement,
        uncertain=agreement is not None and agreement < UNCERTAIN_BELOW,
        injection_suspected=suspected,
        input_tokens=sum(part.input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        cost_usd=total_cost(part.cost_usd for part in parts),
    )


def _reviewed_parts(
    session: Session, chunks: list[Chunk], scorer: ChunkScorer
) -> list[ChunkScores]:
    """Ask for every chunk, in order.

    A dry run goes on to the last one, or it would count the first alone.
    """
    said: list[ChunkScores] = []
    nothing: DryRunError | None = None
    for chunk in chunks:
        try:
            scores = scorer.score_chunk(session, chunk)
            said.append(replace(scores, overlap=len(chunk.overlap)))
        except DryRunError as error:
            nothing = error
    if nothing is not None:
        raise nothing
    return said


def score_week(
    sessions: Iterable[Session],
    scorer: ChunkScorer,
    previous: Iterable[SessionScores] = (),
    *,
    parameters: ChunkParameters = DEFAULT,
    concurrency: int = 1,
) -> Iterator[SessionScores]:
    """Yield the scores of many sessions in the sessions' order.

    Args:
        sessions: read one by one, at most twice ``concurrency`` of them held at once.
        scorer: must be safe to call from several threads when ``concurrency`` is over 1.
        previous: rows of an earlier run of the same weeks.
        parameters: how sessions are cut.
        concurrency: sessions under way at once; 1 scores in this thread.
    """
    fingerprint = scoring_fingerprint(scorer, parameters)
    stored = {
        (row.session_id, row.session_digest): row
        for row in previous
        if row.status == "ok" and row.scoring_fingerprint == fingerprint
    }

    def stored_row(session: Session) -> SessionScores | None:
        row = stored.get((session.id, session.digest))
        if row is None or row.review is None:
            return None
        return gate_scores(row, row.review, session)

    return evaluate(
        ([session] for session in sessions),
        stored_row,
        lambda session: score_session(session, scorer, parameters),
        workers=concurrency,
    )


AGENT = "agent"
"""The model's name of answers that do not say who gave them."""
_MARK = "session.json"


class PartPrompt(Struct, frozen=True):
    """A part's prompt and the place of its answer."""

    path: Path
    answer: Path

    @property
    def is_answered(self) -> bool:
        """Return whether somebody left an answer."""
        return self.answer.is_file()


class HandScorer:
    """Takes the answers that stand in a folder; ``write_prompts`` made it."""

    def __init__(self, folder: Path, model: str = AGENT) -> None:
        self.model = model
        self._folder = folder

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkScores:
        """Check one part's answer.

        Raises:
            InputError: there is none.
            ModelError: it cannot be used, and why.
        """
        prompt = _prompt(self._folder, chunk)
        try:
            text = prompt.answer.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(str(prompt.answer), f"cannot be read: {error.strerror}") from None
        said = ModelChunkScorer(self.model, lambda _: Answer(text=text), attempts=1)
        return said.score_chunk(session, chunk)


def write_prompts(session: Session, folder: Path) -> list[PartPrompt]:
    """Write the prompt of each part that has no answer yet; return all parts' prompts in order.

    Raises:
        InputError: the folder holds another session's prompts, or the session has no turns.
    """
    mark = {"session": session.id, "digest": digest_of(session.digest, DEFAULT)}
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / _MARK
    if kept.is_file() and orjson.loads(kept.read_bytes()) != mark:
        raise InputError(
            str(folder),
            "holds prompts of another session, or of this one before it went on",
            "Name another folder.",
        )
    chunks = DEFAULT.chunks_of(session)
    if not chunks:
        raise InputError(session.id, "the session has no turns")
    kept.write_bytes(orjson.dumps(mark))
    prompts = []
    for chunk in chunks:
        prompt = _prompt(folder, chunk)
        if not prompt.is_answered:
            text = scoring_prompt(session, chunk)
            prompt.path.write_text(text, encoding="utf-8", errors="replace")
        prompts.append(prompt)
    return prompts


def _prompt(folder: Path, chunk: Chunk) -> PartPrompt:
    name = f"part-{chunk.index + 1}-of-{chunk.count}"
    return PartPrompt(folder / f"{name}.md", folder / f"{name}.answer.json")
