"""A session as it unfolds: readers tell what happened in order, turns come out.

The tools write the same few events in different words. A reader translates each record into one
of the calls below, and the rules about turns, messages and results live here only.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import orjson

from debrief.sessions.model import (
    CallStatus,
    Intervention,
    InterventionKind,
    Message,
    ToolCall,
    Turn,
    TurnOrigin,
    Usage,
)
from debrief.sessions.readers.jsonl import compact_json
from debrief.sessions.readers.patches import Edit

NO_USAGE = Usage()
ASKING_TOOLS = frozenset(
    {"AskUser", "AskUserQuestion", "ask_user", "question", "request_user_input", "ask_question"}
)
"""Tools whose result is what the person answered."""

_REJECTED = re.compile(
    r"(?:rejected|declined|denied|refused|cancell?ed) by (?:the )?user"
    r"|user (?:has )?(?:rejected|declined|denied|refused|cancell?ed)"
    r"|user (?:doesn't|does not|didn't|did not) want"
    r"|user said:",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"(?:user said|feedback|reason|following feedback)\s*:\s*(.+)", re.IGNORECASE | re.DOTALL
)
_REFUSAL_HEAD = 400


def is_rejection(text: str) -> bool:
    """Return whether a failed call's result says that the person refused the call."""
    return _REJECTED.search(text[:_REFUSAL_HEAD]) is not None


def words_of_rejection(text: str) -> str:
    """Return what the person said when they refused a call; empty when they said nothing."""
    match = _WORDS.search(text)
    return match[1].strip() if match else ""


class CallDraft:
    """A tool call while its result may still come."""

    __slots__ = ("at", "edit", "exit_code", "id", "input", "name", "result", "status")

    def __init__(self, id: str, name: str, arguments: str, at: datetime | None) -> None:
        self.id = id
        self.name = name
        self.input = arguments
        self.at = at
        self.result: str | None = None
        self.status: CallStatus = "unanswered"
        self.exit_code: int | None = None
        self.edit: Edit | None = None

    def build(self) -> ToolCall:
        """Return the finished call; its edit counts only when it was carried out."""
        edit = self.edit if self.edit is not None and self.status == "ok" else None
        return ToolCall(
            id=self.id,
            name=self.name,
            input=self.input,
            result=self.result,
            status=self.status,
            exit_code=self.exit_code,
            at=self.at,
            path=edit.path if edit else None,
            added=edit.added if edit else 0,
            removed=edit.removed if edit else 0,
            patch=edit.patch if edit else "",
            estimated=edit.estimated if edit else False,
        )


class MessageDraft:
    """A message of the model while its parts still come in."""

    __slots__ = ("at", "calls", "id", "model", "texts", "usage")

    def __init__(self, id: str, model: str, at: datetime | None) -> None:
        self.id = id
        self.model = model
        self.at = at
        self.texts: list[str] = []
        self.calls: list[CallDraft] = []
        self.usage = NO_USAGE

    def build(self) -> Message:
        """Return the finished message."""
        texts = [text.strip("\n") for text in self.texts if text.strip()] if self.texts else ()
        return Message(
            id=self.id,
            model=self.model,
            at=self.at,
            text="\n\n".join(texts),
            calls=tuple(call.build() for call in self.calls),
            usage=self.usage,
        )


class _TurnDraft:
    __slots__ = (
        "at",
        "compacted",
        "ended",
        "images",
        "interventions",
        "messages",
        "origin",
        "prompt",
        "provisional",
        "rewound",
    )

    def __init__(self, prompt: str, origin: TurnOrigin, at: datetime | None, images: int) -> None:
        self.prompt = prompt
        self.origin = origin
        self.at = at
        self.ended = at
        self.images = images
        self.messages: list[MessageDraft] = []
        self.interventions: list[Intervention] = []
        self.compacted = False
        self.provisional = False
        self.rewound = False

    def build(self, number: int) -> Turn:
        return Turn(
            number=number,
            prompt=self.prompt,
            origin=self.origin,
            at=self.at,
            ended=self.ended,
            images=self.images,
            messages=tuple(message.build() for message in self.messages),
            interventions=tuple(self.interventions),
            compacted=self.compacted,
            rewound=self.rewound,
        )


class Timeline:
    """Collects the events of one session, in the order of its transcript."""

    def __init__(self) -> None:
        self.usage = NO_USAGE
        self.compactions = 0
        self.slash_commands = 0
        self.messages = 0
        self.calls: dict[str, CallDraft] = {}
        self.notices: list[datetime] = []
        self.message: MessageDraft | None = None
        """The message that parts are added to; None right after a prompt."""
        self._turns: list[_TurnDraft] = []
        self._compacting = False

    @property
    def empty(self) -> bool:
        """Return whether nothing was told yet that belongs to a session."""
        return not self._turns

    @property
    def compacting(self) -> bool:
        """Return whether a compaction was recorded and nothing was told since."""
        return self._compacting

    def prompt(
        self,
        text: str,
        at: datetime | None,
        *,
        images: int = 0,
        origin: TurnOrigin = "prompt",
        provisional: bool = False,
        rewound: bool = False,
    ) -> None:
        """Begin a turn with what the person asked.

        Args:
            provisional: it may turn out later that no person wrote this; see ``settle``.
            rewound: the person went back to before this prompt later.
        """
        turn = _TurnDraft(text, origin, at, images)
        turn.provisional = provisional
        turn.rewound = rewound
        turn.compacted = self._compacting
        self._compacting = False
        self._turns.append(turn)
        self.message = None

    def fresh_prompt(self) -> str | None:
        """Return the latest prompt while nothing followed it; else None."""
        turn = self._turns[-1] if self._turns else None
        if turn is None or turn.origin == "preamble" or turn.messages or turn.interventions:
            return None
        return turn.prompt

    def confirm(self, text: str, images: int) -> bool:
        """Settle that the latest prompt is a person's, in these words; False when it is not new."""
        turn = self._turns[-1] if self._turns else None
        if turn is None or not turn.provisional or turn.messages:
            return False
        turn.prompt, turn.images, turn.provisional = text, images, False
        return True

    def settle(self) -> None:
        """Dissolve the turns that are provisional still: their work belongs to the turn before."""
        turns: list[_TurnDraft] = []
        for turn in self._turns:
            if not turn.provisional:
                turns.append(turn)
                continue
            if not turns:
                if not (turn.messages or turn.interventions):
                    continue
                turns.append(_TurnDraft("", "preamble", turn.at, 0))
            before = turns[-1]
            before.messages += turn.messages
            before.interventions += turn.interventions
            before.compacted = before.compacted or turn.compacted
            self._touch(before, turn.ended)
        self._turns = turns

    def begin_message(self, id: str, model: str, at: datetime | None) -> MessageDraft:
        """Begin a message of the model; work before any prompt becomes a preamble."""
        turn = self._turn(at)
        if self._compacting:
            turn.compacted = True
            self._compacting = False
        self.messages += 1
        self.message = MessageDraft(id, model, at)
        turn.messages.append(self.message)
        self._touch(turn, at)
        return self.message

    def call(
        self, message: MessageDraft, id: str, name: str, arguments: str, at: datetime | None
    ) -> CallDraft:
        """Add a tool call to ``message``; one that is told twice is one."""
        known = self.calls.get(id)
        if known is not None:
            return known
        call = CallDraft(id, name, arguments, at)
        message.calls.append(call)
        self.calls[id] = call
        return call

    def result(
        self,
        call: CallDraft,
        text: str | None,
        *,
        failed: bool,
        at: datetime | None,
        exit_code: int | None = None,
        edit: Edit | None = None,
    ) -> None:
        """Answer a call; the first answer counts.

        A refusal by the person becomes a rejection with their words, and the result of a tool
        that asks them something becomes an answer.

        Args:
            text: None where the transcript tells that the call ended, and not what came back.
        """
        self.touch(at)
        if call.status != "unanswered":
            return
        if failed and text is not None and is_rejection(text):
            self.reject(call, text, at)
            return
        call.result = text
        call.exit_code = exit_code
        call.status = "failed" if failed else "ok"
        call.edit = edit
        if not failed and call.name in ASKING_TOOLS:
            self.intervene("answer", text or "", at)

    def reject(self, call: CallDraft, text: str, at: datetime | None) -> None:
        """Record that the person refused a call, with what the model was told."""
        if call.status == "unanswered":
            call.result, call.status = text, "rejected"
            self.intervene("rejection", words_of_rejection(text), at)

    def intervene(self, kind: InterventionKind, text: str, at: datetime | None) -> None:
        """Record what the person did other than prompting.

        An interruption that a tool notes in two ways is one as long as no message came between.
        """
        turn = self._turn(at)
        if kind == "slash_command":
            self.slash_commands += 1
        if (
            kind == "interruption"
            and self.message is None
            and any(known.kind == kind for known in turn.interventions[-1:])
        ):
            return
        turn.interventions.append(Intervention(kind=kind, text=text, at=at))
        self._touch(turn, at)
        if kind == "interruption":
            self.message = None

    def notice(self, at: datetime | None) -> None:
        """Record that the agent's program told the model something of its own accord."""
        if at is not None:
            self.notices.append(at)
        self.message = None

    def spend(self, usage: Usage) -> None:
        """Add tokens to the session, and to the message that they were spent on."""
        self.usage += usage
        if self.message is not None:
            self.message.usage += usage

    def compact(self) -> None:
        """Record that the conversation was compacted: in this turn, or right before the next."""
        self.compactions += 1
        self._compacting = True

    def name_model(self, model: str) -> None:
        """Give the messages that do not tell their model the one that it must have been."""
        for turn in self._turns:
            for message in turn.messages:
                message.model = message.model or model

    def touch(self, at: datetime | None) -> None:
        """Move the end of the current turn to ``at`` when that is later."""
        if self._turns:
            self._touch(self._turns[-1], at)

    def build(self) -> tuple[Turn, ...]:
        """Return the turns."""
        if self._compacting and self._turns:
            self._turns[-1].compacted = True
        before = sum(turn.origin == "preamble" for turn in self._turns)
        return tuple(turn.build(place - before) for place, turn in enumerate(self._turns, 1))

    def _turn(self, at: datetime | None) -> _TurnDraft:
        if not self._turns:
            self._turns.append(_TurnDraft("", "preamble", at, 0))
        return self._turns[-1]

    @staticmethod
    def _touch(turn: _TurnDraft, at: datetime | None) -> None:
        if at is not None and (turn.ended is None or at > turn.ended):
            turn.ended = at


def arguments_text(value: Any) -> str:
    """Return a call's arguments as compact JSON text of an object.

    Text that holds an object already is parsed and written again; other text, which custom
    tools take, goes under ``input``.
    """
    if type(value) is str:
        try:
            parsed = orjson.loads(value)
        except orjson.JSONDecodeError:
            parsed = None
        value = parsed if type(parsed) is dict else {"input": value}
    elif type(value) is not dict:
        value = {} if value is None else {"input": value}
    return compact_json(value)


def decoded_arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call as they were before ``arguments_text``."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if type(value) is dict else {}
