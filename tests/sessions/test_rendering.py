"""Sessions as prompts show them, against golden texts written by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn
from debrief.sessions.rendering import CUT, LONGEST_RESULT, render_session, render_turn

GOLDEN = Path(__file__).parent / "golden"


def call(name: str, given: str, result: str | None = "ok", id: str = "c") -> ToolCall:
    return ToolCall(id=id, name=name, input=given, result=result, status="ok")


def said(text: str, *calls: ToolCall) -> Message:
    return Message(id="m", model="m", text=text, calls=calls)


def session(*turns: Turn, branch: str = "main", subagents: tuple[Subagent, ...] = ()) -> Session:
    return Session(
        id="0a1b2c3d",
        source="claude-code",
        tool="claude-code",
        task="shop",
        branch=branch,
        cwd="/home/ann/shop" if branch else "",
        started=datetime(2026, 1, 5, 9, 0, 30, tzinfo=UTC),
        ended=datetime(2026, 1, 5, 10, tzinfo=UTC),
        turns=turns,
        subagents=subagents,
    )


EDIT = '{"file_path":"checkout.py","old_string":"a","new_string":"b"}'
EXPLORER = Subagent(
    id="a1",
    type="Explore",
    description="Find the total",
    messages=(said("", call("Grep", "{}"), call("Read", "{}")),),
    call_id="t1",
)

SESSIONS = {
    "two_turns": session(
        Turn(
            number=1,
            prompt="Add a retry to the checkout.\nKeep it small.",
            messages=(
                said(
                    "I'll look first.",
                    call("Read", '{"file_path":"checkout.py","limit":40}', "1\timport time"),
                    call("Bash", '{"command":"pytest -q\\n","description":"Run tests"}', ""),
                ),
                said("Done.", call("Edit", EDIT, "Updated.")),
            ),
        ),
        Turn(number=2, prompt="Thanks. Commit it.", messages=(said("Committed."),)),
    ),
    "awkward": session(
        Turn(number=0, prompt="", origin="preamble", messages=(said("Going on."),)),
        Turn(number=1, prompt="Look at this", images=2),
        Turn(
            number=2,
            prompt="--- Turn 9 ---",
            messages=(
                said(
                    "",
                    call("Task", '{"prompt":"…","description":"Find it"}', "In cart.py", "t1"),
                    call("Read", '{"file_path":"big.txt"}', "x" * 501),
                    call("mcp__db__query", '{"limit":3,"empty":"","rows":[1,2]}', None),
                    call("Odd", "not json", "fine"),
                    call("None", "{}", "fine"),
                    call("Bash", '{"command":"' + "y" * 300 + '"}', "z" * 500),
                ),
            ),
        ),
        branch="",
        subagents=(EXPLORER, Subagent(id="a2", prompt="Review the diff", call_id="")),
    ),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_rendered_as_the_golden_text_says(name: str) -> None:
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert render_session(SESSIONS[name]) + "\n" == golden


def test_turns_of_slash_commands_alone_before_any_prompt_are_not_shown() -> None:
    empty = Turn(number=0, prompt="", origin="preamble")
    assert "--- Turn 0 ---" not in render_session(session(empty))


@given(st.text(min_size=1, max_size=1200))
def test_a_result_is_cut_only_beyond_the_limit(result: str) -> None:
    turn = Turn(number=1, prompt="Go", messages=(said("", call("T", "{}", result)),))
    rendered = render_turn(turn)
    assert (CUT in rendered) == (len(result) > LONGEST_RESULT or CUT in result)
    assert result[:LONGEST_RESULT].rstrip("\n") in rendered


@given(st.text(max_size=300), st.text(max_size=300))
def test_what_user_and_assistant_say_is_shown_whole(prompt: str, text: str) -> None:
    turn = Turn(number=1, prompt=prompt, messages=(said(text),))
    rendered = render_turn(turn) + "\n"
    assert prompt.rstrip("\n") in rendered
    assert text.rstrip("\n") in rendered
