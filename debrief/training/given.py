"""What a model was given before the first prompt, and each turn's request and work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.sessions.model import ContextText, Intervention, Message, Session, Turn
from debrief.snapshots.capture import prompt_files
from debrief.snapshots.model import PromptSnapshotRow

SystemPrompt = Literal["recorded", "own", "none"]
"""Which is asked for: the one that the model was sent, where the transcript holds it; the person's
own prompts alone; or none."""
Origin = Literal["recorded", "rebuilt", "none"]
_OPEN, _CLOSE = "<system-reminder>\n", "\n</system-reminder>\n\n"
_REMINDER = re.compile(rf"{_OPEN}.*?{_CLOSE}", re.DOTALL)


class Given(Struct, frozen=True, kw_only=True):
    """What comes before the words of a conversation."""

    system: str = ""
    """The system message; empty for none."""
    reminder: str = ""
    """What the first prompt begins with: prompts that the program puts there; empty for none."""
    origin: Origin = "none"
    """Whether the transcript holds what the model was sent, or it was rebuilt from what is known of
    the person's prompts and of where their program puts them."""


def given_to(
    session: Session, snapshot: PromptSnapshotRow | None, asked: SystemPrompt = "recorded"
) -> Given:
    """Return what the model of a session was given before the first prompt.

    The person's own prompts stand where their program puts them, and not twice: a recorded system
    prompt already holds those that are a part of it.
    """
    if asked == "none":
        return Given()
    in_system, in_message = _own(session, snapshot)
    reminder = f"{_OPEN}{in_message}{_CLOSE}" if in_message else ""
    if asked == "recorded" and session.system_prompt:
        if in_message in session.system_prompt:  # as with prompts that `debrief code` handed over
            reminder = ""
        return Given(system=session.system_prompt, reminder=reminder, origin="recorded")
    origin: Origin = "rebuilt" if in_system or in_message else "none"
    return Given(system=in_system, reminder=reminder, origin=origin)


def _own(session: Session, snapshot: PromptSnapshotRow | None) -> tuple[str, str]:
    """Return the person's own prompts in the system prompt, and before the first prompt."""
    if session.instructions:
        system, message = (
            "\n\n".join(
                text
                for instruction in session.instructions
                if instruction.place == place and (text := instruction.text.strip("\n"))
            )
            for place in ("system", "message")
        )
        return system, message
    main = snapshot.main if snapshot and snapshot.main.strip() else ""
    return ("", main.strip("\n")) if prompt_files(session.tool).place == "message" else (main, "")


def without_reminder(prompt: str) -> str:
    """Return the words of a line's prompt without the reminder that it begins with."""
    match = _REMINDER.match(prompt)
    return prompt[match.end() :] if match else prompt


_TYPED = ("slash_command", "remark")
_THOUGHTS = re.compile(r"\A\s*<(think|thinking)>(?P<thought>.*?)</\1>\s*", re.DOTALL)


class Request(Struct, kw_only=True):
    """What a person asked for, and what the model did on it."""

    text: str
    images: int = 0
    answers: list[Message] = []
    """With what the model was given before each that no person wrote."""
    is_stopped: bool = False
    """The person interrupted the model after the last answer: it was not at its end."""


def requests_in(turn: Turn) -> Iterator[Request]:
    """Yield the requests of a turn: its prompt, remarks made while the model worked, and the slash
    commands that it took up.

    A command is taken up when the model speaks before anything else is typed. Others, such as
    ``/clear``, are a person's business with the program alone.
    """
    typed = [
        intervention
        for intervention in turn.interventions
        if intervention.kind in _TYPED and intervention.text.strip()
    ]
    request = Request(text=_with_expansion(turn.prompt, turn.expansion), images=turn.images)
    context: tuple[ContextText, ...] = ()
    for message in turn.messages:
        context += message.context
        if not is_answer(message):
            continue
        message, context = replace(message, context=context), ()
        is_first = not request.answers
        before = [
            intervention
            for intervention in typed
            if (intervention.at <= message.at if intervention.at and message.at else is_first)
        ]
        typed = [intervention for intervention in typed if intervention not in before]
        if not request.answers and (request.text.strip() or request.images):
            # A prompt that nothing was said on before a command is what came of the command.
            remarks = [
                _words(intervention) for intervention in before if intervention.kind == "remark"
            ]
            request.text = "\n\n".join(filter(None, [request.text, *remarks]))
        elif before:
            yield request
            request = Request(text="\n\n".join(map(_words, _heard(before))))
        request.answers.append(message)
    request.is_stopped = is_stopped(turn, request.answers)
    yield request
    for remark in typed:
        if remark.kind == "remark":
            yield Request(text=_words(remark))


def is_answer(message: Message) -> bool:
    """Return whether the model said or called anything in a message."""
    return bool(thoughts_and_words(message)[1].strip() or message.calls)


def is_stopped(turn: Turn, answers: Sequence[Message]) -> bool:
    """Return whether the person interrupted the model after the last of its answers in a turn."""
    last = answers[-1].at if answers else None
    stops = [
        intervention.at
        for intervention in turn.interventions
        if intervention.kind == "interruption"
    ]
    return any(at is None or last is None or at >= last for at in stops)


def _heard(typed: Sequence[Intervention]) -> list[Intervention]:
    """Return all remarks, and of the commands the last: that is the one that was taken up."""
    commands = [intervention for intervention in typed if intervention.kind == "slash_command"]
    return [
        intervention
        for intervention in typed
        if intervention.kind == "remark" or intervention is commands[-1]
    ]


def _words(typed: Intervention) -> str:
    text = typed.text.strip()
    words = text if typed.kind == "remark" or text.startswith("/") else f"/{text}"
    return _with_expansion(words, typed.expansion)


def _with_expansion(command: str, expansion: str) -> str:
    """Return a slash command with the text that the model was given for it."""
    return f"{command}\n\n{expansion.strip()}" if expansion.strip() else command


def thoughts_and_words(message: Message) -> tuple[str, str]:
    """Return what the model thought, and what it said without the thoughts written out before it.

    >>> thoughts_and_words(Message(id="", model="", text="<think>A cat?</think>\\n\\nA cat."))
    ('A cat?', 'A cat.')
    """
    written = _THOUGHTS.match(message.text) if "</think" in message.text else None
    if written is None:
        return message.thinking, message.text
    thoughts = (message.thinking, written["thought"].strip())
    return "\n\n".join(filter(None, thoughts)), message.text[written.end() :]
