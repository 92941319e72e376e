"""One session out of several readings of it: copies, resumptions, parts in other folders."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.sessions.declared import unique
from debrief.sessions.model import Message, Session, Subagent, Turn, Usage

_Timed = TypeVar("_Timed", Turn, Message)


def with_digest(session: Session) -> Session:
    """Return a session with the digest of all that it holds but its status."""
    bare = replace(session, digest="", status=UNSET)
    return replace(session, digest=digest_of(bare))


def united(readings: Sequence[Session]) -> Session:
    """Return one session that holds what any of its readings holds, each message once.

    The most complete reading is taken whole; from the others come the turns, messages and
    subagents that it lacks, with their tokens and growth.
    """
    base, *others = sorted(readings, key=_completeness, reverse=True)
    for other in others:
        base = _with(base, other)
    return base


def completed(session: Session, stored: Session, gone: Collection[str]) -> Session:
    """Return a session with what an earlier reading held besides, of transcripts that are gone.

    Args:
        session: as it is read now, redacted.
        stored: as it was read while all its transcripts were here.
        gone: the paths of those that are not.
    """
    earlier = replace(
        stored,
        transcripts=tuple(ref for ref in stored.transcripts if ref.path in gone),
        problems=tuple(problem for problem in stored.problems if problem.path in gone),
    )
    both = _with(session, earlier)
    if (both.turns, both.subagents) == (session.turns, session.subagents):
        return session
    return replace(
        both,
        redactions=max(session.redactions, stored.redactions),
        unsure_redactions=max(session.unsure_redactions, stored.unsure_redactions),
    )


def _completeness(session: Session) -> tuple[int, int, int, datetime]:
    messages = sum(len(turn.messages) for turn in session.turns)
    records = sum(ref.records for ref in session.transcripts)
    return len(session.turns), messages, records, session.ended


def _with(base: Session, other: Session) -> Session:
    known = {message.id for message in _messages(base) if message.id}
    prompts = {turn.prompt for turn in base.turns if turn.origin == "prompt"}
    added = [rest for turn in other.turns if (rest := _rest(turn, known, prompts)) is not None]
    turns, new = _merged(base.turns, added)
    subagents = _subagents(base.subagents, other.subagents)
    kept = {agent.id for agent in base.subagents}
    new.extend(m for agent in subagents if agent.id not in kept for m in agent.messages)
    calls = [call for message in new for call in message.calls]
    usage = sum((message.usage for message in new), base.usage)
    paths = {ref.path for ref in base.transcripts}
    models = dict.fromkeys((*base.models, *(message.model for message in new if message.model)))
    return replace(
        base,
        title=base.title or other.title,
        started=min(base.started, other.started),
        ended=max(base.ended, other.ended),
        turns=turns,
        subagents=subagents,
        models=tuple(models),
        usage=usage,
        api_calls=base.api_calls + sum(message.usage != Usage() for message in new),
        slash_commands=sum(
            intervention.kind == "slash_command"
            for turn in turns
            for intervention in turn.interventions
        )
        if added
        else base.slash_commands,
        lines_added=base.lines_added + sum(call.added for call in calls),
        lines_removed=base.lines_removed + sum(call.removed for call in calls),
        compactions=max(base.compactions, other.compactions),
        transcripts=(
            *base.transcripts,
            *(ref for ref in other.transcripts if ref.path not in paths),
        ),
        problems=(*base.problems, *other.problems),
        declared_tools=unique((*(base.declared_tools or ()), *(other.declared_tools or ())))
        or UNSET,
        notices=tuple(sorted({*(base.notices or ()), *(other.notices or ())})) or UNSET,
        base_commit=base.base_commit or other.base_commit,
    )


def _messages(session: Session) -> Iterable[Message]:
    parts: tuple[Turn | Subagent, ...] = (*session.turns, *session.subagents)
    return (message for part in parts for message in part.messages)


def _rest(turn: Turn, known: set[str], prompts: set[str]) -> Turn | None:
    """Return a turn without the messages that are known; None when nothing is left of it.

    A prompt on which nothing else was said is known when its words are, whatever time the copy
    gives it, and whether or not it was still queued there.
    """
    messages = tuple(message for message in turn.messages if message.id not in known)
    if messages:
        return replace(turn, messages=messages)
    if turn.prompt in prompts or (turn.number == 0 and not turn.interventions):
        return None
    return replace(turn, messages=messages)


def _merged(base: tuple[Turn, ...], added: list[Turn]) -> tuple[tuple[Turn, ...], list[Message]]:
    """Put turns into others by prompt and time; return all of them and the messages that are new.

    A message without an id is known by its turn alone, so a turn that both have brings none.
    """
    turns = {_key(turn): turn for turn in base}
    new: list[Message] = []
    for turn in added:
        key = _key(turn)
        mine = turns.get(key)
        if mine is None:
            turns[key] = turn
            new.extend(turn.messages)
            continue
        fresh = tuple(message for message in turn.messages if message.id)
        if fresh:
            new.extend(fresh)
            messages = tuple(_in_time(mine.messages + fresh))
            turns[key] = replace(mine, messages=messages, ended=_later(mine.ended, turn.ended))
    ordered = _in_time(turns.values())
    numbers = accumulate(int(turn.number > 0) for turn in ordered)
    return tuple(
        replace(turn, number=number) if turn.number else turn
        for turn, number in zip(ordered, numbers, strict=True)
    ), new


def _in_time(items: Iterable[_Timed]) -> list[_Timed]:
    """Return turns or messages by time; as they are when one of them has no time."""
    listed = list(items)
    timed = [(item.at, index) for index, item in enumerate(listed) if item.at is not None]
    return [listed[index] for _, index in sorted(timed)] if len(timed) == len(listed) else listed


def _key(turn: Turn) -> tuple[object, ...]:
    return (turn.number if turn.at is None else turn.at, turn.prompt)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max(one, other) if one and other else one or other


def _subagents(base: tuple[Subagent, ...], other: tuple[Subagent, ...]) -> tuple[Subagent, ...]:
    known = {agent.id for agent in base}
    return base + tuple(agent for agent in other if agent.id not in known)
