"""What the index stores of a session: its row in lists, and its words for the search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from debrief.judging.evaluation import weighted_average
from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.markdown import shorten
from debrief.models.session_cost import Prices, messages_cost
from debrief.models.usage import total_cost
from debrief.outcomes.giving import worth_of
from debrief.outcomes.store import (
    DECIDING,
    PEOPLE,
    SUCCESS,
    YES,
    Label,
    Roll,
    all_labels,
    labelled_sessions,
    places_in,
    success_labels,
    success_of,
)
from debrief.rubrics.calibrating import UNCALIBRATED, Calibrations
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.llm_review import STATES_SHOWN
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_judgements, in_order
from debrief.scoring.verdict import basis_with_turns
from debrief.sessions.model import Message, SessionHead, Subagent, Turn, Usage
from debrief.sessions.store import SESSIONS_TABLE
from debrief.sessions.titles import title_of
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.summary import look_first_reason
from debrief.troubles.model import EVENTS, TroubleKind, trouble_id

_TITLE, _REASON = 160, 240
"""Characters of a list's cells."""
_LONGEST_VALUE, _LONGEST_TEXT = 2_000, 60_000
"""Characters that are searched of one argument of a call, and of all prompts, answers or calls of
a session."""


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session, as lists show it. The six dimensions and all scores run from 0 to 1."""

    id: str
    week: str
    started: datetime
    seconds: float
    title: str
    """Its own, else its first request that says something; one line."""
    task: str
    tool: str
    model: str
    """The one that answered most; empty when the transcript has none."""
    source: str
    repository: str = ""
    relative_of: str = ""
    """Of a fork, the session that it was forked from, or that one's original."""
    fingerprint: str = UNKNOWN
    """Of its prompts."""
    turns: int = 0
    tokens: int = 0
    """Input, output and cache writes; cache reads would swamp them."""
    lines_added: int = 0
    lines_removed: int = 0
    spent_usd: float | None = None
    """What its model's calls cost by list prices, subagents included; None when a price is not
    known, or the transcript counts no tokens."""
    quality: float | None = None
    """Overall, calibrated where labels suffice; None where nothing could be scored."""
    raw_quality: float | None = None
    """As it was given, where ``quality`` is calibrated; else None."""
    task_completion: float | None = None
    execution_quality: float | None = None
    tool_mastery: float | None = None
    resource_efficiency: float | None = None
    security_compliance: float | None = None
    user_satisfaction: float | None = None
    judges: float | None = None
    """Mean of the judges' scores, weighted."""
    scored_by: str = ""
    """Whose verdict and numbers these are: a model's name, or ``offline``."""
    verdict: str = ""
    """Whether what was asked was done; empty where nobody has looked."""
    basis: str = ""
    """What the verdict rests on."""
    reason: str = ""
    """The same as a sentence, with the turns that show it."""
    reason_turn: int | None = None
    """The first turn that shows it."""
    place: float | None = None
    """In the order, from 0, to be looked at first, to 1; None where it cannot be compared."""
    place_reason: str = ""
    """The facts that moved it there, of one to be looked at first."""
    probability: float | None = None
    """That it did what was asked; only after labels."""
    uncertain: bool = False
    suspected: bool = False
    """It holds words that look made for a judge."""
    failed: str = ""
    """Why it could not be scored or judged; empty when it could."""
    cost_usd: float | None = None
    """Of scoring and judging it; None when a price was not known."""
    worth: float = 0.0
    """How much a label of it would teach."""
    worth_why: str = ""
    outcome: str = ""
    """``yes`` or ``no``, from what became of its work."""
    outcome_source: str = ""
    labels: str = ""
    """What people said of it, in words."""

    @property
    def known_dimensions(self) -> int:
        """Return how many of the six dimensions have a value."""
        return sum(getattr(self, name) is not None for name in BY_NAME)


_MADE_LATER = (
    *(*BY_NAME, "quality", "raw_quality", "judges", "scored_by", "cost_usd", "fingerprint"),
    *("verdict", "basis", "reason", "reason_turn", "uncertain", "suspected", "failed"),
    *("worth", "worth_why"),
)
MADE_LATER: dict[str, Any] = {
    field.name: field.default
    for field in msgspec.structs.fields(SessionRow)
    if field.name in _MADE_LATER
}
"""The columns that other tables give, with what they are where these have no row."""
PLACED = ("place", "place_reason", "probability")
"""The columns that all sessions together give."""


class _Stored(SessionHead, frozen=True, kw_only=True):
    """The columns of a session that the index reads."""

    title: str = ""
    turns: tuple[Turn, ...] = ()
    subagents: tuple[Subagent, ...] = ()


def texts_of_week(
    lake: Lake, week: str, prices: Prices
) -> Iterator[tuple[SessionRow, tuple[str, str, str]]]:
    """Yield a week's sessions as far as they say it themselves, with their prompts, answers, and
    commands and files."""
    for session in lake.read(SESSIONS_TABLE, week, _Stored):
        prompts = [turn.prompt for turn in session.turns if turn.prompt]
        usage = session.usage
        messages = [
            *(message for turn in session.turns for message in turn.messages),
            *(message for agent in session.subagents for message in agent.messages),
        ]
        inherited = {
            message.id
            for turn in session.turns
            if turn.origin == "inherited"
            for message in turn.messages
        }
        row = SessionRow(
            id=session.id,
            week=week_of(session.started),
            started=session.started,
            seconds=(session.ended - session.started).total_seconds(),
            title=shorten(title_of(session.title, prompts), _TITLE),
            task=session.task,
            tool=session.tool,
            model=next(iter(session.models), ""),
            source=session.source,
            repository=session.repository,
            relative_of=session.relative_of or "",
            turns=sum(turn.is_own for turn in session.turns),
            tokens=usage.input + usage.output + usage.cache_write,
            lines_added=session.lines_added,
            lines_removed=session.lines_removed,
            spent_usd=messages_cost((m for m in messages if m.id not in inherited), prices),
        )
        said = [*prompts, *(deed.text for turn in session.turns for deed in turn.interventions)]
        answers = (message.text for message in messages)
        texts = ([session.title, *said], answers, _actions(messages))
        prompted, answered, done = map(_searched, texts)
        yield row, (prompted, answered, done)


def _actions(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for call in message.calls:
            yield call.name
            yield call.path or ""
            try:
                values = msgspec.json.decode(call.input)
            except (msgspec.DecodeError, RecursionError):
                values = {"": call.input}
            if isinstance(values, dict):
                yield from (
                    value[:_LONGEST_VALUE] for value in values.values() if type(value) is str
                )


def _searched(texts: Iterable[str]) -> str:
    """Join texts, as far as they are searched; half a surrogate pair is no text to SQLite."""
    parts, room = [], _LONGEST_TEXT
    for text in dict.fromkeys(texts):
        parts.append(text[:room])
        room -= len(text)
        if room <= 0:
            break
    return "\n".join(part for part in parts if part).encode("utf-8", "replace").decode()


def week_rows(
    lake: Lake, week: str, calibrations: Calibrations = UNCALIBRATED
) -> dict[str, dict[str, Any]]:
    """Return what the other tables say of a week's sessions: columns and values by session id.

    Args:
        lake: with the tables.
        week: which.
        calibrations: that numbers are shown by.
    """
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in lake.read("session_metadata", week, SessionMetadataRow):
        found[row.session_id].update(fingerprint=row.prompt_fingerprint, task=row.task)
        if row.model:
            found[row.session_id]["model"] = row.model
    every: dict[str, list[SessionScores]] = defaultdict(list)
    for scored in lake.read("session_scores", week, SessionScores):
        every[scored.session_id].append(scored)
    scorers = {session_id: in_order(rows) for session_id, rows in every.items()}
    for session_id, rows in scorers.items():
        found[session_id].update(_of_scores(rows[0], calibrations))
    judged: dict[str, list[JudgeEvaluation]] = defaultdict(list)
    for judgement in lake.read("judge_evaluations", week, JudgeEvaluation):
        judged[judgement.session_id].append(judgement)
    for session_id, judgements in judged.items():
        columns = found[session_id]
        heard = effective_judgements(judgements)
        columns["judges"] = weighted_average(map(calibrations.applied_to_judgement, heard))
        failures = [
            f"{judgement.judge}: {judgement.failure}"
            for judgement in judgements
            if judgement.failure
        ]
        said = any(judgement.injection_suspected for judgement in judgements)
        columns["suspected"] = said or columns.get("suspected", False)
        columns["failed"] = "; ".join(filter(None, [columns.get("failed", ""), *failures]))
        costs = (columns.get("cost_usd"), *(judgement.cost_usd for judgement in judgements))
        columns["cost_usd"] = total_cost(costs)
    for session_id, rows in scorers.items():
        worth = worth_of(rows, judged[session_id])
        found[session_id].update(worth=worth.value, worth_why=" ".join(worth.why))
    return found


def _of_scores(raw: SessionScores, calibrations: Calibrations) -> dict[str, Any]:
    row, is_calibrated = calibrations.applied(raw), calibrations.of_quality(raw) is not None
    columns: dict[str, Any] = dict.fromkeys(BY_NAME)
    columns |= {verdict.dimension: verdict.value for verdict in row.dimension_scores}
    verdict = row.verdict
    if verdict is not None:
        columns |= {
            "verdict": verdict.verdict,
            "basis": verdict.basis,
            "reason": shorten(_read_as(row) or basis_with_turns(verdict), _REASON),
            "reason_turn": verdict.evidence[0].turn if verdict.evidence else None,
        }
    return columns | {
        "quality": row.overall_quality,
        "scored_by": row.model,
        "raw_quality": raw.overall_quality if is_calibrated else None,
        "uncertain": row.uncertain,
        "suspected": row.injection_suspected,
        "failed": row.failure if row.status == "failed" else "",
        "cost_usd": row.cost_usd,
    }


def _read_as(row: SessionScores) -> str:
    """Return what speaks most against a session that a model's reading decides: what is not done,
    else what stood in the way; empty where there is neither, or something else decides."""
    if row.review is None or row.verdict is None or row.verdict.basis != "model":
        return ""
    states = ("not", "partial")
    found = (
        *(
            f"{STATES_SHOWN[state]}: {request.asked}"
            for state in states
            for request in row.review.requests
            if request.state == state
        ),
        *(trouble.what for trouble in row.review.troubles),
    )
    said = next(filter(None, found), "")
    return f"{row.model}: {said}" if said else ""


class _Event(Struct, frozen=True, kw_only=True):
    """The columns of a trouble's event that the index reads."""

    session_id: str
    repository: str
    kind: TroubleKind
    subject: str
    at: datetime
    usage: Usage = Usage()
    cost_usd: float | None = None
    minutes: float | None = None


class TroubleHead(Struct, frozen=True, kw_only=True):
    """The columns of a trouble that the index reads."""

    id: str
    repository: str
    kind: TroubleKind


def events_of_week(lake: Lake, week: str) -> Iterator[tuple[Any, ...]]:
    """Yield each time in a week that something went wrong: its trouble's id, session, week, time,
    kind, tokens, tokens read from the cache, USD and minutes."""
    for event in lake.read(EVENTS, week, _Event):
        usage = event.usage
        yield (
            trouble_id(event.repository, event.kind, event.subject),
            event.session_id,
            week,
            event.at.isoformat(),
            event.kind,
            usage.input + usage.output + usage.cache_write,
            usage.cache_read,
            event.cost_usd,
            event.minutes,
        )


def placed(lake: Lake) -> list[tuple[float, str, float | None, str]]:
    """Return the values of ``PLACED`` for each session that has a place, and its id."""
    return [
        (
            place.place,
            look_first_reason(place) if place.look_first else "",
            place.probability,
            session_id,
        )
        for session_id, place in places_in(lake).items()
    ]


def labels_of(lake: Lake) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return what people said of sessions, and what became of the work of each.

    Of a label that is its session, name, value, source, who said it, and the label in words; of an
    outcome ``yes`` or ``no``, who says so, and the session.
    """
    found = [label for label in all_labels(lake, PEOPLE) if not label.loose]
    roll = Roll(labelled_sessions(lake)) if found else None
    labels: list[tuple[str, ...]] = [
        (
            roll.find(label.session_id) if roll is not None else "",
            *(label.name, label.value, label.source, label.rater),
            _said(label),
        )
        for label in found
    ]
    outcomes: list[tuple[str, ...]] = [
        ("yes" if outcome.success else "no", outcome.source, session_id)
        for session_id, outcome in success_labels(lake, set(DECIDING) - PEOPLE).items()
    ]
    return labels, outcomes


def _said(label: Label) -> str:
    """Return a label in words: ``good``, ``bad``, or its name and value."""
    if label.name.casefold() == SUCCESS:
        success = success_of(label)
        return label.value if success is None else "good" if success else "bad"
    return label.name if label.value.casefold() in YES else f"{label.name}: {label.value}"
