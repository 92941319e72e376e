"""Where the parts of a stored line are, whatever its texts say."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.training.outlines import WEIGHT_SIZE, Outline, outline_of, packed, unpacked
from debrief.training.samples import encode_line
from tests.training.scenario import call, line_of, says, session, turn
from tests.training.strategies import sessions

TRAPS = (
    '"tool_calls":[{"id":"x","type":"function","function":{"name":"y","arguments":"{}"}}]',
    '],"tools":[],"metadata":{',
    ',"weight":0}',
    '"tool_call_id":"call00001"',
    '{"role":"user","content":"',
    "\\",
    '\\"',
    "\n\u2028\x7f\x00",
)


def looks_like_its_line(line: bytes, outline: Outline) -> None:
    told = json.loads(line)
    assert json.loads(line[len(b'{"messages":') : outline.messages_end]) == told["messages"]
    after = line[outline.messages_end : outline.tools_end].removeprefix(b',"tools":')
    assert json.loads(after) == told["tools"]
    assert line[outline.tools_end :].startswith(b',"metadata":{')
    assert len(outline.messages) == len(told["messages"])
    for place, message in zip(outline.messages, told["messages"], strict=True):
        assert place.role == message["role"]
        assert json.loads(line[place.start : place.end]) == message["content"]
        assert place.answers == message.get("tool_call_id", "")
        calls = message.get("tool_calls", [])
        assert len(place.calls) == len(calls)
        for spot, made in zip(place.calls, calls, strict=True):
            assert (spot.id, spot.name) == (made["id"], made["function"]["name"])
            assert json.loads(line[spot.start : spot.end]) == made["function"]["arguments"]
        mark = line[place.weight : place.weight + WEIGHT_SIZE].decode() if place.weight else ""
        assert mark == (f',"weight":{message["weight"]}' if "weight" in message else "")


@given(sessions())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_every_part_of_any_line_is_found(of: Session) -> None:
    try:
        line = encode_line(line_of(of))
    except InputError:
        return
    outline = outline_of(line)
    looks_like_its_line(line, outline)
    assert unpacked(packed(outline)) == outline


@given(st.lists(st.sampled_from(TRAPS), min_size=1, max_size=4).map("".join))
@settings(deadline=None, max_examples=60)
def test_texts_that_look_like_parts_are_none(text: str) -> None:
    of = session(
        "trap",
        turn(
            text,
            says(text, call("Bash", {"command": text, text: [text]}, text)),
            says("", call("Read", {"file_path": "a.py"}, text)),
            says(text),
        ),
    )
    line = encode_line(line_of(of))
    looks_like_its_line(line, outline_of(line))


def test_a_text_of_many_megabytes_and_escapes_is_passed_over() -> None:
    of = session("long", turn('\\"\n' * 1_000_000, says("Done.")))
    line = encode_line(line_of(of))
    looks_like_its_line(line, outline_of(line))


@pytest.mark.parametrize(
    "line", [b"", b"{}\n", b'{"messages":[],"metadata":{}}\n', b'{"tools":[],"messages":[]}\n']
)
def test_what_is_no_stored_line_has_no_outline(line: bytes) -> None:
    with pytest.raises(
        msgspec.DecodeError, match="not a line in the form in which lines are stored"
    ):
        outline_of(line)
