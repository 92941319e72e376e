"""Extraction with a language model: rubrics out of the best sessions, their evidence verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, structs

from debrief.errors import DebriefError
from debrief.models.fencing import marker_of
from debrief.rubrics.asking import Ask, ask_until_read
from debrief.rubrics.contrast import score_of
from debrief.rubrics.evidence import evidence_in
from debrief.rubrics.model import DroppedRubric, ExtractedRubric, Mined, UnminedSession
from debrief.rubrics.parsing import ParsedRubric, parse_rubrics
from debrief.rubrics.showing import BUDGET, parts_of, show
from debrief.rubrics.templates import extractor_for, load_template, render
from debrief.scoring.model import ScoreName, SessionScores
from debrief.sessions.model import Session
from debrief.slugs import slugify


class ModelExtractionOptions(Struct, frozen=True, kw_only=True):
    """Which sessions are mined, and how many rubrics are asked for."""

    share: float = 0.25
    """Of the scored sessions, the best ones."""
    minimum: int = 1
    """Sessions at least."""
    fewest: int = 3
    most: int = 7
    budget: int = BUDGET
    """Tokens of a session in one prompt; a longer one is mined in parts."""


UNPROVEN = "what it quotes does not stand in the session"


class _Mined(Struct, frozen=True, kw_only=True):
    session: Session
    rubrics: tuple[ParsedRubric, ...] = ()
    failure: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


def extract_with_model(
    sessions: Iterable[Session],
    scores: Iterable[SessionScores],
    score_name: ScoreName,
    week: str,
    ask: Ask,
    model: str,
    *,
    options: ModelExtractionOptions | None = None,
    workers: int = 1,
    secret: bytes = b"",
) -> Mined:
    """Mine the best sessions of a week with a language model.

    The same rubric, by its name, found in several sessions is one row with the evidence of all.
    A rubric whose quotation does not stand in its session is dropped. A session that fails is
    reported and costs nothing else.

    Args:
        sessions: of the week.
        scores: of the week; a session without a usable score is left out.
        score_name: what good means.
        week: the ISO date of its Monday.
        ask: the door to the model.
        model: its name.
        options: which sessions are mined, and how many rubrics are asked for.
        workers: calls at a time.
        secret: of this machine; with it a session's prompt is the same in every run, so that
            its answer can be kept.
    """
    options = options or ModelExtractionOptions()
    best = _best(sessions, scores, score_name, options)
    parts = [part for session in best for part in parts_of(session, budget=options.budget)]

    def mine(part: Session) -> _Mined:
        return _mine(part, score_name, ask, model, options, secret)

    if workers > 1 and len(parts) > 1:
        with ThreadPoolExecutor(workers, thread_name_prefix="extraction") as pool:
            mined = list(pool.map(mine, parts))
    else:
        mined = [mine(part) for part in parts]
    rubrics, dropped = _proven(mined, score_name, week, model)
    costs = [one.cost_usd for one in mined]
    return Mined(
        rubrics=tuple(rubrics),
        dropped=tuple(dropped),
        unmined=tuple(
            UnminedSession(
                session_id=one.session.id,
                score_name=score_name,
                extractor=model,
                reason=one.failure,
            )
            for one in mined
            if one.failure
        ),
        input_tokens=sum(one.input_tokens for one in mined),
        output_tokens=sum(one.output_tokens for one in mined),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _best(
    sessions: Iterable[Session],
    scores: Iterable[SessionScores],
    score_name: ScoreName,
    options: ModelExtractionOptions,
) -> list[Session]:
    rated = ((row.session_id, score_of(row, score_name)) for row in scores)
    values = {id_: value for id_, value in rated if value is not None}
    usable = {s.id: s for s in sessions if s.id in values and s.prompt_count}
    ranked = sorted(usable, key=lambda id_: (-values[id_], id_))
    count = max(options.minimum, round(options.share * len(ranked)))
    return [usable[id_] for id_ in ranked[:count]]


def _mine(
    part: Session,
    score_name: str,
    ask: Ask,
    model: str,
    options: ModelExtractionOptions,
    secret: bytes,
) -> _Mined:
    first = part.turns[0].number if part.turns else 0
    marker = marker_of(secret, part.id, part.digest, f"from {first}") if secret else ""
    shown = show(part, marker=marker, budget=options.budget)
    question = render(
        load_template(extractor_for(score_name)),
        {
            "chat_session": shown.pointer,
            "extraction_min_rubrics": options.fewest,
            "extraction_max_rubrics": options.most,
        },
    )
    prompt = f"{shown.text}\n\n{question.rstrip()}\n\n{load_template('rubric_evidence')}"
    try:
        asked = ask_until_read(
            ask, prompt, parse_rubrics, model=model, about=f"rubrics in session {part.id}"
        )
    except DebriefError as error:
        return _Mined(session=part, failure=str(error), cost_usd=None)
    return _Mined(
        session=part,
        rubrics=tuple(asked.value[: options.most]),
        input_tokens=asked.input_tokens,
        output_tokens=asked.output_tokens,
        cost_usd=asked.cost_usd,
    )


def _proven(
    mined: Sequence[_Mined], score_name: ScoreName, week: str, model: str
) -> tuple[list[ExtractedRubric], list[DroppedRubric]]:
    rows: dict[str, ExtractedRubric] = {}
    dropped: list[DroppedRubric] = []
    for parsed, session in _with_sessions(mined):
        evidence = evidence_in(parsed.evidence, session)
        if not evidence:
            dropped.append(
                DroppedRubric(
                    score_name=score_name, extractor=model, name=parsed.name, reason=UNPROVEN
                )
            )
            continue
        key = slugify("-".join(parsed.name.casefold().split()))
        row = ExtractedRubric(
            id=f"{week}.{score_name}.{key}",
            score_name=score_name,
            week=week,
            name=parsed.name,
            description=parsed.description,
            scoring_criteria=parsed.scoring_criteria,
            evidence=evidence,
            extractor=model,
            best_count=1,
            sessions=(session.id,),
        )
        rows[row.id] = _joined(rows[row.id], row) if row.id in rows else row
    return list(rows.values()), dropped


def _with_sessions(mined: Sequence[_Mined]) -> Iterator[tuple[ParsedRubric, Session]]:
    for one in mined:
        for rubric in one.rubrics:
            yield rubric, one.session


def _joined(first: ExtractedRubric, again: ExtractedRubric) -> ExtractedRubric:
    sessions = tuple(dict.fromkeys((*first.sessions, *again.sessions)))
    return structs.replace(
        first,
        evidence=tuple(dict.fromkeys((*first.evidence, *again.evidence))),
        sessions=sessions,
        best_count=len(sessions),
    )
