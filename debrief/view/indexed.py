"""What the index stores of a session: its row in lists, and its words for the search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, get_args

import msgspec
from msgspec import Struct

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.markdown import shorten
from debrief.models.session_cost import Prices, messages_cost
from debrief.models.usage import total_cost
from debrief.outcomes.store import (
    PEOPLE,
    SUCCESS,
    YES,
    Label,
    Roll,
    all_labels,
    labelled_sessions,
    success_of,
)
from debrief.outcomes.verdicts import SCORES, verdicts_in
from debrief.scoring.llm_review import STATES_SHOWN, SessionReview
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import in_order
from debrief.scoring.verdict import SessionVerdict, basis_with_turns
from debrief.sessions.model import Evidence, Message, SessionHead, Subagent, Turn
from debrief.sessions.store import SESSIONS_TABLE
from debrief.sessions.titles import title_of
from debrief.signals.display import check_sentence, event_sentence
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import EventKind, SessionSignals
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.view.wording import objection_shown

_TITLE, _REASON = 160, 240
"""Characters of a list's cells."""
_FEW_CALLS = 2
"""Calls from which on a session without words did something."""
_LONGEST_VALUE, _LONGEST_TEXT = 2_000, 60_000
"""Characters that are searched of one argument of a call, and of all prompts, answers or calls of
a session."""


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session, as lists show it."""

    id: str
    week: str
    started: datetime
    seconds: float
    title: str
    """Its own, else the longest of its first requests; one line."""
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
    is_stub: bool = False
    """It has no request, no answer and fewer than two calls."""
    work: str = ""
    """What was worked on; empty where its signals are not read yet."""
    event: str = ""
    """What a person would want to look at first, by kind; empty where there is nothing."""
    urgency: int | None = None
    """Of that kind, from 0, the most urgent; None where there is nothing."""
    event_count: int = 0
    """How often it happened."""
    event_shown: str = ""
    """The same as a clause, with its turns."""
    event_turn: int | None = None
    check_shown: str = ""
    """The check that counts, as a clause; empty where none ran that covers the change."""
    check_turn: int | None = None
    reviewed_by: str = ""
    """The model whose review counts; empty where none reviewed it."""
    quality: float | None = None
    """Of that review, from 0 to 1; None where it says nothing."""
    review_verdict: str = ""
    """Of that review, as far as signals let it stand."""
    review_reason: str = ""
    """What the review rests on, or what it says is open, as a sentence with its turns."""
    review_turn: int | None = None
    verdict: str = ""
    """The one that counts: a person's, an outcome's, else the review's; empty without any."""
    basis: str = ""
    """Who gave it, by kind."""
    reviewer: str = ""
    """Who gave it: a person, an outcome's source, or a model."""
    reason: str = ""
    """What it rests on, of a review."""
    reason_turn: int | None = None
    """The first turn that shows it."""
    uncertain: bool = False
    suspected: bool = False
    """It holds words that look made for a judge."""
    failed: str = ""
    """Why it could not be reviewed or judged; empty when it could, or nobody tried."""
    cost_usd: float | None = None
    """Of reviewing and judging it; None when a price was not known."""
    labels: str = ""
    """What people said of it, in words."""


_MADE_LATER = (
    *("fingerprint", "work", "event", "urgency", "event_count", "event_shown", "event_turn"),
    *("check_shown", "check_turn", "reviewed_by", "quality"),
    *("review_verdict", "review_reason", "review_turn"),
    *("uncertain", "suspected", "failed", "cost_usd"),
)
MADE_LATER: dict[str, Any] = {
    field.name: field.default
    for field in msgspec.structs.fields(SessionRow)
    if field.name in _MADE_LATER
}
"""The columns that other tables of a week give, with what they are where these have no row."""
DECIDED = ("verdict", "basis", "reviewer", "reason", "reason_turn")
"""The columns that labels give, and reviews where there is no label."""
_URGENCY: dict[EventKind, int] = {kind: place for place, kind in enumerate(get_args(EventKind))}


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
        said = [*prompts, *(deed.text for turn in session.turns for deed in turn.interventions)]
        is_silent = not any(text.strip() for text in (*said, *(m.text for m in messages)))
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
            is_stub=is_silent and sum(len(message.calls) for message in messages) < _FEW_CALLS,
        )
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


def week_rows(lake: Lake, week: str) -> dict[str, dict[str, Any]]:
    """Return what the other tables say of a week's sessions: columns and values by session id."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in lake.read("session_metadata", week, SessionMetadataRow):
        found[row.session_id].update(fingerprint=row.prompt_fingerprint, task=row.task)
        if row.model:
            found[row.session_id]["model"] = row.model
    signals = {row.session_id: row for row in lake.read(SIGNALS, week, SessionSignals)}
    for session_id, signal in signals.items():
        found[session_id].update(_of_signals(signal))
    every: dict[str, list[SessionScores]] = defaultdict(list)
    for scored in lake.read(SCORES, week, SessionScores):
        every[scored.session_id].append(scored)
    judged: dict[str, list[JudgeEvaluation]] = defaultdict(list)
    for judgement in lake.read("judge_evaluations", week, JudgeEvaluation):
        judged[judgement.session_id].append(judgement)
    for session_id in {*every, *judged}:
        columns, rows = found[session_id], in_order(every[session_id])
        judgements = judged[session_id]
        if rows:
            columns.update(_of_review(rows[0], signals.get(session_id)))
        failures = (f"{each.judge}: {each.failure}" for each in judgements if each.failure)
        columns["failed"] = "; ".join(filter(None, [columns.get("failed", ""), *failures]))
        given: list[SessionScores | JudgeEvaluation] = [*rows[:1], *judgements]
        columns["suspected"] = any(each.injection_suspected for each in given)
        columns["cost_usd"] = total_cost(each.cost_usd for each in given)
    return found


def _of_signals(signals: SessionSignals) -> dict[str, Any]:
    columns: dict[str, Any] = {"work": signals.work}
    if signals.events:
        event = signals.events[0]
        columns |= {
            "event": event.kind,
            "urgency": _URGENCY[event.kind],
            "event_count": event.count,
            "event_shown": event_sentence(event),
            "event_turn": _first_turn(event.evidence),
        }
    if (check := signals.last_check) is not None:
        columns |= {"check_shown": check_sentence(check), "check_turn": check.evidence.turn}
    return columns


def _of_review(row: SessionScores, signals: SessionSignals | None) -> dict[str, Any]:
    if row.status != "ok" or row.verdict is None:
        return {"failed": row.failure, "cost_usd": row.cost_usd}
    return {
        "reviewed_by": row.model,
        "quality": row.overall_quality,
        "review_verdict": row.verdict.verdict,
        "review_reason": shorten(_reason(row.verdict, row.review, signals), _REASON),
        "review_turn": _first_turn(row.verdict.evidence),
        "uncertain": row.uncertain,
    }


def _first_turn(evidence: Iterable[Evidence]) -> int | None:
    return next((place.turn for place in evidence), None)


def _reason(
    verdict: SessionVerdict, review: SessionReview | None, signals: SessionSignals | None
) -> str:
    """Return what speaks most against a session: a signal against its review, what the review says
    is not done, or what stood in the way; else what the review rests on."""
    if objection := objection_shown(verdict, signals.last_check if signals else None):
        return objection
    requests = review.requests if review is not None else ()
    found = (
        *(
            f"{STATES_SHOWN[state]}: {request.asked}"
            for state in ("not", "partial")
            for request in requests
            if request.state == state
        ),
        *(friction.what for friction in (review.frictions if review is not None else ())),
    )
    return next(filter(None, found), "") or basis_with_turns(verdict)


class _Events(Struct, frozen=True, kw_only=True):
    """The columns of signals that count events."""

    session_id: str
    events: tuple[_EventHead, ...] = ()


class _EventHead(Struct, frozen=True, kw_only=True):
    kind: EventKind
    evidence: tuple[Evidence, ...]


def session_events_of_week(lake: Lake, week: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield each kind of event of a week's sessions: session, week, kind, and how often."""
    for row in lake.read(SIGNALS, week, _Events):
        for event in row.events:
            yield row.session_id, week, event.kind, len(event.evidence)


def labels_of(lake: Lake) -> Iterator[tuple[str, ...]]:
    """Yield what people said of sessions: session, name, value, source, who said it, and the label
    in words."""
    found = [label for label in all_labels(lake, PEOPLE) if not label.loose]
    roll = Roll(labelled_sessions(lake)) if found else None
    for label in found:
        yield (
            roll.find(label.session_id) if roll is not None else "",
            *(label.name, label.value, label.source, label.rater),
            _said(label),
        )


def decided_by_labels(lake: Lake) -> Iterator[tuple[str, str, str, str]]:
    """Yield the verdicts that people and outcomes give: session, verdict, basis, who says so."""
    for session_id, verdict in verdicts_in(lake, weeks=()).items():
        yield session_id, verdict.verdict, verdict.basis, verdict.source


def _said(label: Label) -> str:
    """Return a label in words: ``good``, ``bad``, or its name and value."""
    if label.name.casefold() == SUCCESS:
        success = success_of(label)
        return label.value if success is None else "good" if success else "bad"
    return label.name if label.value.casefold() in YES else f"{label.name}: {label.value}"
