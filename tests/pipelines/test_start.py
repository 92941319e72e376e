"""``debrief`` alone: sessions on a page while they are read, live ones too, and a clean end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest

from debrief.cli import reading as reading_process
from debrief.cli.progress import StoppedError, stopped
from debrief.cli.reading import BackgroundReading, ReviewQuestion
from debrief.errors import InputError
from debrief.files import only_writer
from debrief.lake import DAMAGED_SUFFIX, Lake
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.store import SESSIONS_TABLE
from debrief.settings import Settings, load_settings
from debrief.signals.schema import TABLE, SessionSignals
from tests.pipelines.conftest import ELSEWHERE, Home, only_line
from tests.pipelines.test_first_minutes import start
from tests.pipelines.test_run import WEEK, conversation, record, write
from tests.ports import free_port
from tests.waiting import LONG, is_over, wait_until


def test_sessions_appear_as_they_come_and_a_second_start_shows_the_same(home: Home) -> None:
    transcripts = home.path / ".claude" / "projects" / "shop"
    transcripts.mkdir(parents=True)
    write(transcripts, "one.jsonl", conversation("one"))
    lake = Lake(str(home.path / ".debrief/lake"))
    address = f"http://127.0.0.1:{(port := free_port())}"
    another_run = ExitStack()
    another_run.enter_context(only_writer(home.path / ".debrief", lake.url))
    shown = start(home, "start", "--no-browser", "--port", str(port))
    try:
        assert shown.stdout is not None
        said = [shown.stdout.readline() for _ in range(3)]
        assert f"{address}  your sessions, as they are read  (Ctrl-C stops it)\n" in said
        assert "Found 1 session of 1 tool:\n" in said
        assert any(line.split()[:2] == ["claude-code", "1"] for line in said)
        wait_until(lambda: "1 session" in page(f"{address}/sessions"))
        write(transcripts, "live.jsonl", conversation("live"))
        wait_until(lambda: "2 sessions" in page(f"{address}/sessions"))
        assert "Round the tax too" not in page(f"{address}/sessions/live")
        goes_on = record("user", "Round the tax too", 2, "live")
        write(transcripts, "live.jsonl", [*conversation("live"), goes_on])
        wait_until(lambda: "Round the tax too" in page(f"{address}/sessions/live"))
        assert not lake.partitions(TABLE), "the run that makes signals has not begun"
        another_run.close()
        again = home.typed("start", "--no-browser")
        assert (again.code, again.out) == (0, f"Debrief runs already: {address}\n")
        while "New sessions are read as they come" not in (line := shown.stdout.readline()):
            assert line, shown.stderr.read() if shown.stderr else ""
            said.append(line)
        assert any("2 sessions do not say which CLAUDE.md" in line for line in said)
        assert any(line == "2 sessions. 2 not reviewed.\n" for line in said)
        seen = {row.session_id for row in lake.read(TABLE, WEEK, SessionSignals)}
        assert seen == {"one", "live"}
        assert not lake.partitions("session_scores")
        children = psutil.Process(shown.pid).children(recursive=True)
        shown.send_signal(signal.SIGINT)
        out, err = shown.communicate(timeout=LONG)
        assert (shown.returncode, "Traceback" in err) == (0, False), err
        assert out.endswith("Stopped. What was read stays; debrief goes on from there.\n")
        wait_until(lambda: all(is_over(child.pid) for child in children))
        assert children
    finally:
        another_run.close()
        shown.kill()
        shown.communicate()


def page(address: str) -> str:
    return httpx.get(address, timeout=LONG).text


def test_on_a_machine_without_a_session_the_first_one_appears_when_it_begins(home: Home) -> None:
    address = f"http://127.0.0.1:{(port := free_port())}"
    shown = start(home, "start", "--no-browser", "--port", str(port))
    try:
        assert shown.stdout is not None
        said = ""
        while "New sessions are read as they come" not in said:
            said += (line := shown.stdout.readline())
            assert line, shown.stderr.read() if shown.stderr else ""
        assert "No session is yet in the folders where tools keep them." in said
        transcripts = home.path / ".claude" / "projects" / "shop"
        transcripts.mkdir(parents=True)
        write(transcripts, "one.jsonl", conversation("one"))
        wait_until(lambda: "1 session" in page(f"{address}/sessions"))
    finally:
        shown.send_signal(signal.SIGINT)
        shown.communicate(timeout=LONG)


def test_off_a_terminal_debrief_alone_is_its_help(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.command"],
        env=home.environment(),
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert "Usage: " in done.stdout
    assert not (home.path / ".debrief").exists()


def lives_in(home: Home, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("HOME", str(home.path))
    monkeypatch.setenv("DEBRIEF_HOME", str(home.path / ".debrief"))
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    return load_settings()


def test_what_is_forgotten_between_a_look_and_the_reading_is_not_read_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcripts = home.path / ".claude" / "projects" / "shop"
    transcripts.mkdir(parents=True)
    write(transcripts, "session-goes.jsonl", conversation("session-goes"))
    reading = BackgroundReading(lives_in(home, monkeypatch))
    reading.catch_up(reading.look(), bool)
    write(transcripts, "another.jsonl", conversation("another"))
    weeks = reading.look()
    assert home.typed("forget", "session-goes", "--yes").code == 0
    reading.catch_up(weeks, bool)
    heads = reading.lake.read(SESSIONS_TABLE, WEEK, SessionHead)
    assert {head.id for head in heads} == {"another"}


def test_a_stop_while_signals_of_what_is_new_are_made_ends_the_process(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = lives_in(home, monkeypatch)
    reading = BackgroundReading(settings)
    reading.unfilled_since = float("-inf")
    asked: list[Settings] = []

    def fill(settings: Settings) -> None:
        asked.append(settings)
        if len(asked) == 1:
            reading.unfilled_since = float("-inf")
            raise InputError("a stage", "failed")
        raise stopped()

    monkeypatch.setattr(reading_process, "_LOOK", 0.0)
    monkeypatch.setattr(reading_process, "_fill", fill)
    with pytest.raises(StoppedError):
        reading_process._follow(settings, reading, ReviewQuestion(settings))
    assert len(asked) == 2


def test_a_week_that_is_damaged_is_read_again_and_its_file_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcripts = home.path / ".claude" / "projects" / "shop"
    transcripts.mkdir(parents=True)
    write(transcripts, "one.jsonl", conversation("one"))
    settings = lives_in(home, monkeypatch)
    reading = BackgroundReading(settings)
    reading.catch_up(reading.look(), bool)
    stored = next(Path(settings.lake, SESSIONS_TABLE).glob(f"{WEEK}*"))
    stored.write_bytes(stored.read_bytes()[:40])
    write(transcripts, "two.jsonl", conversation("two"))
    reading.catch_up(reading.look(), bool)
    lake = Lake(settings.lake)
    assert {row.id for row in lake.read(SESSIONS_TABLE, WEEK, Session)} == {"one", "two"}
    assert len(list(stored.parent.glob(f"*{DAMAGED_SUFFIX}"))) == 1
    assert not reading.look()


def test_a_port_that_is_taken_is_said(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = only_line(home.typed("start", "--no-browser", "--port", str(port)))
    assert f"127.0.0.1:{port}: cannot be listened on" in line
