"""Collect what a transcript tells, event by event, and build turns from it.

The tools write the same few events in different words. A reader translates each record into one
of the calls below, and the rules about turns, messages and results live here only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from debrief.sessions.model import (
    CallStatus,
    ContextSource,
    ContextText,
    Intervention,
    InterventionKind,
    Message,
    ToolCall,
    Turn,
    TurnOrigin,
    Usage,
)
from debrief.sessions.readers.patches import FileEdit
from debrief.sessions.readers.values import arguments_text, decoded_arguments, string

NO_USAGE = Usage()
ASKING_TOOLS = frozenset(
    {"AskUser", "AskUserQuestion", "ask_question", "ask_user"}
    | {"question", "request_user_input", "vscode_askQuestions"}
)
"""Tools whose result is what the person answered."""

_REJECTED = re.compile(
    r"(?:rejected|declined|denied|refused|cancell?ed) by (?:the )?user(?! approval settings)"
    r"|user (?:has )?(?:rejected|declined|denied|refused|cancell?ed)"
    r"|user (?:doesn't|does not|didn't|did not) want"
    r"|user said:",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"(?:user said|feedback|reason|following feedback)\s*:\s*(.+)", re.IGNORECASE | re.DOTALL
)
_REFUSAL_HEAD = 400


class CallDraft(Struct):
    """A tool call while its result may still come."""

    id: str
    """Unique in its timeline once it is placed there."""
    name: str
    input: str
    at: datetime | None
    result: str | None = None
    status: CallStatus = "unanswered"
    exit_code: int | None = None
    edit: FileEdit | None = None
    is_edited: bool = False
    """The edit was seen to be made, however the call ended."""
    late_result: str = ""
    transcript_id: str = ""
    """The id in the transcript, which several calls may have."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as an object; an empty one where they are none."""
        return decoded_arguments(self.input)

    def end_late(self, result: str, *, failed: bool, exit_code: int | None = None) -> None:
        """Settle how it ended, where its result said only that it had begun."""
        if self.status not in ("ok", "unanswered"):
            return
        self.late_result = self.late_result or result
        self.exit_code = exit_code if self.exit_code is None else self.exit_code
        if failed:
            self.status = "failed"

    @property
    def made_edit(self) -> FileEdit | None:
        """The edit, where it was carried out."""
        return self.edit if self.is_edited or self.status == "ok" else None

    def build(self) -> ToolCall:
        """Return the finished call; its edit counts only when it was carried out."""
        fields = asdict(self)
        for name in ("edit", "is_edited", "transcript_id"):
            del fields[name]
        if (edit := self.made_edit) is not None:
            fields |= asdict(edit)
        return ToolCall(**fields)


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n\n".join([text.strip("\n") for text in texts if text.strip()])


class MessageDraft(Struct):
    """A message of the model while its parts still come in."""

    id: str
    model: str
    at: datetime | None
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[CallDraft] = []
    usage: Usage = NO_USAGE
    summary: str = ""
    context: tuple[ContextText, ...] = ()

    def build(self) -> Message:
        """Return the finished message."""
        fields = asdict(self)
        fields["text"] = _paragraphs(fields.pop("texts"))
        fields["thinking"] = _paragraphs(fields.pop("thoughts"))
        fields["calls"] = tuple([call.build() for call in self.calls])
        return Message(**fields)


class TurnDraft(Struct):
    """A turn while its messages still come in."""

    prompt: str
    origin: TurnOrigin
    at: datetime | None
    ended: datetime | None
    images: int = 0
    messages: list[MessageDraft] = []
    interventions: list[Intervention] = []
    compacted: bool = False
    provisional: bool = False
    """It may turn out later that no person wrote its prompt; see ``Timeline.settle``."""
    rewound: bool = False
    expansion: str = ""

    def touch(self, at: datetime | None) -> None:
        """Move the end to ``at`` when that is later."""
        if at is None:
            return
        if self.at is None and self.origin == "preamble":
            self.at = at
        if self.ended is None or at > self.ended:
            self.ended = at

    def build(self, number: int) -> Turn:
        """Return the finished turn."""
        fields = asdict(self)
        del fields["provisional"]
        fields["messages"] = tuple([message.build() for message in self.messages])
        fields["interventions"] = tuple(self.interventions)
        return Turn(number=number, **fields)


class Timeline:
    """Collects the events of one session, in the order of its transcript."""

    def __init__(self) -> None:
        self.usage = NO_USAGE
        self.compactions = 0
        self.slash_commands = 0
        self.messages = 0
        self.calls: dict[str, CallDraft] = {}
        """By id in the transcript, the call that its next result answers. An id says no more than
        that: local models use one again, and other tools mask all ids to one word."""
        self._parallel: dict[str, list[CallDraft]] = {}
        """Further open calls of one message under one id: results come in the calls' order."""
        self._uses = Counter[str]()
        """How many calls have an id."""
        self._named: dict[str, CallDraft] = {}
        """All calls by their unique ids."""
        self._context: list[ContextText] = []
        self._context_ahead: list[ContextText] = []
        """What the next message is given beside words and results, and what comes before that."""
        self.message: MessageDraft | None = None
        """The message that parts are added to; None right after a prompt."""
        self.turns: list[TurnDraft] = []
        self.compacting = False
        """A compaction was recorded, and no prompt or message since."""
        self.summary = ""
        """What the next message is given in place of the conversation before it."""
        self.thoughts: list[str] = []
        """What the model thought before its next message."""
        self.latest: InterventionKind | None = None
        """The intervention after which there was no prompt or message."""

    def prompt(
        self,
        text: str,
        at: datetime | None,
        images: int = 0,
        origin: TurnOrigin = "prompt",
        *,
        expansion: str = "",
    ) -> TurnDraft:
        """Begin a turn with what the person asked.

        Args:
            expansion: of a slash command, the text that the model was given for it.
        """
        turn = TurnDraft(text, origin, at, at, images, expansion=expansion)
        turn.compacted, self.compacting = self.compacting, False
        self.turns.append(turn)
        self.message = self.latest = None
        return turn

    def fresh_prompt(self) -> str | None:
        """Return the latest prompt while nothing followed it; else None."""
        turn = self.turns[-1] if self.turns else None
        if turn is None or turn.origin == "preamble" or turn.messages or turn.interventions:
            return None
        return turn.prompt

    def confirm(self, text: str, images: int) -> bool:
        """Settle that the latest prompt is a person's, in these words; False when it is not new."""
        turn = self.turns[-1] if self.turns else None
        if turn is None or not turn.provisional or turn.messages:
            return False
        turn.prompt, turn.images, turn.provisional = text, images, False
        return True

    def settle(self) -> None:
        """Dissolve the turns that are provisional still: their work belongs to the turn before."""
        turns: list[TurnDraft] = []
        for turn in self.turns:
            if not turn.provisional:
                turns.append(turn)
                continue
            if not turns:
                if not (turn.messages or turn.interventions):
                    continue
                turns.append(TurnDraft("", "preamble", turn.at, turn.at))
            before = turns[-1]
            before.messages += turn.messages
            before.interventions += turn.interventions
            before.compacted = before.compacted or turn.compacted
            before.touch(turn.ended)
        self.turns = turns

    def begin_message(self, id: Any, model: Any, at: datetime | None) -> MessageDraft:
        """Begin a message of the model; work before any prompt becomes a preamble.

        Args:
            id: as the transcript holds it; what is no text counts as none, as of the model.
        """
        turn = self._turn(at)
        if self.compacting:
            turn.compacted, self.compacting = True, False
        self.messages += 1
        self.latest = None
        self.message = MessageDraft(string(id), string(model), at)
        self.message.summary, self.message.thoughts = self.summary, self.thoughts
        self.message.context = self.context
        self.summary, self.thoughts = "", []
        self._context, self._context_ahead = [], []
        turn.messages.append(self.message)
        turn.touch(at)
        return self.message

    def call(
        self, message: MessageDraft, id: Any, name: Any, given: Any, at: datetime | None
    ) -> CallDraft:
        """Add a tool call to ``message``, all as the transcript holds it.

        Args:
            id: made up when it is empty or no text.
            given: the arguments.
        """
        id = string(id) or f"{message.id}-{len(message.calls)}"
        call = CallDraft(id, string(name) or "unknown", arguments_text(given), at)
        self.place(message, call)
        return call

    def place(self, message: MessageDraft, call: CallDraft) -> None:
        """Add a call to a message under a unique id, and have it answered by the next result with
        the id that it has in the transcript."""
        message.calls.append(call)
        call.transcript_id = id = call.id
        self._uses[id] += 1
        while call.id in self._named:
            call.id = f"{id}-{self._uses[id]}"
            self._uses[id] += call.id in self._named
        self._named[call.id] = call
        earlier = self.calls.setdefault(id, call)
        if earlier is call:
            return
        if earlier.status == "unanswered" and any(call is earlier for call in message.calls):
            self._parallel.setdefault(id, []).append(call)
        else:
            self.calls[id] = call
            self._parallel.pop(id, None)

    def is_repeated(self, id: str) -> bool:
        """Return whether several calls have an id in the transcript, so that it names none."""
        return self._uses[id] > 1

    def named(self, id: str) -> CallDraft | None:
        """Return the one call with an id; None where there is none, or several have it in the
        transcript."""
        return None if self.is_repeated(id) else self._named.get(id)

    def answered(self, call: CallDraft) -> None:
        """Have the next result with an answered call's id answer the call behind it, if any."""
        behind = self._parallel.get(call.transcript_id)
        if behind and self.calls[call.transcript_id] is call:
            self.calls[call.transcript_id] = behind.pop(0)

    def result(
        self,
        call: CallDraft,
        text: str | None,
        *,
        failed: bool,
        at: datetime | None,
        exit_code: int | None = None,
        edit: FileEdit | None = None,
    ) -> None:
        """Answer a call; the first answer counts.

        A refusal by the person becomes a rejection with their words, and the result of a tool
        that asks them something becomes an answer.

        Args:
            text: None where the transcript says that the call ended, and not what came back.
            failed: as the transcript says; a command whose exit code is not 0 failed anyway.
        """
        self.touch(at)
        failed = failed or bool(exit_code)
        if call.status != "unanswered":
            return
        if failed and text is not None and _REJECTED.search(text[:_REFUSAL_HEAD]):
            self.reject(call, text, at)
            return
        call.result, call.exit_code, call.edit = text, exit_code, edit
        call.status = "failed" if failed else "ok"
        self.answered(call)
        if not failed and call.name in ASKING_TOOLS:
            self.intervene("answer", text or "", at)

    def reject(
        self, call: CallDraft, text: str, at: datetime | None, words: str | None = None
    ) -> None:
        """Record that the person refused a call.

        Args:
            text: the result that the model saw.
            words: the person's; taken from the result by default.
        """
        if call.status == "unanswered":
            call.result, call.status = text, "rejected"
            self.answered(call)
            if words is None:
                words = match[1].strip() if (match := _WORDS.search(text)) else ""
            self.intervene("rejection", words, at)

    def intervene(
        self, kind: InterventionKind, text: str, at: datetime | None, expansion: str = ""
    ) -> None:
        """Record what the person did other than prompting.

        Args:
            expansion: of a slash command, the text that the model was given for it.
        """
        turn = self._turn(at)
        turn.interventions.append(Intervention(kind=kind, text=text, at=at, expansion=expansion))
        turn.touch(at)
        self.slash_commands += kind == "slash_command"
        self.latest = kind

    def expand(self, text: str) -> None:
        """Add what the model was given for the slash command that was recorded last."""
        if self.latest == "slash_command":
            deeds = self.turns[-1].interventions
            deeds[-1] = replace(deeds[-1], expansion=deeds[-1].expansion or text)

    def stop(self, message_id: str) -> None:
        """Record that the calls of a message ran when the person interrupted it, though their
        results were worded as refusals."""
        for turn in self.turns[-1:]:
            calls = (
                call
                for message in turn.messages
                if message.id == message_id
                for call in message.calls
            )
            for call in calls:
                deed = turn.interventions[-1] if turn.interventions else None
                if deed and (call.status, deed.kind, deed.text) == ("rejected", "rejection", ""):
                    turn.interventions.pop()
                    call.status, self.latest = "failed", None

    def interrupt(self, at: datetime | None) -> None:
        """Record an interruption, once where a tool notes it twice without a message between."""
        if self.latest != "interruption":
            self.intervene("interruption", "", at)
        self.message = None

    def add_context(
        self,
        said_by: ContextSource,
        text: str,
        at: datetime | None,
        call_id: str = "",
        *,
        is_ahead: bool = False,
        is_behind: bool = False,
    ) -> None:
        """Record what the model was given, before its next message, that no person wrote.

        Args:
            text: empty where the transcript does not hold what it was told.
            call_id: of the call that it is about.
            is_ahead: its program puts it before all else that came since the last message.
            is_behind: its program puts it behind the person's words.
        """
        given = ContextText(
            said_by=said_by, text=text.strip("\n"), at=at, call_id=call_id, is_behind=is_behind
        )
        (self._context_ahead if is_ahead else self._context).append(given)
        if not is_ahead:
            self.message = None

    @property
    def context(self) -> tuple[ContextText, ...]:
        """What the next message is given until now, beside words and results."""
        return (*self._context_ahead, *self._context)

    def replace_context(self, context: Iterable[ContextText]) -> None:
        """Put what the request really held in place of what was put together for it."""
        self._context_ahead, self._context = list(context), []

    def spend(self, usage: Usage) -> None:
        """Add tokens to the session, and to the message that they were spent on."""
        self.usage += usage
        if self.message is not None:
            self.message.usage += usage

    def compact(self, summary: str = "") -> None:
        """Record that the conversation was compacted: in this turn, or right before the next.

        Args:
            summary: what the next message is given in place of the conversation before it.
        """
        self.compactions += 1
        self.compacting, self.summary = True, summary

    def touch(self, at: datetime | None) -> None:
        """Move the end of the current turn to ``at`` when that is later."""
        if self.turns:
            self.turns[-1].touch(at)

    def build(self) -> tuple[Turn, ...]:
        """Return the turns."""
        if self.compacting and self.turns:
            self.turns[-1].compacted = True
        prompts = accumulate(int(turn.origin != "preamble") for turn in self.turns)
        return tuple(
            turn.build(0 if turn.origin == "preamble" else number)
            for turn, number in zip(self.turns, prompts, strict=True)
        )

    def _turn(self, at: datetime | None) -> TurnDraft:
        if not self.turns:
            self.turns.append(TurnDraft("", "preamble", at, at))
        return self.turns[-1]
