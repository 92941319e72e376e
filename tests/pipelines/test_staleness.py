"""What the UI shows as stale after a judge or a prompt was edited: what comes after it, alone."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tests.pipelines.conftest import Demo, run_command

TOP = Path(__file__).parents[2]
AFTER_A_JUDGE = {
    "judge_evaluations",
    "judge_agreement",
    "training_sets",
    "fingerprint_leaderboard",
    "weekly_report",
}
AFTER_THE_JUDGE_TEMPLATE = {
    "rubrics",
    "rubric_evaluations",
    "judge_agreement",
    "training_sets",
    "weekly_report",
}


def stale(demo: Demo, top: Path = TOP, **environment: str) -> set[str]:
    home = demo.home.path / ".debrief/demo/.dagster"
    said = run_command(
        [sys.executable, str(TOP / "tests/pipelines/stale.py"), str(home)],
        demo.home.environment(
            DAGSTER_HOME=str(home), PYTHONPATH=str(top), DEBRIEF_OFFLINE="1", **environment
        ),
    )
    assert said.code == 0, said.err
    statuses: dict[str, list[str]] = json.loads(said.out.splitlines()[-1])
    assert all(
        found in (["FRESH"], ["STALE"]) or (name == "prompt_candidates" and found == [])
        for name, found in statuses.items()
    ), statuses
    return {name for name, found in statuses.items() if found == ["STALE"]}


def test_after_the_whole_graph_nothing_is_stale(demo: Demo) -> None:
    assert stale(demo) == set()


def test_an_edited_judge_makes_stale_what_comes_after_it_and_nothing_else(
    demo: Demo, tmp_path: Path
) -> None:
    judges = tmp_path / "judges"
    shutil.copytree(TOP / "judges", judges)
    assert stale(demo, DEBRIEF_JUDGES=str(judges)) == set()
    with (judges / "code-reuse.md").open("a") as file:
        file.write("\nSay so when a helper was there already.\n")
    assert stale(demo, DEBRIEF_JUDGES=str(judges)) == AFTER_A_JUDGE


def test_an_edited_prompt_makes_stale_what_comes_after_it_and_nothing_else(
    demo: Demo, tmp_path: Path
) -> None:
    for name in ("pipelines", "assets", "resources", "debrief", "prompts", "judges"):
        skipped = shutil.ignore_patterns("__pycache__", "data")
        shutil.copytree(TOP / name, tmp_path / name, ignore=skipped)
    with (tmp_path / "prompts/judge_template.txt").open("a") as file:
        file.write("\nBe brief.\n")
    assert stale(demo, tmp_path) == AFTER_THE_JUDGE_TEMPLATE
