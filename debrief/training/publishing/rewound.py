"""Preference pairs from a turn that the person rewound and the turn that replaced it.

Lines are without the turns that were left, so these pairs are made of the session itself. Other
words in a turn's place ask for something else: then neither answer is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import Session, Turn
from debrief.training.conversations import ConversationBuilder, conversation_of
from debrief.training.formats import tool_schemas
from debrief.training.given import without_reminder
from debrief.training.held import Decision, held_for, held_tokens
from debrief.training.model import SampleLine
from debrief.training.publishing.form import template_messages
from debrief.training.publishing.preferences import pair_row
from debrief.training.publishing.rows import (
    Messages,
    is_untrained,
    up_to_the_last_answer,
    without_ends,
)
from debrief.training.samples import checked_line


def rewound_pairs(
    session: Session,
    sample: SampleLine,
    decided: Mapping[str, Decision],
    shaped: Callable[[Messages], Messages] = lambda messages: messages,
) -> Iterator[dict[str, Any]]:
    """Yield the pairs of a session.

    Left out is one whose worse side does not pass the gates that a line passes, or holds a token
    that looks made by chance and that nobody released.

    Args:
        session: normalised and redacted.
        sample: its line, whole.
        decided: what was decided on tokens, by their digests.
        shaped: makes of messages what an export asks for.
    """
    first, *_ = sample.messages
    system = first.content if first.role == "system" else ""
    prompt = next(message.content for message in sample.messages if message.role == "user")
    reminder = prompt.removesuffix(without_reminder(prompt))
    whole = conversation_of(session, system, reminder)
    known = whole.close()
    for left, stayed in _same_words(session.turns):
        before = [turn for turn in session.turns[:left] if not turn.rewound]
        ways = []
        for place in (stayed, left):
            way = ConversationBuilder(system, reminder)
            for turn in (*before, replace(session.turns[place], rewound=False)):
                way.add_turn(turn)
            ways.append((way, way.close()))
        (_, alone), (worse_way, left_line) = ways
        kept, better, worse = map(shaped, (known[: len(alone)], alone, left_line))
        start = 1 + max(place for place, message in enumerate(better) if message.role == "user")
        is_known = template_messages(kept) == template_messages(better)
        is_shared = template_messages(worse[: start - 1]) == template_messages(better[: start - 1])
        if (
            not is_known
            or not is_shared
            or [message.role for message in worse[start - 1 : start]] != ["user"]
        ):
            continue
        chosen, rejected = (
            up_to_the_last_answer(without_ends(way[start:])) for way in (kept, worse)
        )
        is_clean = bool(chosen) and not any(map(is_untrained, chosen))
        alike = template_messages(chosen) == template_messages(rejected)
        tools = tool_schemas(
            session.tool, [*whole.calls, *worse_way.calls], session.declared_tools or ()
        )
        line = replace(sample, messages=left_line, tools=tools)
        if is_clean and rejected and not alike and _passes(line, decided):
            yield pair_row(
                "rewound",
                (better[:start], chosen, rejected),
                tools=msgspec.json.encode(tools).decode(),
                reasons=["the person went back and asked the same again"],
                sessions=(session.id, session.id),
            )


def _same_words(turns: Sequence[Turn]) -> Iterator[tuple[int, int]]:
    """Yield the places of turns that were left, each with that of the turn that stands for it."""
    for place, turn in enumerate(turns):
        if turn.rewound and not (place and turns[place - 1].rewound):
            later = (n for n in range(place + 1, len(turns)) if not turns[n].rewound)
            stayed = next(later, None)
            words = turn.prompt.split()
            if stayed is not None and words and words == turns[stayed].prompt.split():
                yield place, stayed


def _passes(line: SampleLine, decided: Mapping[str, Decision]) -> bool:
    try:
        data = checked_line(line)
    except InputError:
        return False
    held = held_tokens([("", data)], decided)
    return not held_for(held.get("", ()), decided)
