"""What goes wrong for a newcomer: each ends in one plain line that says what to do."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import httpx
import pytest

from debrief.samples import folder
from debrief.settings import load_settings
from pipelines.automation import weekly
from pipelines.ui import first_week
from tests.pipelines.conftest import Demo, Home, Said
from tests.ports import free_port
from tests.waiting import LONG, wait_until

SAMPLES = ("run", "--offline", "--sessions", str(folder()))


def only_line(said: Said) -> str:
    """Return what the command says of its failure, beside the lines of its progress."""
    assert said.code == 1, said.all
    assert "Traceback" not in said.all
    lines = [line for line in said.err.splitlines() if not line.startswith("  ")]
    assert len(lines) == 1, said.err
    return lines[0]


def test_a_week_without_a_session_is_no_success_and_says_where_sessions_are(home: Home) -> None:
    said = home.debrief(*SAMPLES, "--lake", str(home.path / "lake"), "--week", "2031-01-06")
    line = only_line(said)
    assert "2031-01-06: no session in that week" in line
    assert "from 2026-10-05 to 2026-11-02" in line


@pytest.mark.parametrize("table", ["session_scores", "scan"])
def test_a_damaged_table_is_named_with_the_next_move(
    demo: Demo, home: Home, tmp_path: Path, table: str
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(demo.lake.path("raw_sessions").removesuffix("/raw_sessions"), lake)
    damaged = sorted((lake / table).glob("*.parquet"))[-1]
    damaged.write_bytes(b"hello")
    line = only_line(home.debrief(*SAMPLES, "--lake", str(lake)))
    assert str(damaged) in line
    assert "Remove the file; the next run makes it again" in line


@pytest.mark.parametrize("command", [["demo"], ["ui", "--demo"], ["view"], ["score", "--all"]])
def test_a_home_that_cannot_be_written_is_named(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "file").write_text("no folder")
    line = only_line(Home(tmp_path / "file").debrief(*command))
    assert str(tmp_path / "file") in line
    assert "Not a directory" in line


@pytest.mark.parametrize(
    "command",
    [["ui"], ["view"], ["score", "--all"], ["export", "--to", "there"]],
)
def test_what_only_reads_makes_no_lake(home: Home, command: list[str]) -> None:
    lake = home.path / "nowhere" / "lake"
    assert f"--lake {lake}: is no folder" in only_line(home.debrief(*command, "--lake", str(lake)))
    assert not lake.parent.exists()


def test_the_ui_lists_weeks_from_the_first_with_sessions(demo: Demo) -> None:
    home = {"DEBRIEF_HOME": str(demo.home.path / ".debrief"), "DEBRIEF_LAKE": demo.lake.url}
    assert first_week(load_settings(home)) == "2026-10-05"
    assert first_week(load_settings({**home, "DEBRIEF_FIRST_WEEK": "2026-01-05"})) == "2026-01-05"
    assert first_week(load_settings({**home, "DEBRIEF_LAKE": "/no/lake"})) == "2022-01-03"
    listed = subprocess.run(
        [sys.executable, "-c", "from assets.partitions import WEEKS; print(WEEKS.get_first_partition_key())"],
        env=demo.home.environment(DEBRIEF_FIRST_WEEK="2026-10-05"),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert listed.stdout.strip() == "2026-10-05"


def test_the_schedule_takes_no_week_before_those_that_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEBRIEF_FIRST_WEEK", "2026-11-09")
    tick = dg.build_schedule_context(scheduled_execution_time=datetime(2026, 11, 23, 3, tzinfo=UTC))
    asked = weekly(tick)
    assert isinstance(asked, dg.RunRequest)
    assert asked.tags["dagster/asset_partition_range_start"] == "2026-11-09"
    early = dg.build_schedule_context(scheduled_execution_time=datetime(2026, 11, 9, 3, tzinfo=UTC))
    assert isinstance(weekly(early), dg.SkipReason)


def test_previews_begin_with_the_worst_and_lead_to_its_page(demo: Demo) -> None:
    with dg.DagsterInstance.from_config(str(demo.home.path / ".debrief/demo/.dagster")) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("session_scores"))
    assert event is not None
    assert event.asset_materialization is not None
    shown = str(event.asset_materialization.metadata["scores"].value).splitlines()[2:]
    marks = [float(row.split(" | ")[1]) for row in shown if row.startswith("| [")]
    assert marks == sorted(marks)
    assert "| [Upload](http://127.0.0.1:3001/sessions/" in shown[0]
    assert "breaks off" in shown[0]


def start(home: Home, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.command", *arguments],
        env=home.environment(PYTHONUNBUFFERED="1"),
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("number", "until"), [(signal.SIGTERM, "  raw_sessions"), (signal.SIGINT, "found")]
)
def test_a_run_that_was_stopped_says_that_the_same_command_goes_on(
    home: Home, number: signal.Signals, until: str
) -> None:
    lake = ("--lake", str(home.path / "lake"))
    running = start(home, *SAMPLES, *lake)
    assert running.stderr is not None
    said = ""
    while until not in said:
        said += running.stderr.readline()
    running.send_signal(number)
    out, err = running.communicate(timeout=LONG)
    line = only_line(Said(running.returncode, out, err))
    assert line.endswith("was stopped; what was finished stays. The same command goes on.")
    again = home.debrief(*SAMPLES, *lake)
    assert again.code == 0, again.err
    assert "36 sessions in 5 weeks" in again.out


@pytest.fixture
def ui(home: Home) -> Iterator[tuple[int, Home]]:
    port, view_port = free_port(), free_port()
    running = start(home, "ui", "--port", str(port), "--view-port", str(view_port))
    try:
        assert running.stdout is not None
        said: list[str] = []
        wait_until(lambda: said.append(str(running.stdout.readline())) or port_of(said))  # type: ignore[func-returns-value,union-attr]
        assert f"http://127.0.0.1:{port}" in said[-1]
        pages = str(running.stdout.readline()).split()[0]
        assert pages == f"http://127.0.0.1:{view_port}"
        assert f'href="http://127.0.0.1:{port}">Run things in Dagster' in httpx.get(pages).text
        yield port, home
    finally:
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=LONG)
        assert err == ""


def port_of(said: list[str]) -> bool:
    return "http://" in said[-1]


def test_a_second_ui_ends_with_one_line_and_starts_no_second_daemon(ui: tuple[int, Home]) -> None:
    port, home = ui
    taken = only_line(home.debrief("ui", "--port", str(port)))
    assert f"127.0.0.1:{port}: cannot be listened on (Address already in use)" in taken
    assert "--port" in taken
    beside = only_line(home.debrief("ui", "--port", str(free_port())))
    assert f"is shown already. Look at http://127.0.0.1:{port}" in beside
