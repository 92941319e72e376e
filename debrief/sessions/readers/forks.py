"""Which transcripts are of one session, and which are of a fork of it.

A program that copies a session keeps the ids or times of what it copies. So the transcripts of a
family, those that begin alike or bear one id, are one tree of records, in which each transcript
leads to a leaf. One that leads no further than another holds is an earlier state of it: a copy, a
checkpoint, what was there before a resumption. Where two go on from a shared prompt, each to
prompts of its own, the later one is a fork: a session of its own, a relative of the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import accumulate

from msgspec import UNSET, Struct
from msgspec.structs import replace

from debrief.sessions.model import Message, Session, Turn, Usage
from debrief.sessions.readers.values import unique

_NO_TIME = datetime.max.replace(tzinfo=UTC)


class TurnMark(Struct, frozen=True, kw_only=True, gc=False):
    """What a turn is known by in every copy of it."""

    prompt: str
    """The id of its prompt's record; where there is none, its time and words as ``place``."""
    place: str
    """A digest of its time and words."""
    messages: frozenset[str]
    """The model's, by their ids and times."""
    is_left: bool = False
    """The person went back to before it."""
    is_asked: bool = True
    """A person's prompt, which the model answered."""


class Branch(Struct, frozen=True):
    """The way that one transcript tells, from its beginning to its leaf."""

    turns: tuple[TurnMark, ...] = ()
    is_copy: bool = False
    """Its beginning was written at once, as a program writes what it copies."""

    @property
    def prompts(self) -> frozenset[str]:
        """The prompts in it, those that were left too."""
        return frozenset(turn.prompt for turn in self.turns if turn.is_asked)

    @property
    def way(self) -> frozenset[str]:
        """The prompts that its leaf builds on."""
        return frozenset(turn.prompt for turn in self.turns if turn.is_asked and not turn.is_left)


class Leaf(Struct, frozen=True):
    """One session of a family, by the transcripts that lead to it."""

    members: tuple[int, ...]
    """Numbers of the branches, the one that leads to it first."""
    own_from: str = ""
    """Of a fork, the place of its first own turn: those before it are an earlier session's."""


def place_of_turn(at: datetime | None, prompt: str) -> str:
    """Return a digest of what a turn begins with."""
    return hashlib.sha256(f"{at} {prompt}".encode("utf-8", "replace")).hexdigest()[:16]


def message_mark(id: str, at: datetime | None) -> str:
    """Return what a message is known by, whether or not its id was masked."""
    return f"{id} {at}"


def branch_of(session: Session) -> Branch:
    """Return the branch of a transcript whose prompts have no ids that are kept."""
    return Branch(tuple(map(_mark_of, session.turns)))


def _mark_of(turn: Turn) -> TurnMark:
    place = place_of_turn(turn.at, turn.prompt)
    return TurnMark(
        prompt=place,
        place=place,
        messages=frozenset(map(_mark, turn.messages)),
        is_left=turn.rewound,
        is_asked=turn.origin == "prompt" and bool(turn.messages),
    )


def leaves_of(branches: Sequence[Branch], ids: Sequence[str]) -> list[Leaf]:
    """Return the sessions of a family, the original first.

    Those that share no prompt are parts of one session where they tell one id: in what order its
    records stood nobody can tell.

    Args:
        branches: of its transcripts, originals before copies, as far as they tell.
        ids: of the sessions, as they tell them; empty for one that is no session's alone.
    """
    prompts, ways = [branch.prompts for branch in branches], [branch.way for branch in branches]
    numbers = range(len(branches))

    def is_state_of(number: int, other: int) -> bool:
        """Return whether a branch leads no further than another holds."""
        if number == other or not ways[number] <= prompts[other]:
            return False
        is_same = ways[other] <= prompts[number]
        return not is_same or (-len(prompts[other]), other) < (-len(prompts[number]), number)

    ends = [n for n in numbers if not any(is_state_of(n, other) for other in numbers)]
    sessions: list[list[int]] = []
    for end in ends or numbers[:1]:
        is_fork = any(prompts[end] & prompts[member] for session in sessions for member in session)
        parts = [session for session in sessions if ids[end] and ids[session[0]] == ids[end]]
        if parts and not is_fork:
            parts[0].append(end)
        else:
            sessions.append([end])
    settled = {number for session in sessions for number in session}
    for number in numbers:
        if number not in settled:
            own = (
                session
                for session in sessions
                if any(ways[number] <= prompts[each] for each in session)
            )
            next(own, sessions[0]).append(number)
    return _as_leaves(branches, sessions)


def _as_leaves(branches: Sequence[Branch], sessions: Iterable[Sequence[int]]) -> list[Leaf]:
    prompts: set[str] = set()
    messages: set[str] = set()
    leaves: list[Leaf] = []
    for members in sessions:
        own_from = ""
        if branches[members[0]].prompts & prompts:
            own = (
                turn.place
                for turn in branches[members[0]].turns
                if turn.prompt not in prompts or not turn.messages <= messages
            )
            own_from = next(own, "")
        leaves.append(Leaf(tuple(members), own_from))
        for turn in (turn for member in members for turn in branches[member].turns):
            prompts.add(turn.prompt)
            messages |= turn.messages
    return leaves


def as_fork(session: Session, relative_of: str, own_from: str) -> Session:
    """Return a fork: what it has from the session that it was forked from counts there alone.

    Args:
        session: as its transcripts hold it, with the history that was copied.
        relative_of: the session that it was forked from.
        own_from: see ``Leaf``.
    """
    places = [place_of_turn(turn.at, turn.prompt) for turn in session.turns]
    count = places.index(own_from) if own_from in places else 0
    if not count:
        return replace(session, relative_of=relative_of)
    before, own = session.turns[:count], session.turns[count:]
    copied = [message for turn in before for message in turn.messages]
    calls = {call.id for message in copied for call in message.calls}
    agents = tuple(agent for agent in session.subagents if agent.call_id not in calls)
    copied += [m for agent in session.subagents if agent not in agents for m in agent.messages]
    messages = [message for turn in own for message in turn.messages]
    messages += [message for agent in agents for message in agent.messages]
    edits = [call for message in copied for call in message.calls]
    return replace(
        session,
        relative_of=relative_of,
        turns=(*map(_inherited, before), *own),
        subagents=agents,
        usage=sum((message.usage for message in messages), Usage()),
        api_calls=sum(message.usage != Usage() for message in messages),
        lines_added=max(0, session.lines_added - sum(call.added for call in edits)),
        lines_removed=max(0, session.lines_removed - sum(call.removed for call in edits)),
        slash_commands=_slash_commands(own),
        compactions=max(0, session.compactions - sum(turn.compacted for turn in before)),
        reported_usage=UNSET,
    )


def _inherited(turn: Turn) -> Turn:
    return replace(turn, origin="inherited") if turn.number else turn


def joined(readings: Sequence[Session]) -> Session:
    """Return one session of readings of it: the fullest, with the turns of others that it lacks.

    Args:
        readings: of copies, of earlier states and of parts of it.
    """
    base, *others = sorted(readings, key=_fullness, reverse=True)
    for other in others:
        base = with_turns_of(base, other)
    return base


def _fullness(session: Session) -> tuple[int, int, int, datetime]:
    messages = sum(len(turn.messages) for turn in session.turns)
    records = sum(ref.records for ref in session.transcripts)
    return len(session.turns), messages, records, session.ended


def with_turns_of(base: Session, other: Session) -> Session:
    """Return a session with the turns and subagents of another reading that it lacks, and what
    they count.

    A turn is known by its time and words, or by its messages; one that nothing was said on by its
    words alone, whatever time a copy gives it and whether or not it was still queued there. Of one
    that goes further in the other reading, that is taken.
    """
    turns = {place_of_turn(turn.at, turn.prompt): turn for turn in base.turns}
    words = {turn.prompt for turn in base.turns}
    messages = {_mark(message) for turn in base.turns for message in turn.messages}
    further: dict[str, Turn] = {}
    added: list[Turn] = []
    for turn in other.turns:
        place = place_of_turn(turn.at, turn.prompt)
        if place in turns:
            if len(turn.messages) > len(turns[place].messages):
                further[place] = replace(turn, number=turns[place].number)
        elif turn.messages and not messages.isdisjoint(map(_mark, turn.messages)):
            continue
        elif turn.messages or turn.prompt not in words:
            added.append(turn)
    known = {agent.id for agent in base.subagents}
    agents = [agent for agent in other.subagents if agent.id not in known]
    new = [message for turn in (*further.values(), *added) for message in turn.messages]
    new = [message for message in new if _mark(message) not in messages]
    new += [message for agent in agents for message in agent.messages]
    calls = [call for message in new for call in message.calls]
    paths = {ref.path for ref in base.transcripts}
    return replace(
        base,
        title=base.title or other.title,
        started=min(base.started, other.started),
        ended=max(base.ended, other.ended),
        turns=_in_order((turns | further).values(), added) if further or added else base.turns,
        subagents=(*base.subagents, *agents),
        models=tuple(
            dict.fromkeys((*base.models, *(message.model for message in new if message.model)))
        ),
        usage=sum((message.usage for message in new), base.usage),
        api_calls=base.api_calls + sum(message.usage != Usage() for message in new),
        slash_commands=base.slash_commands + _slash_commands(added),
        lines_added=base.lines_added + sum(call.added for call in calls),
        lines_removed=base.lines_removed + sum(call.removed for call in calls),
        compactions=max(base.compactions, other.compactions),
        transcripts=base.transcripts + tuple(r for r in other.transcripts if r.path not in paths),
        problems=(*base.problems, *other.problems),
        declared_tools=unique((base.declared_tools or ()) + (other.declared_tools or ())) or UNSET,
        base_commit=base.base_commit or other.base_commit,
        system_prompt=base.system_prompt or other.system_prompt,
        instructions=base.instructions or other.instructions,
        reported_usage=UNSET if new else base.reported_usage,
    )


def _mark(message: Message) -> str:
    return message_mark(message.id, message.at)


def _slash_commands(turns: Iterable[Turn]) -> int:
    return sum(deed.kind == "slash_command" for turn in turns for deed in turn.interventions)


def _in_order(turns: Iterable[Turn], added: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return turns by time, numbered anew; the added ones last where one has no time."""
    listed = [*turns, *added]
    if all(turn.at for turn in listed):
        listed.sort(key=lambda turn: turn.at or _NO_TIME)
    numbers = accumulate(int(turn.number > 0) for turn in listed)
    return tuple(
        replace(turn, number=number) if turn.number else turn
        for turn, number in zip(listed, numbers, strict=True)
    )
