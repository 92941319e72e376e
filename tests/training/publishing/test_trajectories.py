"""Whole sessions of a lake, exported in ATIF."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.sessions.sources import read_week, scan
from debrief.sessions.store import SESSIONS_TABLE
from tests.training.scenario import says, session, turn

WEEK = "2026-01-05"
TOKEN = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


def exported(lake: Lake, target: Path, *options: str) -> Result:
    place = ["--to", str(target), "--lake", lake.url]
    return CliRunner().invoke(app, ["export", "--form", "atif", *place, *options])


def one(id: str, said: str = "Done.", task: str = "retries") -> Session:
    return session(id, turn(f"Do {id}.", says(said)), task=task, repository=task)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "lake"))
    lake.write(SESSIONS_TABLE, WEEK, [one("s1"), one("s/2"), one("s3", task="cart")], Session)
    return lake


def test_each_session_is_a_file_that_is_read_again(lake: Lake, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = exported(lake, out)
    assert "3 sessions" in first.stdout
    names = {path.name for path in out.glob("*.json")} - {".debrief.json"}
    assert {"s1.json", "s3.json"} < names
    found = scan([out])
    read = [item for week in found.weeks() for item in read_week(found, week)]
    assert {(item.id, item.task) for item in read if isinstance(item, Session)} == {
        ("s1", "retries"),
        ("s/2", "retries"),
        ("s3", "cart"),
    }
    assert "nothing had changed" in exported(lake, out).stdout


def test_files_of_sessions_that_are_no_longer_exported_go(lake: Lake, tmp_path: Path) -> None:
    exported(lake, tmp_path / "out")
    exported(lake, tmp_path / "out", "--task", "cart")
    assert {path.name for path in (tmp_path / "out").glob("[!.]*")} == {"s3.json"}


def test_a_session_with_a_secret_is_left_out_and_said_so(lake: Lake, tmp_path: Path) -> None:
    lake.write(SESSIONS_TABLE, WEEK, [one("s1"), one("s2", f"token {TOKEN}")], Session)
    done = exported(lake, tmp_path / "out")
    assert "1 session\n" in done.stdout
    assert "left out: 1 of 2" in done.stdout
    assert not (tmp_path / "out" / "s2.json").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--parquet"], "--parquet: is not of whole sessions"),
        (["--task", "nope"], "holds no session of task nope"),
    ],
)
def test_what_trajectories_have_not_is_refused(
    options: list[str], reason: str, lake: Lake, tmp_path: Path
) -> None:
    done = exported(lake, tmp_path / "out", *options)
    assert done.exit_code == 1
    assert reason in done.stderr
