"""Any session that a reader could build, for properties that hold of every input."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, get_args

from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.sessions.actions import described
from debrief.sessions.model import (
    ContextSource,
    ContextText,
    Intervention,
    InterventionKind,
    Message,
    Session,
    ToolCall,
    Turn,
)
from tests.training.scenario import MONDAY, session

TEXTS = st.one_of(
    st.sampled_from(
        [
            *("", " ", "2026-01-05", "null", "{}", "\u2028\x00\r\n", "\ud83d lone", "héllo"),
            *("<think>x</think>", "<think>x</think>y", "[Image #1]"),
        ]
    ),
    st.text(max_size=30),
)
NAMES = st.one_of(
    st.sampled_from(["Bash", "Read", "TaskList", "repo.readFile", "repo_readFile", "ask_user", ""]),
    st.text(max_size=80),
)
JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
MOMENTS = st.none() | st.integers(0, 9).map(lambda minute: MONDAY + timedelta(minutes=minute))
INPUTS = st.one_of(
    st.dictionaries(st.text(max_size=8), JSON, max_size=4).map(json.dumps),
    JSON.map(json.dumps),
    st.sampled_from(["", "{", "*** Begin Patch", '{"a":1e999}', '{"a":NaN}', '{"a":"\\ud800"}']),
)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    return described(
        ToolCall(
            id=draw(st.sampled_from(["toolu_1", "toolu_2", ""])),
            name=draw(NAMES),
            input=draw(INPUTS),
            result=draw(st.none() | TEXTS),
            status=draw(st.sampled_from(["ok", "failed", "rejected", "unanswered"])),
        )
    )


@st.composite
def messages(draw: st.DrawFn) -> Message:
    return Message(
        id=draw(st.sampled_from(["", "msg_1", "msg_2", "msg_3"])),
        model="opus",
        at=draw(MOMENTS),
        text=draw(TEXTS),
        thinking=draw(st.just("") | TEXTS),
        calls=tuple(draw(st.lists(calls(), max_size=3))),
        context=tuple(draw(st.lists(contexts(), max_size=2))),
    )


@st.composite
def contexts(draw: st.DrawFn) -> ContextText:
    said_by = draw(st.sampled_from(get_args(ContextSource)))
    return ContextText(said_by=said_by, text=draw(TEXTS))


@st.composite
def deeds(draw: st.DrawFn) -> Intervention:
    kind = draw(st.sampled_from(get_args(InterventionKind)))
    return Intervention(kind=kind, text=draw(TEXTS), at=draw(MOMENTS))


@st.composite
def turns(draw: st.DrawFn, number: int) -> Turn:
    return Turn(
        number=number,
        prompt=draw(TEXTS) if number else "",
        at=draw(MOMENTS),
        images=draw(st.integers(0, 2)),
        messages=tuple(draw(st.lists(messages(), max_size=3))),
        interventions=tuple(draw(st.lists(deeds(), max_size=3))),
    )


@st.composite
def sessions(draw: st.DrawFn, id: str | None = None) -> Session:
    first = draw(st.integers(0, 1))
    made = [draw(turns(number)) for number in range(first, draw(st.integers(first, 4)))]
    fields: dict[str, Any] = {
        "tool": draw(
            st.sampled_from(["claude-code", "droid", "recorder", "langfuse", "2026-01-05"])
        ),
        "task": draw(st.sampled_from(["checkout", "2026-01-05"])),
        "repository": draw(st.sampled_from(["", "shop", "2026-01-05T10:00:00Z"])),
        "models": draw(st.sampled_from([(), ("opus",), ("2026-01-05",)])),
    }
    started = MONDAY + timedelta(seconds=draw(st.integers(0, 10**7)))
    name = id if id is not None else draw(st.sampled_from(["s1", "2026-01-05", "\udc80"]))
    return replace(session(name, *made, started=started, **fields), turns=tuple(made))
