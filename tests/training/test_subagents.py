"""Subagents' own conversations as lines of a training set."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from debrief.sessions.model import Message, Session, Subagent
from debrief.snapshots.model import SubagentPrompt
from debrief.training.lessons import LessonFilter, lessons_of
from debrief.training.model import LINES, LineRow, SampleLine
from debrief.training.samples import sample_of, subagent_samples
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import (
    FINGERPRINT,
    MONDAY,
    call,
    metadata,
    says,
    scores,
    session,
    snapshot,
    turn,
)

READ = call("Read", {"file_path": "till.py"}, "def pay(): ...")


def agent(call_id: str = "toolu_Task", **fields: Any) -> Subagent:
    messages = (
        Message(id="a1", model="haiku", at=MONDAY + timedelta(minutes=3), calls=(READ,)),
        says("It rounds down.", id="a2"),
    )
    plain: dict[str, Any] = {
        "id": "agent-1",
        "prompt": "How does pay round?",
        "messages": messages,
        "type": "reviewer",
    }
    return Subagent(call_id=call_id, **{**plain, **fields})


def talk(*agents: Subagent, then: str = "Thanks, go on.") -> Session:
    task = call("Task", {"prompt": "How does pay round?"}, "It rounds down.")
    return session(
        "s",
        turn("Fix the rounding.", says("", task), says("Done.")),
        turn(then, says("Now the till rounds."), number=2),
        subagents=agents,
    )


def lines(one: Session, max_tokens: int | None = None) -> list[SampleLine]:
    prompts = (SubagentPrompt("reviewer", "Review it."),)
    given = replace(snapshot(one), subagents=prompts)
    line = sample_of(one, metadata=metadata(one), scores=scores(one), snapshot=given)
    return list(subagent_samples(one, line, max_tokens))


def test_a_subagents_line_is_its_conversation_and_names_its_session() -> None:
    (line,) = lines(talk(agent()))
    assert [(message.role, message.content) for message in line.messages] == [
        ("system", "Review it."),
        ("user", "How does pay round?"),
        ("assistant", ""),
        ("tool", "def pay(): ..."),
        ("assistant", "It rounds down."),
    ]
    about = line.metadata
    assert (about.session_id, about.parent_session) == ("s/agent-1", "s")
    assert (about.model, about.turns, about.calls, about.subagents) == ("haiku", 1, 1, 0)
    assert about.started == "2026-01-05T09:33:00.000000Z"
    assert "Read" in {tool.function.name for tool in line.tools}


@pytest.mark.parametrize(
    "one",
    [
        talk(agent(), then="No, that is wrong. Undo it."),
        talk(agent(place="progress")),
        talk(agent(prompt="")),
        talk(agent(messages=())),
        replace(talk(agent()), turns=(replace(talk().turns[0], rewound=True), talk().turns[1])),
    ],
    ids=["corrected", "progress alone", "no prompt", "no answer", "gone back behind"],
)
def test_work_that_a_session_is_not_trained_on_gives_no_line(one: Session) -> None:
    assert lines(one) == []


def test_a_line_over_the_budget_is_cut_into_windows_and_one_that_cannot_be_is_passed_over() -> None:
    steps = [says("", call("Read", {"file_path": f"{n}.py"}, "word " * 300)) for n in range(8)]
    long = agent(messages=(*steps, says("Done.")))
    assert len(lines(talk(long), 1_500)) > 1
    assert lines(talk(long), 200) == []


def test_subagents_stand_after_their_session_and_are_counted_apart(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [talk(agent("other"), agent("other", id="agent-2"))])
    made = stored(lake)
    assert (made.row.samples, made.row.sessions) == (1, 1)
    rows = list(lake.read(LINES, f"{TASK}/{FINGERPRINT}", LineRow))
    assert [(row.session_id, row.parent_session) for row in rows] == [
        ("s", ""),
        ("s/agent-1", "s"),
        ("s/agent-2", "s"),
    ]
    assert f"| 2 lines of {sum(row.tokens for row in rows[1:])} tokens |" in made.card
    assert [lesson.plan_id for lesson in lessons_of(lake, LessonFilter())] == ["s"]
