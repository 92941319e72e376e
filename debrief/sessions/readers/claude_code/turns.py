"""From the events of one conversation, in the order of its records, to turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from debrief.sessions.model import Intervention, Turn, TurnOrigin
from debrief.sessions.readers.claude_code.records import Record
from debrief.sessions.readers.timeline import MessageDraft


def text_or_none(value: Any) -> str | None:
    """Return ``value`` when it can be a record's id; None for whatever else stands there."""
    return value if type(value) is str else None


class Prompt:
    """What the person asked, and where in the chain of records it stands."""

    __slots__ = ("at", "images", "parent", "queued", "text", "uuid")

    def __init__(
        self, text: str, at: datetime | None, images: int, record: Record, queued: bool
    ) -> None:
        self.text = text
        self.at = at
        self.images = images
        self.queued = queued
        """Typed while the model ran: a later record may repeat it."""
        self.uuid = text_or_none(record.uuid)
        self.parent = text_or_none(record.parentUuid)


class Compaction:
    """The place where the conversation was compacted."""


Event = Prompt | MessageDraft | Intervention | Compaction | datetime
"""A bare time is that of a tool's result: the turn lasted until then at least."""


class _Draft:
    def __init__(self, origin: TurnOrigin, prompt: Prompt | None) -> None:
        self.origin = origin
        self.prompt = prompt
        self.at = prompt.at if prompt else None
        self.ended = self.at
        self.messages: list[MessageDraft] = []
        self.interventions: list[Intervention] = []
        self.compacted = False

    def touch(self, at: datetime | None) -> None:
        if at is None:
            return
        if self.at is None and self.prompt is None:
            self.at = at
        if self.ended is None or at > self.ended:
            self.ended = at

    def build(self, number: int, rewound: bool) -> Turn:
        return Turn(
            number=number,
            prompt=self.prompt.text if self.prompt else "",
            origin=self.origin,
            at=self.at,
            ended=self.ended,
            images=self.prompt.images if self.prompt else 0,
            messages=tuple([draft.build() for draft in self.messages]),
            interventions=tuple(self.interventions),
            compacted=self.compacted,
            rewound=rewound,
        )


def turns_of(events: Sequence[Event], parents: Mapping[str, str | None]) -> tuple[Turn, ...]:
    """Return the turns.

    Args:
        events: of one conversation.
        parents: every record's parent by the record's own id, to tell abandoned branches.
    """
    prompts = [event for event in events if type(event) is Prompt]
    repeated = _repeated(prompts)
    left = _left_behind(prompts)
    drafts: list[_Draft] = []
    compacting = False
    for event in events:
        if type(event) is Prompt:
            if event in repeated:
                continue
            drafts.append(_Draft("queued" if event.queued else "prompt", event))
            drafts[-1].compacted, compacting = compacting, False
            continue
        if type(event) is Compaction:
            compacting = True
            continue
        if not drafts:
            drafts.append(_Draft("preamble", None))
        turn = drafts[-1]
        if type(event) is MessageDraft:
            turn.messages.append(event)
            turn.touch(event.at)
            if compacting:
                turn.compacted, compacting = True, False
        elif type(event) is Intervention:
            turn.interventions.append(event)
            turn.touch(event.at)
        elif isinstance(event, datetime):
            turn.touch(event)
    if compacting and drafts:
        drafts[-1].compacted = True
    first = 0 if drafts and drafts[0].prompt is None else 1
    return tuple(
        draft.build(
            number,
            bool(left) and draft.prompt is not None and _descends(draft.prompt.uuid, left, parents),
        )
        for number, draft in enumerate(drafts, first)
    )


def _repeated(prompts: list[Prompt]) -> set[Prompt]:
    """Return the queued prompts that a later record repeats: that record is the turn."""
    repeated: set[Prompt] = set()
    waiting: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        if prompt.queued:
            waiting.setdefault(prompt.text, []).append(prompt)
        elif waiting.get(prompt.text):
            repeated.add(waiting[prompt.text].pop(0))
    return repeated


def _left_behind(prompts: list[Prompt]) -> set[str]:
    """Return the ids of prompts that a later prompt with the same parent took the place of."""
    latest: dict[str, str] = {}
    left: set[str] = set()
    for prompt in prompts:
        if prompt.queued or prompt.parent is None or prompt.uuid is None:
            continue
        if prompt.parent in latest:
            left.add(latest[prompt.parent])
        latest[prompt.parent] = prompt.uuid
    return left


def _descends(uuid: str | None, ancestors: set[str], parents: Mapping[str, str | None]) -> bool:
    seen: set[str] = set()
    while uuid is not None and uuid not in seen:
        if uuid in ancestors:
            return True
        seen.add(uuid)
        uuid = parents.get(uuid)
    return False
