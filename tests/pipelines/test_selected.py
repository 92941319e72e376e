"""``debrief run --select``: what is due, what it would cost, what is kept, and what stops it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.samples import folder
from debrief.snapshots.model import SessionMetadataRow
from tests.models.openai_server import OpenAIServer
from tests.pipelines.conftest import Home, Said
from tests.pipelines.test_model_run import answer, conversation
from tests.pipelines.test_run import WEEK, write
from tests.waiting import LONG

MODEL = "openai/gpt-4o-mini"
WEEKS = ["2026-10-05", "2026-10-12", "2026-10-19"]


def select(home: Path, *arguments: str, **environment: str) -> Said:
    return Home(home).typed("run", "--lake", str(home / "lake"), *arguments, **environment)


def offline(home: Path, *arguments: str) -> Said:
    return select(home, "--no-model", "--sessions", str(folder()), *arguments)


def reviewed(home: Path, *arguments: str, **environment: str) -> Said:
    """Carry out a backfill with a model that answers whatever it is asked."""
    with OpenAIServer(answer) as server:
        return select(
            home,
            *("--model", MODEL, "--yes", "--sessions", str(folder()), *arguments),
            DEBRIEF_MODEL_BASE_URL=server.url,
            OPENAI_API_KEY="sk-loopback",
            **environment,
        )


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine on which three weeks of samples were read and placed, and nothing was judged."""
    home = tmp_path_factory.mktemp("machine")
    for stage in ("raw_sessions", "session_metadata"):
        said = offline(home, "--select", stage, "--weeks", f"{WEEKS[0]}..{WEEKS[-1]}")
        assert said.code == 0, said.all
    return home


@pytest.fixture(scope="module")
def scored(read: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The scores of these weeks, made without disturbance."""
    home = tmp_path_factory.mktemp("undisturbed") / "machine"
    shutil.copytree(read, home)
    reviewed(home, "--select", "session_scores")
    return files(home, "session_scores")


@pytest.fixture(scope="module")
def signalled(read: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The signals of these weeks, made without disturbance."""
    home = tmp_path_factory.mktemp("undisturbed") / "machine"
    shutil.copytree(read, home)
    offline(home, "--select", "session_signals")
    return files(home, "session_signals")


@pytest.fixture
def home(read: Path, tmp_path: Path) -> Path:
    shutil.copytree(read, tmp_path / "machine")
    return tmp_path / "machine"


def lake_of(home: Path) -> Lake:
    return Lake(str(home / "lake"))


def files(home: Path, table: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((home / "lake" / table).iterdir())}


def test_what_is_missing_is_made_and_what_is_up_to_date_is_left(
    home: Path, scored: dict[str, bytes]
) -> None:
    dry = reviewed(home, "--select", "session_scores+", "--dry-run")
    assert (dry.code, "3 weeks to make" in dry.all) == (0, True), dry.all
    assert lake_of(home).partitions("session_scores") == []
    first = reviewed(home, "--select", "session_scores", "--weeks", "2026-10-12..2026-10-19")
    assert first.code == 0, first.all
    assert "session_scores: 2026-10-12 … 2026-10-19: 2 weeks to make" in first.all
    assert "Done: 15 rows new or changed, " in first.all
    rest = reviewed(home, "--select", "session_scores")
    assert "session_scores: 2026-10-05 … 2026-10-19: 1 week to make, 2 up to date" in rest.all
    assert files(home, "session_scores") == scored
    again = reviewed(home, "--select", "session_scores", "--force", "--week", "2026-10-12")
    assert "1 week to make" in again.all
    assert "session_scores 2026-10-12 (1 of 1)" in again.err
    assert files(home, "session_scores") == scored


def test_a_week_of_long_ago_that_nobody_has_read_yet_is_read(tmp_path: Path) -> None:
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    for name, month in {"old": "2025-03", "new": "2026-11"}.items():
        lines = [line.replace("2026-11", month) for line in conversation(name)]
        write(transcripts, f"{name}.jsonl", lines)
    given = ("--no-model", "--sessions", str(transcripts))
    for chosen in ("raw_sessions", "+session_signals"):
        said = select(tmp_path / chosen, *given, "--select", chosen)
        assert said.code == 0, said.all
        assert len(Lake(str(tmp_path / chosen / "lake")).partitions("raw_sessions")) == 2


def test_without_a_model_stages_that_ask_one_are_off(home: Path) -> None:
    said = offline(home, "--select", "session_scores")
    assert said.code == 0, said.all
    assert "session_scores: off: no model is configured" in said.out
    assert "Done: 0 rows new or changed." in said.out
    assert lake_of(home).partitions("session_scores") == []


def test_a_changed_judge_makes_its_weeks_stale_and_no_other_stage(home: Path) -> None:
    judges = home / "judges"
    shutil.copytree(Path(__file__).parents[2] / "judges", judges)
    # Judges that are asked in the question of the review are a part of it.
    alone = {"DEBRIEF_JUDGES": str(judges), "DEBRIEF_CACHE": "off"}

    def run(stage: str) -> str:
        said = reviewed(home, "--select", stage, **alone)
        assert said.code == 0, said.all
        return said.all

    run("judge_evaluations")
    run("session_scores")
    with (judges / "code-reuse.md").open("a") as file:
        file.write("\nName the helper.\n")
    assert "3 weeks to make" in run("judge_evaluations")
    assert "3 up to date" in run("session_scores")


def test_conditions_take_the_sessions_that_answer_and_leave_the_others(home: Path) -> None:
    lake = lake_of(home)
    said = reviewed(home, "--select", "judge_evaluations", "--where", "tool=droid")
    assert said.code == 0, said.all
    tools = {
        row.session_id: row.tool
        for week in WEEKS
        for row in lake.read("session_metadata", week, SessionMetadataRow)
    }
    droids = {name for name, tool in tools.items() if tool == "droid"}
    assert judged_of(lake) == droids
    whole = reviewed(home, "--select", "judge_evaluations")
    assert "3 weeks to make" in whole.all
    assert judged_of(lake) == set(tools)
    after = files(home, "judge_evaluations")
    reviewed(home, "--select", "judge_evaluations", "--where", "task=late-*", "--force")
    assert files(home, "judge_evaluations") == after


def judged_of(lake: Lake) -> set[str]:
    return {
        row.session_id
        for week in WEEKS
        for row in lake.read("judge_evaluations", week, JudgeEvaluation)
    }


SCORES = ("--select", "session_scores")
SETS = ("--select", "training_sets")
REFUSED = {
    "a stage that is none": (["--select", "scores"], "selects no stage"),
    "no stage of both": (["--select", "session_scores and labels"], "selects no stage"),
    "half a selection": (["--select", "session_scores and ("], "selects no stage"),
    "a stage mistyped": (["--select", "sesion_scores"], "Did you mean session_scores?"),
    "Tuesday": ([*SCORES, "--weeks", "2026-10-06"], "Monday"),
    "a range that runs backwards": (
        [*SCORES, "--weeks", "2026-11-02..2026-10-05"],
        "runs backwards. Write 2026-10-05..2026-11-02.",
    ),
    "too early": ([*SCORES, "--weeks", "2020-01-06"], "begins before 2022-01-03"),
    "no session": (
        [*SCORES, "--weeks", "2025-01-06..2025-01-13"],
        "--week 2025-01-06..2025-01-13: holds no session. "
        "There are sessions from 2026-10-05 to 2026-10-19.",
    ),
    "a week to come": ([*SCORES, "--weeks", "2106-01-04"], "--week 2106-01-04: holds no session."),
    "a value mistyped": (
        [*SCORES, "--where", "task=late-*", "--where", "tool=drid"],
        "--where tool=drid: fits no session. There are: claude-code, droid.",
    ),
    "conditions that no session has together": (
        [*SCORES, "--where", "tool=droid;model=claude-opus*"],
        "each has some, and none has all",
    ),
    "a task that is none": ([*SETS, "--where", "task=nobody"], "fits no session. There are: "),
    "half": ([*SCORES, "--where", "tool"], "no condition"),
    "a debt": ([*SCORES, "--max-cost", "-1"], "is no limit"),
    "no number": ([*SCORES, "--max-cost", "nan"], "is no limit"),
}


@pytest.mark.parametrize(("arguments", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_told_in_one_line(
    read: Path, arguments: Sequence[str], reason: str
) -> None:
    said = offline(read, *arguments)
    assert (said.code, reason in said.all) == (1, True), said.all
    assert "Traceback" not in said.all


def test_a_lake_without_a_session_says_what_comes_first(tmp_path: Path) -> None:
    said = select(tmp_path, "--no-model", "--select", "session_scores")
    assert said.code == 1
    assert "lake: holds no session. debrief sources lists what there is to read" in said.all


def command(home: Path) -> list[str]:
    words = ["run", "--select", "session_signals", "--no-model", "--lake"]
    return [sys.executable, "-m", "pipelines.command", *words, str(home / "lake")]


def started(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(home),
        env=Home(home).environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )


def test_a_run_that_was_killed_goes_on_where_it_was(
    read: Path, tmp_path: Path, signalled: dict[str, bytes]
) -> None:
    for attempt in range(10):
        home = tmp_path / f"home{attempt}"
        shutil.copytree(read, home)
        running = started(home)
        while not lake_of(home).partitions("session_signals") and running.poll() is None:
            time.sleep(0.005)
        running.kill()
        said_by_it = running.communicate(timeout=LONG)
        done = files(home, "session_signals")
        if len(done) < len(WEEKS):
            break
    assert running.returncode == -signal.SIGKILL, said_by_it
    assert done.items() <= signalled.items()
    said = offline(home, "--select", "session_signals")
    assert said.code == 0, said.all
    assert len(done) < len(WEEKS)
    assert files(home, "session_signals") == signalled


def test_two_people_who_start_the_same_leave_whole_tables(
    home: Path, signalled: dict[str, bytes]
) -> None:
    shutil.rmtree(home / "lake" / ".dagster")  # so that both begin by making Dagster's tables
    both = [started(home), started(home)]
    for running in both:
        _, err = running.communicate(timeout=600)
        assert running.returncode == 0, err
    assert files(home, "session_signals") == signalled


def test_with_a_model_costs_are_told_first_agreed_to_and_bounded(tmp_path: Path) -> None:
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    for name in ("one", "two", "three"):
        told = [line.replace("to cents", f"to cents of {name}") for line in conversation(name)]
        write(transcripts, f"{name}.jsonl", told)
    prices = tmp_path / ".debrief" / "prices.json"
    prices.parent.mkdir()
    prices.write_text(json.dumps({MODEL: {"input": 1000, "output": 1000}}))

    with OpenAIServer(answer) as server:

        def run(*arguments: str) -> Said:
            return select(
                tmp_path,
                *("--sessions", str(transcripts), "--model", MODEL),
                *arguments,
                DEBRIEF_MODEL_BASE_URL=server.url,
                OPENAI_API_KEY="sk-loopback",
                DEBRIEF_RETRY_PAUSE="0.01",
            )

        unread = run("--select", "raw_sessions+")
        assert unread.code == 1
        assert "What follows a stage that is due is known once that was done" in unread.all
        assert "nobody agreed" in unread.all
        assert run("--select", "raw_sessions").code == 0
        both = run("--select", "raw_sessions+", "--dry-run")
        assert "session_scores: 3 calls" in both.all
        assert "0 scored" not in both.all, "a rehearsal does not speak as if it had done something"
        assert Lake(str(tmp_path / "lake")).partitions("judge_sets") == []
        judge = ("--select", "judge_evaluations")
        refused = run(*judge)
        assert refused.code == 1
        assert "judge_evaluations: 3 calls" in refused.all, "both judges ride in one question"
        assert "nobody agreed to it. Add --yes, or a limit: --max-cost 2." in refused.all
        assert len(server.calls) == 0
        bounded = run(*judge, "--yes", "--max-cost", "0.001")
        assert bounded.code == 0, bounded.all
        assert "(up to $0.0010, the limit; the rest is left for the next run)" in bounded.all
        assert len(server.calls) == 0
        assert "6 failed: the next run tries them again" in bounded.all
        agreed = run(*judge, "--yes")
        assert agreed.code == 0, agreed.all
        assert len(server.calls) == 3
        assert "3 calls, $" in agreed.all
        rows = list(Lake(str(tmp_path / "lake")).read("judge_evaluations", WEEK, JudgeEvaluation))
        assert [row.score for row in rows] == [0.9] * 6
        again = run(*judge, "--force", "--dry-run")
        assert "judge_evaluations: 0 calls" in again.all  # the answers are kept
