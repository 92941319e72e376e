"""Labels come before scores: a label that is new is in the verdict of the same run."""

from __future__ import annotations

from pathlib import Path

from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from tests.pipelines.conftest import Home
from tests.pipelines.test_run import conversation, write

WEEKS = ("2026-10-05", "2026-10-12")
FIRST, SECOND = "0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002"


def grounds(lake: Path) -> dict[str, str]:
    rows = Lake(str(lake)).rows("session_scores", SessionScores, WEEKS)
    return {row.session_id: row.verdict.basis for row in rows if row.verdict is not None}


def test_a_run_with_nothing_to_do_but_a_new_label_scores_its_week_again(tmp_path: Path) -> None:
    home, sessions, lake = Home(tmp_path), tmp_path / "sessions", tmp_path / "lake"
    sessions.mkdir()
    for day, session in (("2026-10-06", FIRST), ("2026-10-13", SECOND)):
        lines = [line.replace("2026-11-03", day) for line in conversation(session)]
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
    before = grounds(lake)
    assert "outcome" not in before.values()
    both = f"session_scores {WEEKS[1]} (2 of 2)"
    assert both not in run(), "the last week is enough to look at"
    csv.write_text(f"session_id,success\n{FIRST},no\n")
    assert both in run()
    assert grounds(lake) == {FIRST: "outcome", SECOND: before[SECOND]}
