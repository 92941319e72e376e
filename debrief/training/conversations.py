"""A session's messages in OpenAI's chat form, with names and texts as every trainer takes them.

The conversation holds what the person said, what the model thought, said and called, and what came
back, in strict turns: a user message, then assistant messages with their results, closed by an
assistant message without calls. A slash command that the model took up is a user message where it
was typed. What the transcript lacks is neither invented nor left open: a fixed text in round
brackets stands for it, and is counted. What else was in the model's request that no person wrote,
such as a command's output, a notice or a hook's context, stands there in its program's own tags: as
the user's, before their words, or behind the results that came with it. ``machine`` says where.

An assistant message of ours, one on a request that is not known or on a notice whose text is not
known, one that the person interrupted before it came to its calls, one whose call was refused or
has no result, those on a request of which a call's arguments are not known, those that a fork has
from its original, and all that the person's next words reject, undo or correct carry ``weight`` 0,
OpenAI's mark for what is not trained on.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import orjson
from msgspec import UNSET
from msgspec.structs import replace

from debrief.sessions.model import Message, Session, ToolCall, Turn
from debrief.sessions.readers.documents import mend, mend_text
from debrief.signals.user_feedback import correction_in
from debrief.training.given import Request, requests_in, thoughts_and_words
from debrief.training.model import (
    ChatCall,
    ChatFunction,
    ChatMessage,
    NotTrained,
    NotTrainedReason,
)

NO_PROMPT = "(no prompt recorded)"
NO_RESULT = "(no result recorded)"
REJECTED = "(the user rejected this call)"
TURN_ENDED = "(the turn ended here)"

_PICTURE = "[Image #"
_LONGEST_NAME = 64
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{_LONGEST_NAME}}}")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_NAMED = {"repo.readFile": "repo_readFile"}
"""Of the recorder's own tools, as its page names them."""
_TIME_LIKE = re.compile(r"\d{4}-\d\d?-\d\d?([T ][\d:]+(Z|[+-][\d:]+)?)?\Z")
_ASKING = ("command", "task", "agent")
"""Whose texts a model answers though nobody asks it anything."""


class ConversationBuilder:
    """A conversation as it grows, turn by turn, in the order that every chat template takes."""

    def __init__(
        self, system: str = "", reminder: str = "", parts: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        """Each call's tool, as the transcript names it, and its arguments."""
        self.stand_ins = self.machine_texts = 0
        self._turn = 0
        """The turn of the last answer."""
        self._is_known = True
        """Whether the last request is."""
        self._has_arguments = True
        """Whether those of all calls on the last request are known."""
        self._parts = parts
        """First and last turn of each part that is trained on; all where there is none."""
        self._reminder = reminder
        """What the first prompt begins with."""
        self._messages: list[ChatMessage] = []
        if system.strip():
            self._messages.append(ChatMessage(role="system", content=system))

    def add_turn(self, turn: Turn) -> None:
        """Add what was asked for in a turn and what the model did on it."""
        before = len(self._messages)
        for request in requests_in(turn):
            correction = correction_in(request.text)
            if correction:
                self._discredit(correction)
            self._turn = turn.number if request.answers else self._turn
            self._add_request(request)
        for place in range(before, len(self._messages)) if turn.origin == "inherited" else ():
            if self._messages[place].role == "assistant":
                self._messages[place] = self._untrained(self._messages[place], "inherited")

    def close(self) -> tuple[ChatMessage, ...]:
        """End the conversation on an assistant message without calls, and return it.

        A prompt that was never answered is taken off again.
        """
        self._close_turn()
        if self._last == "user":
            self._messages.pop()
        return marked(self._messages)

    @property
    def _last(self) -> str:
        return self._messages[-1].role if self._messages else ""

    def _add_request(self, request: Request) -> None:
        pictures = _pictures(request)
        self.stand_ins += bool(pictures)
        words = [part for part in (request.text, pictures) if part.strip()]
        if words and not request.answers:
            self._ask([], words)
        calls = (call for answer in request.answers for call in answer.calls)
        self._has_arguments = all(call.input for call in calls)
        for answer in request.answers:
            is_whole = self._give(answer, words)
            self._add_answer(answer, is_trained=is_whole)
            words = []
        if request.is_stopped and self._last == "assistant":
            self._messages[-1] = self._untrained(self._messages[-1], "interrupted")

    def _give(self, answer: Message, words: Sequence[str]) -> bool:
        """Add what the model was given before an answer; return whether all of it is known."""
        given = [text for text in answer.context if text.text.strip()]
        context = [text.text for text in given]
        is_whole = len(context) == len(answer.context)
        added = [answer.summary, *context] if answer.summary else context
        self.machine_texts += len(context)
        is_begun = self._last not in ("", "system")
        if words or answer.summary:
            behind = [text.text for text in given if text.is_behind]
            self._ask([text for text in added if text not in behind], words, behind)
            return True
        if is_begun and self._last == "tool":
            self._messages[-1] = _with(self._messages[-1], added, [])
            return is_whole
        if added and (is_begun or any(text.said_by in _ASKING for text in answer.context)):
            self._ask(added, [])
        elif not is_begun or not is_whole:
            self.stand_ins += 1
            self._ask(added, [NO_PROMPT], is_known=False)
        return True

    def _untrained(
        self, message: ChatMessage, reason: NotTrainedReason, sign: str = ""
    ) -> ChatMessage:
        why = NotTrained(turn=self._turn, reason=reason, sign=sign)
        return replace(message, weight=0, not_trained=message.not_trained or why)

    def _discredit(self, sign: str) -> None:
        """Train on no answer to the last request: the person rejects, undoes or corrects them."""
        place = len(self._messages) - 1
        while place >= 0 and self._messages[place].role in ("assistant", "tool"):
            if self._messages[place].role == "assistant":
                said = self._messages[place]
                self._messages[place] = self._untrained(said, "corrected", sign)
            place -= 1

    def _ask(
        self,
        added: Sequence[str],
        words: Sequence[str],
        behind: Sequence[str] = (),
        *,
        is_known: bool = True,
    ) -> None:
        """Add a message of the user's: what no person wrote, the person's words, and what no person
        wrote behind them."""
        self._close_turn()
        if self._last == "user":
            self._messages[-1] = _with(self._messages[-1], added, words, behind)
        else:
            asked = _with(ChatMessage(role="user", content=""), added, words, behind)
            self._messages.append(moved(asked, self._reminder, 0))
            self._reminder = ""
        self._is_known = is_known

    def _add_answer(self, answer: Message, *, is_trained: bool) -> None:
        thoughts, text = thoughts_and_words(answer)
        text = text if text.strip() else ""
        calls = tuple(self._call(call) for call in answer.calls)
        if self._last == "assistant":
            message = _joined(self._messages.pop(), text, thoughts)
        else:
            message = ChatMessage(role="assistant", content=text, reasoning_content=thoughts)
        for reason in self._reasons_against(answer, is_trained):
            message = self._untrained(message, reason)
        self._messages.append(replace(message, tool_calls=calls) if calls else message)
        for call, source in zip(calls, answer.calls, strict=True):
            self._messages.append(
                ChatMessage(role="tool", content=self._result(source), tool_call_id=call.id)
            )

    def _reasons_against(self, answer: Message, is_trained: bool) -> Iterator[NotTrainedReason]:
        if not self._is_known:
            yield "unknown_request"
        elif not is_trained:
            yield "notice"
        if any(call.status == "rejected" for call in answer.calls):
            yield "refused"
        elif any(call.result is None for call in answer.calls):
            yield "no_result"
        if not self._has_arguments:
            yield "unknown_arguments"
        if self._parts and not any(first <= self._turn <= last for first, last in self._parts):
            yield "other_part"

    def _call(self, call: ToolCall) -> ChatCall:
        arguments, text = call_arguments(call.input)
        self.stand_ins += not call.input
        self.calls.append((call.name, arguments))
        return ChatCall(
            id=call_id(len(self.calls)),
            type="function",
            function=ChatFunction(name=function_name(call.name), arguments=text),
        )

    def _result(self, call: ToolCall) -> str:
        if call.result is not None:
            return call.result
        self.stand_ins += 1
        return REJECTED if call.status == "rejected" else NO_RESULT

    def _close_turn(self) -> None:
        closed = ending_on_words(self._messages)
        self.stand_ins += len(closed) - len(self._messages)
        self._messages = closed


def _pictures(request: Request) -> str:
    """Return a text in place of the images of a request whose words do not mark their places."""
    if not request.images or _PICTURE in request.text:
        return ""
    return f"({request.images} image{'s'[: request.images > 1]})"


def conversation_of(
    session: Session, system: str = "", reminder: str = "", parts: Sequence[tuple[int, int]] = ()
) -> ConversationBuilder:
    """Return a session's conversation, without the turns that the person went back behind: what
    the model said later, it said without having seen them.

    Args:
        session: of which.
        system: the system prompt.
        reminder: what the first prompt begins with.
        parts: first and last turn of each part that a model may learn from; all when empty.
    """
    conversation = ConversationBuilder(system, reminder, parts)
    for turn in session.turns:
        if not turn.rewound:
            conversation.add_turn(turn)
    return conversation


def ending_on_words(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Put an assistant message behind results that the model never answered."""
    if not messages or messages[-1].role != "tool":
        return messages
    why = NotTrained(reason="stand_in")
    ended = ChatMessage(role="assistant", content=TURN_ENDED, weight=0, not_trained=why)
    return [*messages, ended]


def marked(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages of a line, with explicit weights when none of them calls a tool.

    Without calls all roles have the same keys, and a loader would make of them a record in which
    other lines' calls have no place; a weight of 1 says what holds anyway.
    """
    if any(message.tool_calls for message in messages):
        return tuple(messages)
    return tuple(
        replace(message, weight=1)
        if message.role == "assistant" and message.weight is UNSET
        else message
        for message in messages
    )


def is_answered(messages: Iterable[ChatMessage]) -> bool:
    """Return whether the model said or called anything in a conversation."""
    return any(message.role == "assistant" for message in messages)


def is_trained_on(messages: Sequence[ChatMessage]) -> bool:
    """Return whether the model says anything in a conversation that is to be trained on."""
    return any(message.role == "assistant" and message.weight != 0 for message in messages)


def _joined(message: ChatMessage, text: str, thoughts: str = "") -> ChatMessage:
    words, thought = (
        "\n\n".join(filter(None, parts))
        for parts in ((message.content, text), (message.reasoning_content, thoughts))
    )
    return replace(message, content=words, reasoning_content=thought)


def _with(
    message: ChatMessage, added: Sequence[str], words: Sequence[str], behind: Sequence[str] = ()
) -> ChatMessage:
    """Return a message with more texts behind its own: the person's words between those that no
    person wrote."""
    content, machine = message.content, list(message.machine)
    for place, text in enumerate([*added, *words, *behind]):
        content = f"{content}\n\n{text}" if content else text
        if not 0 <= place - len(added) < len(words):
            machine.append((len(content) - len(text), len(content)))
    return replace(message, content=content, machine=tuple(machine))


def moved(message: ChatMessage, before: str, less: int) -> ChatMessage:
    """Return a message with ``before`` in place of its first ``less`` characters."""
    by = len(before) - less
    machine = tuple((start + by, end + by) for start, end in message.machine)
    return replace(message, content=f"{before}{message.content[less:]}", machine=machine)


def persons_words(message: ChatMessage) -> str:
    """Return a user's message without what no person wrote."""
    kept, done = list[str](), 0
    for start, end in message.machine:
        kept.append(message.content[done:start].strip("\n"))
        done = end
    kept.append(message.content[done:].strip("\n") if done else message.content)
    return "\n\n".join(filter(None, kept))


def function_name(tool: str) -> str:
    """Return the name under which a tool stands in a training set.

    Models are tuned with ``[a-zA-Z0-9_-]{1,64}`` only. A name that has anything else, or is longer,
    is written in those letters and stamped, so that no two tools become one.

    >>> function_name("mcp__docs__search"), function_name("docs.search")
    ('mcp__docs__search', 'docs_search_a7e557a3')
    """
    if _NAME.fullmatch(tool):
        return tool
    if not tool or tool in _NAMED:
        return _NAMED.get(tool, "unnamed_tool")
    plain = unicodedata.normalize("NFKD", tool).encode("ascii", "ignore").decode()
    stem = _NOT_IN_A_NAME.sub("_", plain).strip("_") or "tool"
    stamp = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{stem[: _LONGEST_NAME - len(stamp) - 1]}_{stamp}"


def call_id(number: int) -> str:
    """Return the id of a line's ``number``-th call, from 1: always nine letters or digits.

    >>> call_id(1)
    'call00001'
    """
    return f"call{number:05d}" if number < 100_000 else f"c{number:08d}"


def time_text(moment: datetime) -> str:
    """Return a time in UTC with six digits of a second.

    Loaders take whole-second times for timestamps and others for strings; with all six digits
    every time of every file is a string.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def label(value: str) -> str:
    """Return a name so that no loader takes it for a time.

    A task called ``2026-01-05`` would make its file's column one of timestamps, and the file
    would not load together with others. Such a value gets a space at its end.
    """
    return f"{value} " if _TIME_LIKE.match(value) else value


def parsed_arguments(text: str) -> dict[str, object] | None:
    """Return a call's arguments; None when ``text`` is not the JSON text of an object."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def call_arguments(text: str) -> tuple[dict[str, object], str]:
    """Return a call's arguments, and the JSON text of an object that holds them.

    That is ``text`` itself, to the letter, where it is one. What is no object, such as the bare
    patch that some tools take, becomes ``{"input": …}``; and half a character, which JSON can
    spell and UTF-8 cannot, is mended. Of arguments that are not known there are none.
    """
    text = text or "{}"
    arguments = parsed_arguments(text)
    if arguments is not None:
        return arguments, text
    with suppress(ValueError, RecursionError):
        loose = mend(json.loads(text))
        if isinstance(loose, dict):
            return loose, _compact(loose)
    bare: dict[str, object] = {"input": mend_text(text)}
    return bare, _compact(bare)


def encode(value: object) -> bytes:
    """Return ``value`` as one line of JSON, UTF-8, without the line end."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(mend(msgspec.to_builtins(value)))


def _compact(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
