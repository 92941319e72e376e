"""What a run ends with: how many sessions have a verdict, which to look at first, the best."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from debrief.cli.summary import print_summary
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.scoring.order import FactPlace, OrderPlace
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Evidence, Session
from debrief.summary import (
    Evaluated,
    content_of,
    counted_verdicts,
    look_first_reason,
    ranked_sessions,
)
from tests.view.shown import MONDAY, fill, placed_lake, scores_of, session_of, settings_of

WEEK = f"{MONDAY:%Y-%m-%d}"


def test_sessions_are_counted_by_verdict_and_those_without_by_what_they_lack() -> None:
    counted = counted_verdicts(
        300,
        [
            ("complete_verified", "check", 60), ("complete_verified", "outcome", 8),
            ("failed", "person", 1), ("undetermined", "no_work", 22),
            ("undetermined", "no_change", 40),
        ],
    )  # fmt: skip
    assert (counted.known, counted.unknown) == (69, 62)
    assert counted.sentences() == (
        "69 of 300 sessions have a verdict: 68 done, checked; 1 not done. "
        "62 cannot be told: nothing was changed (40), hardly anything was done (22). "
        "169 sessions not scored."
    )
    assert counted_verdicts(1, []).sentences() == (
        "0 of 1 sessions have a verdict. 1 session not scored."
    )


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([FactPlace("broke_off", 0.99, -2.0)], "It breaks off."),
        ([FactPlace("last_check_passed", 0.2, -0.6)], "No check passed at its end."),
        (
            [
                FactPlace("corrections", 0.97, -0.9),
                FactPlace("checks_passed", 0.1, -0.4),
                FactPlace("repeats", 0.6, -0.2),
            ],
            "More corrections than 97% of 48 sessions like it; "
            "fewer of its checks passed than 90% of 48 sessions like it.",
        ),
        ([FactPlace("checks_passed", 0.9, 0.4)], ""),
        ([FactPlace("new_fact", 0.9, -0.4)], "More new fact than 90% of 48 sessions like it."),
    ],
)
def test_what_moved_a_session_to_the_front_is_said_in_words(
    facts: list[FactPlace], words: str
) -> None:
    place = OrderPlace(place=0.1, among=48, facts=tuple(facts))
    assert look_first_reason(place) == words


def test_those_to_look_at_first_and_the_best_are_ranked_by_place(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    ids = placed_lake(settings)
    first, best = ranked_sessions(Lake(settings.lake), [WEEK], 3)
    assert [session.id for session in first] == ids[:3]
    assert first[0].reason == "More corrections than 98% of 20 sessions like it."
    assert [session.id for session in best] == ids[:-4:-1]
    assert best[0].reason == "The last check passed: pytest -q (turn 1: “1 failed”)."
    assert best[0].title == "Job 19."


def test_without_an_order_those_that_are_not_done_come_first(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    made = [session_of(f"s{n}", f"Job {n}.", started=MONDAY + timedelta(hours=n)) for n in range(4)]
    fill(
        lake,
        [(session, quality) for session, quality in zip(made, (0.3, 0.9, 0.6, 0.3), strict=True)],
    )
    partly = SessionVerdict(verdict="partial", basis="open_end", evidence=(Evidence(1),))
    rows = [scores_of(session, 0.9) for session in made[1:2]]
    rows += [scores_of(session, 0.3) for session in (made[0], made[3])]
    rows += [replace(scores_of(made[2], 0.6), verdict=partly)]
    lake.write("session_scores", WEEK, rows, SessionScores)
    first, best = ranked_sessions(lake, [WEEK], 3)
    assert [session.id for session in first] == ["s3", "s0", "s2"]
    assert [session.id for session in best] == ["s1"]
    assert first[2].reason == "It breaks off without a closing answer (turn 1)."


def test_a_run_ends_with_the_verdicts(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    made = session_of("one", "Fix \x1b[2J it."), session_of("two", "Explain it.")
    fill(lake, [(made[0], 0.9), (made[1], None)])
    out = Console(file=io.StringIO(), width=160)
    print_summary(lake, content_of(lake, [WEEK]), out)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    assert "1 of 2 sessions have a verdict: 1 done, checked. 1 session not scored." in printed
    assert "best           done, checked      Fix" in printed
    assert "The last check passed: pytest -q (turn 1: “1 failed”)." in printed
    assert "mean quality" not in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize(("failed", "rest"), [(1, ""), (3, ", and 2 more")])
def test_the_first_failure_is_shown_and_how_many_more_there_are(
    tmp_path: Path, failed: int, rest: str
) -> None:
    content = replace(
        content_of(Lake(str(tmp_path)), [WEEK]),
        scored=tuple(
            Evaluated(session_id=f"s{number}", status="failed", failure="timed out")
            for number in range(failed)
        ),
    )
    out = Console(file=io.StringIO(), width=160)
    print_summary(Lake(str(tmp_path)), content, out)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    assert f"s0: timed out{rest}\n" in printed


def test_a_lake_of_an_earlier_version_has_no_verdict_and_is_read(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    session = session_of("one")
    lake.write("raw_sessions", WEEK, [session], Session)
    lake.write(
        "session_scores", WEEK, [replace(scores_of(session, 0.9), verdict=None)], SessionScores
    )
    assert ranked_sessions(lake, [WEEK], 3) == ([], [])
