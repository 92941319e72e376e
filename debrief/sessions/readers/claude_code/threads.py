"""What one agent said and did, while its records still come in."""

from __future__ import annotations

from datetime import datetime

from debrief.sessions.model import Intervention, InterventionKind, SubagentPlace, Usage
from debrief.sessions.readers.claude_code.turns import Compaction, Event
from debrief.sessions.readers.timeline import MessageDraft


class Thread:
    """The session's own conversation, or a subagent's."""

    __slots__ = ("call_id", "events", "id", "messages", "place", "prompt")

    def __init__(self, id: str, place: SubagentPlace = "inline") -> None:
        self.id = id
        self.place = place
        self.prompt = ""
        self.call_id = ""
        """The call that started the subagent, where a record tells."""
        self.events: list[Event] = []
        self.messages = 0

    def begin(self, id: str, model: str, at: datetime | None) -> MessageDraft:
        """Begin a message of the model."""
        draft = MessageDraft(id, model, at)
        self.events.append(draft)
        self.messages += 1
        return draft

    def intervene(self, kind: InterventionKind, text: str, at: datetime | None) -> None:
        """Record what the person did other than prompting."""
        self.events.append(Intervention(kind=kind, text=text, at=at))

    def compact(self) -> None:
        """Record that the conversation was compacted here."""
        self.events.append(Compaction())

    @property
    def just_rejected(self) -> bool:
        """Return whether the latest event is the rejection of a call."""
        for event in reversed(self.events):
            if not isinstance(event, datetime):
                return type(event) is Intervention and event.kind == "rejection"
        return False


class Spent:
    """The largest usage that was told for one message of the API."""

    __slots__ = ("draft", "thread", "total", "usage")

    def __init__(self, thread: Thread, draft: MessageDraft, usage: Usage, total: int) -> None:
        self.thread = thread
        self.draft = draft
        self.usage = usage
        self.total = total
