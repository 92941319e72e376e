"""A session that breaks off is cut at its last closed turn, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.lake import Lake
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import CallStatus, Intervention, Message, Turn
from debrief.training.closed import until_closed
from debrief.training.samples import weight_by_verdict
from tests.training.lakes import add, stored
from tests.training.scenario import call, line_of, says, scores, session, turn

OPEN_END = SessionVerdict(verdict="partial", basis="open_end")
FIRST = turn("Fix it.", says("", call()), says("Fixed."))
SECOND = turn("Test it.", says("Tested."), number=2)
STOPPED = replace(SECOND, interventions=(Intervention(kind="interruption"),))
OPEN = turn("And the docs.", says("I look.", call()), number=3)


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        ((FIRST, SECOND, OPEN), 2),
        ((FIRST, STOPPED, OPEN), 1),
        ((FIRST, turn("Go on.", says("", call()), number=2), OPEN), 1),
        ((FIRST, SECOND, turn("Well?", number=3)), 2),
        ((FIRST, turn("No.", number=2), OPEN), 1),
        ((FIRST, SECOND), 1),
        ((FIRST, SECOND, replace(OPEN, rewound=True)), 1),
        ((OPEN,), 0),
        ((FIRST,), 0),
        ((), 0),
    ],
)
def test_the_turns_up_to_the_last_closed_one_are_kept(turns: tuple[Turn, ...], kept: int) -> None:
    found = until_closed(replace(session("s1"), turns=turns))
    assert (found.turns if found else ()) == turns[:kept]


def test_a_line_of_a_session_that_broke_off_ends_on_its_last_closed_turn() -> None:
    one = session("s1", FIRST, SECOND, OPEN)
    line = line_of(one, scores=replace(scores(one), verdict=OPEN_END))
    assert [m.content for m in line.messages if m.role == "user"] == ["Fix it.", "Test it."]
    assert line.messages[-1].content == "Tested."
    assert (line.metadata.cut_turns, line.metadata.turns) == (1, 3)
    assert (line.metadata.verdict, line.metadata.verdict_ground) == ("partial", "open_end")
    assert weight_by_verdict(OPEN_END, None) == 1.0


@pytest.mark.parametrize("verdict", [None, SessionVerdict(verdict="partial", basis="check")])
def test_no_other_line_is_cut(verdict: SessionVerdict | None) -> None:
    one = session("s1", FIRST, SECOND, OPEN)
    line = line_of(one, scores=replace(scores(one), verdict=verdict))
    assert (line.metadata.cut_turns, len(line.messages)) == (0, 10)


def pytest_run(failed: bool) -> Message:
    """A test run after an edit."""
    edit = call("Edit", {"file_path": "a.py"}, path="a.py", added=1, removed=1, patch="@@\n-a\n+b")
    status: CallStatus = "failed" if failed else "ok"
    outcome = "1 failed in 0.1s" if failed else "1 passed in 0.1s"
    ran = call(
        arguments={"command": "pytest"}, result=outcome, exit_code=int(failed), status=status
    )
    return says("", replace(edit, action="edit"), ran)


def test_what_broke_off_is_in_the_set_by_what_its_closed_turns_came_to(tmp_path: Path) -> None:
    good = session("good", turn("Fix a.", pytest_run(failed=False), says("Fixed.")), OPEN)
    bad = session("bad", turn("Fix b.", pytest_run(failed=True), says("Hm.")), OPEN)
    nothing = session("nothing", turn("Fix c.", says("", call())))
    lake = Lake(str(tmp_path))
    add(lake, [good, bad, nothing], verdict=OPEN_END)
    made = stored(lake)
    assert made.row.samples == 1
    assert [(row.kind, row.detail, row.sessions) for row in made.row.left_out] == [
        ("verdict", "partly done", ("bad", "nothing"))
    ]
    assert "broke off, cut at the last closed turn: 1." in made.card
    whole = stored(lake, verdicts=["partial"])
    assert {row.detail: row.sessions for row in whole.row.left_out} == {
        "done, checked": ("good",),
    }
