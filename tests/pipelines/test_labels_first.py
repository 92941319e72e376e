"""A label that is new is in what the same run makes: training sets, and its week's page."""

from __future__ import annotations

from pathlib import Path

from debrief.lake import Lake
from debrief.stages.reports import report_path
from debrief.training.model import INDEX, TrainingSetRow
from tests.pipelines.conftest import Home
from tests.pipelines.test_run import conversation, write

WEEKS = ("2026-10-05", "2026-10-12")
FIRST, SECOND = "0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002"


def left_out(lake: Lake) -> dict[str, str]:
    return {
        session: group.reason
        for row in lake.rows(INDEX, TrainingSetRow)
        for group in row.left_out
        for session in group.sessions
    }


def test_a_run_with_nothing_to_do_but_a_new_label_makes_anew_what_it_changes(
    tmp_path: Path,
) -> None:
    home, sessions, lake = Home(tmp_path), tmp_path / "sessions", tmp_path / "lake"
    sessions.mkdir()
    for day, session in (("2026-10-06", FIRST), ("2026-10-13", SECOND)):
        lines = [line.replace("2026-11-03", day) for line in conversation(session)]
        lines = [line.replace("cents", f"cents on {day}") for line in lines]
        write(sessions, f"{session}.jsonl", lines)
    csv = tmp_path / "labels.csv"
    csv.write_text("session_id,success\n")

    def run() -> str:
        said = home.typed(
            *("run", "--no-model", "--sessions", str(sessions), "--lake", str(lake)),
            DEBRIEF_LABELS=str(csv),
        )
        assert said.code == 0, said.all
        return said.err

    run()
    opened = Lake(str(lake))
    assert left_out(opened) == {}
    both = f"weekly_report {WEEKS[1]} (2 of 2)"
    assert both not in run(), "there is nothing to do"
    csv.write_text(f"session_id,success\n{FIRST},no\n")
    assert both in run()
    assert left_out(opened) == {FIRST: "its verdict: failed"}
    pages = [(opened.read_bytes(report_path(week)) or b"").decode() for week in WEEKS]
    assert [("1 failed" in page, "1 not reviewed" in page) for page in pages] == [
        (True, False),
        (False, True),
    ]
    assert both not in run()
