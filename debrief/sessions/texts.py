"""The free texts of a session: whatever a person, a model or a tool wrote into it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from debrief.sessions.model import Message, Session


def texts_of(session: Session) -> Iterator[str]:
    """Yield every text of a session and its subagents, those in a call's arguments unescaped."""
    yield from (session.branch, session.cwd, session.title)
    for turn in session.turns:
        yield turn.prompt
        yield from (deed.text for deed in turn.interventions)
        for message in turn.messages:
            yield from _of_message(message)
    for agent in session.subagents:
        yield from (agent.description, agent.prompt)
        for message in agent.messages:
            yield from _of_message(message)


def _of_message(message: Message) -> Iterator[str]:
    yield message.text
    for call in message.calls:
        yield call.name
        yield from _strings(call.input)
        yield from (text for text in (call.path, call.result) if text)


def _strings(arguments: str) -> Iterator[str]:
    try:
        values = [msgspec.json.decode(arguments)]
    except (msgspec.DecodeError, RecursionError):
        values = [arguments]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            values += value
