"""Readings of one session become one, each message once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from debrief.sessions.model import (
    DeclaredTool,
    Message,
    Session,
    Subagent,
    ToolCall,
    TranscriptRef,
    Turn,
    Usage,
)
from debrief.sessions.readers.forks import joined

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def turn(number: int, messages: int = 1, prompt: str = "") -> Turn:
    at = START + timedelta(minutes=10 * number)
    return Turn(
        number=number,
        prompt=prompt or f"Prompt {number}",
        at=at,
        messages=tuple(
            Message(
                id=f"m{number}.{index}",
                model="m",
                at=at + timedelta(minutes=index),
                usage=Usage(1, 1),
                calls=(ToolCall(id=f"c{number}.{index}", name="Edit", input="{}", added=2),),
            )
            for index in range(messages)
        ),
    )


def session(path: str, *turns: Turn, subagents: tuple[Subagent, ...] = ()) -> Session:
    messages = [message for each in turns for message in each.messages]
    return Session(
        id="s",
        source="claude-code",
        tool="claude-code",
        task="shop",
        started=START,
        ended=START + timedelta(hours=len(turns)),
        transcripts=(TranscriptRef(path=path, digest="", size=1, records=len(messages)),),
        turns=tuple(turns),
        subagents=subagents,
        usage=Usage(len(messages), len(messages)),
        api_calls=len(messages),
        lines_added=2 * len(messages),
    )


def numbered(turns: Iterable[Turn]) -> list[Turn]:
    return [replace(each, number=number) for number, each in enumerate(turns, 1)]


def test_a_turn_that_goes_further_in_the_smaller_copy_is_completed() -> None:
    both = joined([session("a", turn(1, 3)), session("b", turn(1, 1), turn(2))])
    assert [len(each.messages) for each in both.turns] == [3, 1]
    assert (both.api_calls, both.usage.output, both.lines_added) == (4, 4, 8)


def test_a_prompt_that_was_still_queued_in_the_older_copy_is_one_turn() -> None:
    queued = Turn(number=2, prompt="Prompt 2", origin="queued", at=START + timedelta(minutes=3))
    both = joined([session("a", turn(1), queued), session("b", turn(1), turn(2))])
    assert [each.origin for each in both.turns] == ["prompt", "prompt"]


def test_a_prompt_to_which_a_copy_gives_another_time_is_one_turn() -> None:
    later = replace(turn(1), at=START + timedelta(days=1))
    both = joined([session("a", later), session("b", turn(1), turn(2))])
    assert [each.prompt for each in both.turns] == ["Prompt 1", "Prompt 2"]


@given(st.lists(st.sets(st.integers(1, 6), min_size=1), min_size=1, max_size=4))
def test_any_parts_unite_to_all_turns_once_in_order(parts: list[set[int]]) -> None:
    readings = [
        session(str(index), *numbered(turn(number) for number in sorted(part)))
        for index, part in enumerate(parts)
    ]
    expected = sorted(set().union(*parts))
    both = joined(readings)
    assert [each.prompt for each in both.turns] == [f"Prompt {number}" for number in expected]
    assert [each.number for each in both.turns] == list(range(1, len(expected) + 1))
    assert both.api_calls == both.usage.output == len(expected)


def test_the_commit_is_that_of_either_reading() -> None:
    one = replace(session("a", turn(1)), base_commit="a" * 40)
    both = joined([one, session("b", turn(1), turn(2))])
    assert both.base_commit == "a" * 40
    assert joined([session("a"), session("b")]).base_commit is UNSET


def test_tools_that_either_reading_declares_are_declared_once() -> None:
    shown, hidden = (DeclaredTool(name=name, parameters="{}") for name in ("shown", "hidden"))
    other = replace(shown, description="As an older version had it.")
    longer = replace(session("a", turn(1), turn(2)), declared_tools=(shown,))
    shorter = replace(session("b", turn(1)), declared_tools=(other, hidden))
    for readings in ([longer, shorter], [shorter, longer]):
        declared = joined(readings).declared_tools or ()
        assert sorted(declared, key=lambda tool: tool.name) == [hidden, shown]
    assert not joined([session("a", turn(1)), session("b", turn(1))]).declared_tools
