"""Score sessions: chunks to a scorer, its answers to one row, nothing scored twice.

A row is taken over from an earlier run when the session's digest and the scoring fingerprint are
what they were and it was a success; failures are tried again. One failure never costs the rest.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.evaluation import OFFLINE, evaluate, failure_of, interval_of, version_of
from debrief.signals.extract import extract_signals
from debrief.judging.fitting import is_generated
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
    aggregate,
    calculate_overall_quality,
    combine,
    overall_of_reading,
)
from debrief.scoring.model import (
    Chunk,
    ChunkScorer,
    ChunkScores,
    DimensionScore,
    SessionScores,
    Trace,
)
from debrief.scoring.model_scorer import ModelChunkScorer, scoring_prompt
from debrief.scoring.offline_evaluator import task_completion
from debrief.scoring.order import VALUES, values_of
from debrief.scoring.llm_review import SessionReview, whole_review
from debrief.scoring.rules import RULES, verdict_of
from debrief.scoring.second_opinion import VERSION as SECOND_OPINION
from debrief.scoring.second_opinion import is_assumed, unsure_reason, with_first
from debrief.scoring.traces import FORM, traces_of
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Session, calls_of
from debrief.sessions.readers.patches import edits_of_call
from debrief.tokens import ENCODING

LOG = logging.getLogger(__name__)
Outcome = tuple[bool, str]
"""Whether a session succeeded, and the source that says so."""
_DECIDING = ("task_completion", "execution_quality")


def token_efficiency(session: Session) -> float | None:
    """Return lasting lines per 1,000 input and output tokens; None without tokens.

    Tokens written to or read from a cache are left out: they would swamp the rest.
    """
    tokens = session.usage.input + session.usage.output
    return 1_000 * lasting_lines(session) / tokens if tokens else None


def user_turn_efficiency(session: Session) -> float | None:
    """Return lasting lines per human turn; None without a human turn."""
    return lasting_lines(session) / session.prompt_count if session.prompt_count else None


def lasting_lines(session: Session) -> int:
    """Return how many lines the session added or removed for good.

    A line that it added to a file and removed again, or removed and put back, does not count; nor
    do lock files and generated ones. A session whose edits are not told one by one counts as its
    source says.
    """
    edits = [edit for call in calls_of(session) for edit in edits_of_call(call)]
    if not edits:
        return session.growth
    lines: Counter[tuple[str, str]] = Counter()
    untold = 0
    for edit in edits:
        if is_generated(edit.path):
            continue
        if not edit.patch:
            untold += edit.added + edit.removed
        for line in edit.patch.split("\n"):
            if line[:1] in ("+", "-"):
                lines[edit.path, line[1:]] += 1 if line[0] == "+" else -1
    return untold + sum(map(abs, lines.values()))


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
    """Return the digest of all that decides verdicts and facts beside a session and its outcome."""
    return digest_of("verdict", RULES, tuple(VALUES))[:8]


def scoring_fingerprint(scorer: ChunkScorer, parameters: ChunkParameters = DEFAULT) -> str:
    """Return the first 8 hex digits of the digest of all that decides a session's scores.

    The scorer's ``version``, if it has one, is in it.
    """
    shown = (ENCODING, FORM)
    asked = (scorer.model, version_of(scorer), DIMENSIONS, load_template(SCORER), parameters)
    riding = [(judge.name, judge.body) for judge in getattr(scorer, "judges", ())]
    other = getattr(scorer, "second_opinion", None)
    second = [(SECOND_OPINION, scoring_fingerprint(other, parameters))] if other else []
    return digest_of("scoring-v2", *asked, shown, riding, *second)[:8]


def score_session(
    session: Session,
    scorer: ChunkScorer,
    parameters: ChunkParameters = DEFAULT,
    outcome: Outcome | None = None,
) -> SessionScores:
    """Return the scores of one session.

    Where the scorer has a ``second_opinion`` and is unsure of its own, the row is the other one's.

    Nothing is raised for what a session or a model does: the row has status ``failed`` and the
    reason then. A setting that concerns every session, like a template that is not there, is
    raised.

    Args:
        session: of any length.
        scorer: gives the verdicts on each chunk; one that ``reads_whole`` gets a single one.
        parameters: how the session is cut.
        outcome: whether it succeeded and the source that says so, where one does.
    """
    facts = _facts_and_verdict(session, outcome)
    first, error = _scored(session, scorer, parameters, facts)
    other = getattr(scorer, "second_opinion", None)
    if other is None:
        return first
    if isinstance(error, DryRunError):
        if is_assumed(session.id):
            _scored(session, other, parameters, facts)
        return first
    reason = unsure_reason(first, facts.get("verdict"), error)
    if reason is None:
        return first
    second, _ = _scored(session, other, parameters, facts)
    return with_first(second, first, reason)


def _scored(
    session: Session, scorer: ChunkScorer, parameters: ChunkParameters, facts: dict[str, Any]
) -> tuple[SessionScores, Exception | None]:
    """Return one scorer's row, and what it failed by."""
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
        **facts,
    )
    try:
        whole = getattr(scorer, "reads_whole", False)
        chunks = whole_of(session) if whole else parameters.chunks_of(session)
        if not chunks:
            return replace(row, failure="the session has no turns"), None
        with asking_about(session.id):
            said = _said_of(session, chunks, scorer)
        verdicts, agreement = aggregate(said)
        answers = [
            aggregate([replace(chunk, verdicts=chunk.answers[number]) for chunk in said])[0]
            for number in range(min(len(chunk.answers) for chunk in said))
        ]
        verdicts = combine(answers) if answers else verdicts
        if whole and row.verdict is not None:
            verdicts = (task_completion(row.verdict), *verdicts[1:])
        reading = _reading_of(chunks, said)
        overall = _overall(verdicts, reading, whole)
        bounds = said[-1].bounds or (reading.most if reading else 1.0,) * len(answers)
        apart = interval_of(
            [
                overall_of_reading(answer, most) if reading else calculate_overall_quality(answer)
                for answer, most in zip(answers, bounds, strict=True)
            ]
        )
        suspected = is_suspected(session)
    except Exception as error:
        return replace(row, failure=failure_of(error)), error
    scored = replace(
        row,
        status="ok",
        verdict=_decided(row.verdict, reading, scorer.model),
        reading=reading,
        verdicts=verdicts,
        overall_quality=overall,
        **{f"overall_{name}": value for name, value in apart.items()},
        tokens=sum(chunk.own_tokens for chunk in chunks),
        chunks=tuple(replace(chunk, reading=None) for chunk in said),
        chunk_agreement=agreement,
        uncertain=agreement is not None and agreement < UNCERTAIN_BELOW,
        injection_suspected=suspected,
        input_tokens=sum(chunk.input_tokens for chunk in said),
        output_tokens=sum(chunk.output_tokens for chunk in said),
        cost_usd=total_cost(chunk.cost_usd for chunk in said),
    )
    return scored, None


def _facts_and_verdict(session: Session, outcome: Outcome | None) -> dict[str, Any]:
    """Return the verdict on a session, and the facts that its place in the order is made of.

    Where that goes wrong there are none: scores that were paid for are not lost for it.
    """
    try:
        facts = extract_signals(session)
        verdict = verdict_of(facts, outcome)
    except Exception:
        LOG.exception("%s: its verdict could not be told", session.id)
        return {}
    return {"kind": facts.kind, "verdict": verdict, "facts": values_of(facts)}


def _reading_of(chunks: Sequence[Chunk], said: Sequence[ChunkScores]) -> SessionReview | None:
    """Return what a model read in all parts; None where one of them has no reading."""
    readings = [part.reading for part in said if part.reading is not None]
    if len(readings) < len(said):
        return None
    turns = [(chunk.traces[0].number, chunk.traces[-1].number) for chunk in chunks]
    return whole_review(readings, turns, [part.own_tokens for part in said])


def _decided(
    verdict: SessionVerdict | None, reading: SessionReview | None, model: str
) -> SessionVerdict | None:
    """Return the verdict on a session: an outcome's, else the reading's, else the rules'."""
    if reading is None or (verdict is not None and verdict.basis == "outcome"):
        return verdict
    return SessionVerdict(
        verdict=reading.verdict,
        basis="model",
        source=model,
        evidence=reading.proofs,
        unanswered=verdict is not None and verdict.unanswered,
    )


def _overall(
    verdicts: Sequence[DimensionScore], reading: SessionReview | None, whole: bool
) -> float | None:
    """Return the overall quality; offline there is none without completion or execution."""
    if reading is not None:
        return overall_of_reading(verdicts, reading.most)
    decided = any(
        verdict.value is not None for verdict in verdicts if verdict.dimension in _DECIDING
    )
    return calculate_overall_quality(verdicts) if decided or not whole else None


def whole_of(session: Session) -> list[Chunk]:
    """Return the session as one chunk, whatever its length, for a scorer that is shown no text.

    Its tokens are not counted: nothing is sent anywhere.
    """
    numbers = [turn.number for turn in session.turns] or [0] * bool(session.subagents)
    traces = tuple(Trace(number=number, observations=()) for number in numbers)
    empty = Chunk(index=0, count=1, overlap=(), traces=traces, tokens=0, own_tokens=0)
    return [empty] if traces else []


def _said_of(session: Session, chunks: list[Chunk], scorer: ChunkScorer) -> list[ChunkScores]:
    """Ask for every chunk, in order.

    A dry run goes on to the last one, or it would count the first alone.
    """
    said: list[ChunkScores] = []
    nothing: DryRunError | None = None
    for chunk in chunks:
        try:
            verdicts = scorer.score_chunk(session, chunk)
            beside = {"overlap": len(chunk.overlap), "person_characters": _of_person(chunk)}
            said.append(replace(verdicts, **beside))
        except DryRunError as error:
            nothing = error
    if nothing is not None:
        raise nothing
    return said


def _of_person(chunk: Chunk) -> int:
    seen = (observation for trace in chunk.traces for observation in trace.observations)
    return sum(
        len(observation.text)
        for observation in seen
        if observation.kind in ("prompt", "intervention")
    )


def score_week(
    sessions: Iterable[Session],
    scorer: ChunkScorer,
    previous: Iterable[SessionScores] = (),
    *,
    parameters: ChunkParameters = DEFAULT,
    concurrency: int = 1,
    outcomes: Mapping[str, Outcome] | None = None,
) -> Iterator[SessionScores]:
    """Yield the scores of many sessions in the sessions' order.

    Args:
        sessions: read one by one, at most twice ``concurrency`` of them held at once.
        scorer: must be safe to call from several threads when ``concurrency`` is over 1.
        previous: rows of an earlier run of the same weeks.
        parameters: how sessions are cut.
        concurrency: sessions under way at once; 1 scores in this thread (right for the offline
            evaluator, which waits for nobody).
        outcomes: what is known of sessions from outside, by session.
    """
    known = outcomes or {}
    fingerprint = scoring_fingerprint(scorer, parameters)
    stored = {
        (row.session_id, row.session_digest): row
        for row in previous
        if row.status == "ok" and row.scoring_fingerprint == fingerprint and not row.second_failure
    }

    def stored_row(session: Session) -> SessionScores | None:
        row = stored.get((session.id, session.digest))
        if row is None:
            return None
        return _with_verdict(row, session, known.get(session.id))

    return evaluate(
        ([session] for session in sessions),
        stored_row,
        lambda session: score_session(session, scorer, parameters, known.get(session.id)),
        workers=concurrency,
    )


def _with_verdict(row: SessionScores, session: Session, outcome: Outcome | None) -> SessionScores:
    """Return a stored row with today's verdict; an offline row's completion goes with it."""
    renewed = replace(row, **_facts_and_verdict(session, outcome))
    renewed = replace(renewed, verdict=_decided(renewed.verdict, row.reading, row.model))
    if row.model != OFFLINE or renewed.verdict is None:
        return renewed
    verdicts = (task_completion(renewed.verdict), *row.verdicts[1:])
    return replace(renewed, verdicts=verdicts, overall_quality=_overall(verdicts, None, whole=True))


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
