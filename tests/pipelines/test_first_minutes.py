"""What goes wrong for a newcomer: each ends in one plain line that says what to do."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import WEEKS
from debrief.keys import week_after
from debrief.samples import folder
from pipelines.automation import weekly
from tests.machine import keep_patterns
from tests.pipelines.conftest import Home, Said, only_line
from tests.pipelines.test_run import conversation, write
from tests.waiting import LONG

README = Path(__file__).parents[2] / "README.md"

SAMPLES = ("run", "--no-model", "--sessions", str(folder()))


def test_a_week_without_a_session_is_no_success_and_says_where_sessions_are(home: Home) -> None:
    said = home.typed(*SAMPLES, "--lake", str(home.path / "lake"), "--week", "2031-01-06")
    line = only_line(said)
    assert "2031-01-06: holds no session" in line
    assert "from 2026-10-05 to 2026-11-02" in line


@pytest.mark.parametrize("command", [["demo"], ["ui", "--demo"], ["view"], ["score", "--all"]])
def test_a_home_that_cannot_be_written_is_named(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "file").write_text("no folder")
    line = only_line(Home(tmp_path / "file").typed(*command))
    assert str(tmp_path / "file") in line
    assert "Not a directory" in line


@pytest.mark.parametrize(
    "command",
    [["ui"], ["view"], ["score", "--all"], ["export", "--to", "there"]],
)
def test_what_only_reads_makes_no_lake(home: Home, command: list[str]) -> None:
    lake = home.path / "nowhere" / "lake"
    assert f"--lake {lake}: is no folder" in only_line(home.typed(*command, "--lake", str(lake)))
    assert not lake.parent.exists()


@pytest.mark.parametrize("command", ["ui", "view"])
def test_the_pages_are_where_the_readme_says(home: Home, command: str) -> None:
    (port,) = set(re.findall(r"http://127\.0\.0\.1:(\d+)", README.read_text()))
    said = home.typed(command, "--help").out
    assert re.search(rf" --port\b[^-]*\[default: {port}\]", said)


def test_the_schedule_takes_no_week_before_those_that_are_listed() -> None:
    first = str(WEEKS.get_first_partition_key())

    def ticked(weeks: int) -> dg.RunRequest | dg.SkipReason:
        tick = datetime.fromisoformat(f"{week_after(first, weeks)}T03:00:00+00:00")
        asked = weekly(dg.build_schedule_context(scheduled_execution_time=tick))
        assert isinstance(asked, dg.RunRequest | dg.SkipReason)
        return asked

    asked = ticked(2)
    assert isinstance(asked, dg.RunRequest)
    assert asked.tags["dagster/asset_partition_range_start"] == first
    assert isinstance(ticked(0), dg.SkipReason)


def start(
    home: Home, *arguments: str, through: Sequence[str] = (), **environment: str
) -> subprocess.Popen[str]:
    keep_patterns(home.path / ".debrief")
    return subprocess.Popen(
        [*through, sys.executable, "-m", "pipelines.command", *arguments],
        env=home.environment(PYTHONUNBUFFERED="1", **environment),
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("number", "until"), [(signal.SIGTERM, "  raw_sessions"), (signal.SIGINT, "found")]
)
def test_a_run_that_was_stopped_says_that_the_same_command_goes_on(
    home: Home, number: signal.Signals, until: str
) -> None:
    transcripts = home.path / "transcripts"
    transcripts.mkdir()
    for name in ("one", "two"):
        write(transcripts, f"{name}.jsonl", conversation(name))
    run = ("run", "--no-model", "--sessions", str(transcripts), "--lake", str(home.path / "lake"))
    running = start(home, *run)
    assert running.stderr is not None
    said = ""
    while until not in said:
        said += running.stderr.readline()
    running.send_signal(number)
    out, err = running.communicate(timeout=LONG)
    line = only_line(Said(running.returncode, out, err))
    assert line.endswith("was stopped; what was finished stays. The same command goes on.")
    again = home.typed(*run)
    assert again.code == 0, again.err
    assert "2 sessions in 1 week" in again.out


IGNORES_CTRL_C = (
    "import os, signal, sys; signal.signal(2, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
)
