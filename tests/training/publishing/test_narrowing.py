"""A set for training is a query over all lines: which ones, on which side, without benchmarks'."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.publishing.publish import ExportOptions, publish
from tests.training.lakes import add, stored
from tests.training.scenario import (
    EVAL,
    MONDAY,
    PROMPT,
    call,
    metadata,
    says,
    session,
    signals,
    text,
    turn,
)

OTHER = "0badcafe"
COMMIT = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
PROBLEM = " ".join(f"problem{n}" for n in range(20))


def team() -> list[Session]:
    """Eight sessions of two tools, four repositories and four weeks."""
    return [
        session(
            f"s{n}",
            turn(
                f"{PROBLEM} is what we have to solve." if n == 3 else f"Do part {n}.",
                says(f"Done with {text(60)}.", call(arguments={"command": f"make part{n}"})),
                says(f"Part {n} is {text(40)}."),
            ),
            started=MONDAY + timedelta(weeks=n % 4),
            repository=f"repo{n // 2}",
            tool=("claude-code", "codex")[n % 2],
            tool_version=f"2.{n}.0",
            models=(("claude-opus-4-5", "gpt-5")[n % 2],),
        )
        for n in range(8)
    ]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """All that is known of the team: two tasks, two prompts, one licence, one commit."""
    made = Lake(str(tmp_path_factory.mktemp("lake")))
    add(made, team())
    for week in made.partitions("session_metadata"):
        members = [one for one in team() if week_of(one.started) == week]
        rows = [
            metadata(
                member,
                task="billing" if member.id in ("s6", "s7") else "checkout",
                prompt_fingerprint=OTHER if member.id in ("s5", "s7") else PROMPT,
                licence="MIT" if member.id == "s0" else "",
                base_commit=COMMIT if member.id == "s4" else "",
            )
            for member in members
        ]
        made.write("session_metadata", week, rows, SessionMetadataRow)
        seen = [
            signals(member, work="answer" if member.id == "s2" else "code") for member in members
        ]
        made.write(SIGNALS, week, seen, SessionSignals)
    for task in ("checkout", "billing"):
        for prompt in (PROMPT, OTHER):
            stored(made, task, f"{prompt}-{EVAL}")
    return made


def exported(folder: Path) -> dict[str, str]:
    """Return the side of each session of an export in one file of each."""
    lines = {
        side: [json.loads(line)["metadata"] for line in (folder / f"{side}.jsonl").open()]
        for side in ("train", "eval")
        if (folder / f"{side}.jsonl").exists()
    }
    assert all(one["split"] == side for side, found in lines.items() for one in found)
    return {one["session_id"]: side for side, found in lines.items() for one in found}


def told(lake: Lake, folder: Path, *arguments: str) -> str:
    command = ["export", "--lake", lake.url, "--to", str(folder), *arguments]
    done = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("arguments", "sessions"),
    [
        ([], "0 1 2 3 4 5 6 7"),
        (["--task", "billing"], "6 7"),
        (["--tool", "codex"], "1 3 5 7"),
        (["--tool", "claude-code/2.[04].*,codex/2.7.0"], "0 4 7"),
        (["--model", "claude-*"], "0 2 4 6"),
        (["--fingerprint", OTHER], "5 7"),
        (["--fingerprint", f"{OTHER}-{EVAL}", "--task", "check*"], "5"),
        (["--kind", "answer"], "2"),
        (["--since", "2026-01-20"], "3 7"),
        (["--since", "2026-01-19", "--tool", "claude-code"], "2 6"),
    ],
)
def test_lines_are_asked_for_by_what_they_are(
    lake: Lake, tmp_path: Path, arguments: list[str], sessions: str
) -> None:
    told(lake, tmp_path / "out", *arguments)
    assert sorted(exported(tmp_path / "out")) == [f"s{n}" for n in sessions.split()]


def test_the_page_counts_lines_by_all_that_can_be_asked_for(lake: Lake, tmp_path: Path) -> None:
    told(lake, tmp_path / "out", "--kind", "code", "--split", "time:2026-01-20")
    page = (tmp_path / "out" / "README.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    counts = {
        (row[0][2:], row[1].strip("`")): (row[2], row[3][:-2]) for row in rows if len(row) == 4
    }
    assert counts["task", "billing"] == ("1", "1")
    assert counts["tool", "codex"] == ("2", "2")
    assert counts["version", "codex 2.7.0"] == ("0", "1")
    assert counts["model", "claude-opus-4-5"] == ("3", "0")
    assert counts["kind of work", "code"] == ("5", "2")
    assert counts["licence", "not known"] == ("4", "2")
    assert "| tool | all |" in page
    assert "| kind | code |" in page


def test_whole_repositories_or_what_came_later_are_held_out(lake: Lake, tmp_path: Path) -> None:
    told(lake, tmp_path / "repository", "--split", "repository", "--eval-share", "0.5")
    sides = exported(tmp_path / "repository")
    by_repository = [{sides[f"s{n}"], sides[f"s{n + 1}"]} for n in range(0, 8, 2)]
    assert sorted(map(sorted, by_repository)) == [["eval"]] * 2 + [["train"]] * 2
    told(lake, tmp_path / "time", "--split", "time:2026-01-19")
    assert exported(tmp_path / "time") == {
        f"s{n}": "eval" if n % 4 >= 2 else "train" for n in range(8)
    }
    page = (tmp_path / "time" / "README.md").read_text()
    assert "By time: what began on 2026-01-19 or later is held out." in page
    assert "ended after one that is held out began: 0." in page


def test_a_family_is_held_out_as_a_whole_and_a_session_over_the_date_is_left_out(
    tmp_path: Path,
) -> None:
    shared = [says(f"{n} {text(60)}", id=f"m{n}") for n in range(3)]
    late = {"ended": MONDAY + timedelta(days=8)}
    team = [
        session("before", turn("Begin.", says(text(99)))),
        session("origin", turn("Go on with it.", *shared)),
        session("fork", turn("Run.", *shared, says(text(99))), started=MONDAY + timedelta(days=7)),
        session("over", turn("Stay.", says(text(99))), **late),
        session("alone", turn("Now.", says(text(99))), started=MONDAY + timedelta(days=7)),
    ]
    lake = Lake(str(tmp_path / "lake"))
    add(lake, team)
    stored(lake, eval_share=0.0)
    left_out: dict[str, int] = {}
    options = ExportOptions(split="time:2026-01-12", one_file=True)
    publish(lake, str(tmp_path / "out"), options, lambda _, reasons: left_out.update(reasons))
    sides = {"before": "train", "origin": "eval", "fork": "eval", "alone": "eval"}
    assert exported(tmp_path / "out") == sides
    page = (tmp_path / "out" / "README.md").read_text()
    assert "ended after one that is held out began: 1." in page
    assert left_out == {
        "began before the first day that is held out and ended on it or later": 1,
    }


def test_windows_and_other_forms_are_on_the_side_that_was_asked_for(
    lake: Lake, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"split": "time:2026-01-19", "one_file": True}
    publish(lake, str(tmp_path / "cut"), ExportOptions(max_tokens=1_000, **options))
    assert set(exported(tmp_path / "cut").values()) == {"train", "eval"}
    publish(lake, str(tmp_path / "trl"), ExportOptions(form="trl", **options))
    assert len((tmp_path / "trl" / "eval.jsonl").read_text().splitlines()) == 4


def test_benchmarks_problems_are_left_out_and_counted(lake: Lake, tmp_path: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    known: list[dict[str, str]] = [
        {"benchmark": "Words", "text": PROBLEM},
        {"benchmark": "Repos", "repository": "ann/repo2", "commit": COMMIT},
        {"benchmark": "Repos", "repository": "ann/repo0", "commit": "f" * 40},
    ]
    problems.write_text("\n".join(map(json.dumps, known)))
    said = told(lake, tmp_path / "out", "--decontaminate", str(problems))
    assert sorted(exported(tmp_path / "out")) == ["s0", "s1", "s2", "s5", "s6", "s7"]
    assert (
        "of 3 problems of benchmarks, sessions left out: 1 of Repos by its commit, 1 of Words by its request"
        in said
    )
    page = (tmp_path / "out" / "README.md").read_text()
    assert "| Repos | 2 | 0 | 0 | 0 | 0 | 1 | 0 |" in page
    assert "| Words | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "3 sessions of these repositories stayed" in page


def test_lines_of_unknown_licence_are_counted_before_a_push(lake: Lake, tmp_path: Path) -> None:
    push = ("--licence", "mit", "--push", "ann/sets")
    said = told(lake, tmp_path / "out", *push)
    assert "of 7 lines the repository's licence is not known" in said
    assert "licence is not known" not in told(lake, tmp_path / "here")
