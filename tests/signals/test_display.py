"""Signals in words: counts, turns and quotations, never a judgement."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from debrief.sessions.model import Evidence
from debrief.signals.display import (
    change_sentence,
    check_sentence,
    ending_sentence,
    event_sentence,
)
from debrief.signals.extract import session_signals
from debrief.signals.schema import Change, CheckSignal, Event, EventKind
from tests.signals.scenario import Story

WORDS = Evidence(4, "", "no, leave the config alone")
COMMAND = Evidence(6, "call-1", "git checkout -- app.py")


@pytest.mark.parametrize(
    ("kind", "evidence", "said"),
    [
        ("correction", [WORDS], "corrected once (turn 4: “no, leave the config alone”)"),
        (
            "destructive",
            [COMMAND, Evidence(9), Evidence(9)],
            "ran a destructive command 3 times (turns 6, 9: `git checkout -- app.py`)",
        ),
        ("interruption", [Evidence(2), Evidence(3)], "interrupted twice (turns 2, 3)"),
        ("failed_check", [Evidence(9)], "a check failed and did not pass since (turn 9)"),
        ("failed_check", [Evidence(1), Evidence(9)], "the last checks of 2 targets failed"),
        ("refusal", [Evidence(n) for n in range(1, 6)], "5 times (turns 1, 2, 3 and 2 more)"),
        ("stopped", [Evidence(1)], "a limit stopped it (turn 1)"),
        ("stopped", [Evidence(1), Evidence(2)], "a limit stopped it twice (turns 1, 2)"),
    ],
)
def test_event_is_told_with_its_count_its_turns_and_its_words(
    kind: EventKind, evidence: list[Evidence], said: str
) -> None:
    assert said in event_sentence(Event(kind=kind, evidence=tuple(evidence)))


def test_check_tells_what_failed_of_how_many_and_whether_it_is_about_the_change() -> None:
    failed = CheckSignal(
        kind="test",
        tool="pytest",
        target="api",
        worth="tests",
        passed=False,
        ran=12,
        failed=2,
        skipped=1,
        covers_change=True,
        evidence=Evidence(9, "", "2 failed, 10 passed, 1 skipped"),
    )
    assert check_sentence(failed) == (
        "`pytest` in `api` failed: 2 of 12 failed, 1 skipped "
        "(turn 9: “2 failed, 10 passed, 1 skipped”)"
    )
    passed = replace(failed, passed=True, failed=0, skipped=None, worth="fixed_test", target="")
    assert "`pytest` passed after it had failed: 12 tests ran (" in check_sentence(passed)
    assert "says nothing of the last change" in check_sentence(replace(passed, covers_change=False))
    assert "no test ran" in check_sentence(replace(passed, worth="nothing", ran=0))
    assert "the outcome of `pytest` is unknown" in check_sentence(replace(passed, passed=None))


def test_change_names_files_and_what_git_confirmed() -> None:
    assert change_sentence(Change()) == "nothing was changed"
    changed = Change(
        files=("a.py", "b.py", "c.py", "d.py"),
        deleted=("old.py",),
        commits=(Evidence(3, "call-2", "[main 1a2b3c4] Fix it"),),
        counted=5,
    )
    assert change_sentence(changed) == (
        "changed 4 files: `a.py`, `b.py`, `c.py` and 1 more; deleted 1 file: `old.py`; "
        "git confirmed 1 commit or push of 5 files (turn 3: `[main 1a2b3c4] Fix it`)"
    )


def test_ending_is_told_with_its_place() -> None:
    done = Story().turn("Fix it").say("Fixed.").session()
    assert ending_sentence(session_signals(done)).startswith("ends with an answer")
    limited = replace(session_signals(done), ending="limit", end=Evidence(7, "", "Prompt too long"))
    assert ending_sentence(limited) == "a limit stopped it (turn 7: “Prompt too long”)"
