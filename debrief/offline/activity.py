"""A session, or some of its turns, as a plain sequence of what was done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn

_COMPARED = 40


class Activity(Struct, frozen=True):
    """What happened in some turns, subagents' work right behind the turn that started them."""

    turns: tuple[Turn, ...]
    messages: tuple[Message, ...]
    calls: tuple[tuple[int, str, ToolCall], ...]
    """With the number of the turn that each belongs to, and the id of the subagent that made
    it; no id for the session's own agent."""
    subagents: tuple[Subagent, ...]


def activity_of(session: Session, turns: Iterable[int] | None = None) -> Activity:
    """Return what happened in the turns of these numbers; in all of them by default."""
    numbers = None if turns is None else frozenset(turns)
    chosen = tuple(turn for turn in session.turns if numbers is None or turn.number in numbers)
    children = _by_turn(session)
    messages: list[Message] = []
    calls: list[tuple[int, str, ToolCall]] = []
    subagents: list[Subagent] = []
    for turn in chosen:
        own = children.pop(turn.number, [])
        subagents += own
        groups = [("", turn.messages), *((child.id, child.messages) for child in own)]
        for agent, group in groups:
            messages += group
            calls += [(turn.number, agent, call) for message in group for call in message.calls]
    return Activity(chosen, tuple(messages), tuple(calls), tuple(subagents))


def first_prompt(session: Session) -> str:
    """Return the first human prompt, or nothing."""
    return next((t.prompt for t in session.turns if t.number > 0 and t.prompt.strip()), "")


def _by_turn(session: Session) -> dict[int, list[Subagent]]:
    """Group subagents by the turn whose call handed them their prompt, else by time."""
    groups: dict[int, list[Subagent]] = {}
    if not session.subagents or not session.turns:
        return groups
    handed = list(_handed(session))
    for child in session.subagents:
        beginning = _plain(child.prompt)[:_COMPARED]
        number = next((n for n, text in handed if beginning and beginning in text), None)
        if number is None:
            number = _by_time(session, child)
        groups.setdefault(number, []).append(child)
    return groups


def _handed(session: Session) -> Iterator[tuple[int, str]]:
    for turn in session.turns:
        for message in turn.messages:
            for call in message.calls:
                if call.name.lower() in ("task", "agent", "subagent", "spawn_agent"):
                    yield turn.number, _plain(call.input)


def _plain(text: str) -> str:
    """Letters and digits alone: a prompt and its JSON-escaped copy look the same."""
    return "".join(filter(str.isalnum, text.replace("\\n", " ").replace("\\t", " ")))


def _by_time(session: Session, child: Subagent) -> int:
    started = next((message.at for message in child.messages if message.at), None)
    number = session.turns[0].number
    for turn in session.turns:
        if started is not None and turn.at is not None and turn.at <= started:
            number = turn.number
    return number
