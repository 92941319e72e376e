"""A server as a source: listed and fetched once, beside the transcripts, and never at their cost."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.errors import ConfigurationError
from debrief.lake import Lake
from debrief.langfuse.fetcher import LISTING
from debrief.langfuse.source import (
    FETCHED_TABLE,
    FRESH,
    LangfuseSource,
    ServerFilter,
    source_from_settings,
)
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.scanning import Scan
from debrief.sessions.store import scan_into, store_week
from debrief.settings import load_settings
from debrief.stages.configuration import SessionSources
from tests.langfuse.scenario import START, Recorder, client_of
from tests.langfuse.server import LangfuseServer, Mode, Trouble
from tests.planting import Planted, Search
from tests.redaction.synthetic import Maker
from tests.sessions.scenario import Log

WEEK = "2026-10-05"
REDACTOR = Redactor(b"k" * 32)
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def source_of(
    server: LangfuseServer, now: datetime = START + timedelta(days=1), days_before: int = 1
) -> LangfuseSource:
    since = START - timedelta(days=days_before)
    passing = (now + number * FRESH for number in count())
    return LangfuseSource(
        client_of(server, attempts=2), ServerFilter(since=since), now=lambda: next(passing)
    )


def taken(
    lake: Lake, source: LangfuseSource, folders: list[Path] | None = None
) -> tuple[Scan, list[Session], list[UnreadTranscript]]:
    """Scan and store, and return what the lake holds of the week then."""
    found = scan_into(lake, folders or [], REDACTOR, [source])
    for week in found.weeks():
        store_week(lake, found, week, REDACTOR, [source])
    sessions = list(lake.read("raw_sessions", WEEK, Session))
    return found, sessions, list(lake.read("unread_transcripts", WEEK, UnreadTranscript))


def fetched(server: LangfuseServer) -> list[str]:
    """The sessions that were fetched whole, in order."""
    rows = server.sent("GET", "/v2/observations")
    return [r.query["sessionId"] for r in rows if "io" in r.query["fields"].split(",")]


def listings(server: LangfuseServer) -> int:
    return sum(r.query["fields"] == LISTING for r in server.sent("GET", "/v2/observations"))


def transcript(folder: Path, session_id: str) -> Path:
    log = Log("Fix the cart, please.", session=session_id, started=START)
    log.says("Fixed.")
    return log.write(folder / f"{session_id}.jsonl")


@pytest.mark.parametrize("mode", ["events_only", "dual", "old"])
def test_a_servers_sessions_stand_in_the_lake_redacted(mode: Mode, lake: Lake) -> None:
    with LangfuseServer(mode) as server:
        for number in range(3):
            Recorder(server, f"s{number}").trace(f"t{number}", f"use {SECRET}", "Done.")
        found, sessions, unread = taken(lake, source_of(server))
    assert [session.id for session in sessions] == ["s0", "s1", "s2"]
    assert found.weeks() == [WEEK]
    assert unread == []
    assert all(SECRET not in session.turns[0].prompt for session in sessions)
    assert sessions[0].redactions == 1
    assert [ref.path for ref in sessions[0].transcripts] == ["langfuse:s0"]


def test_what_did_not_change_is_not_fetched_again(server: LangfuseServer, lake: Lake) -> None:
    recorder = Recorder(server, "s0")
    recorder.trace("t0", "go", "Done.")
    Recorder(server, "s1").trace("t1", "go", "Done.")
    source = source_of(server)
    taken(lake, source)
    assert sorted(fetched(server)) == ["s0", "s1"]
    first = listings(server)
    taken(lake, source)
    assert sorted(fetched(server)) == ["s0", "s1"]
    assert listings(server) - first == 1
    recorder.trace("t2", "and more", "Done.")
    _, sessions, _ = taken(lake, source)
    assert sorted(fetched(server)) == ["s0", "s0", "s1"]
    assert [len(session.turns) for session in sessions] == [2, 1]


def test_what_an_older_version_made_of_observations_is_made_anew(
    server: LangfuseServer, lake: Lake
) -> None:
    Recorder(server, "s0").trace("t0", "go", "Done.")
    source = source_of(server)
    _, (session,), _ = taken(lake, source)
    (key,) = lake.partitions(FETCHED_TABLE)
    older = replace(session, turns=())
    lake.write(FETCHED_TABLE, key, [older], Session, lambda: "made by an older version")
    found = scan_into(lake, [], REDACTOR, [source])
    store_week(lake, found, WEEK, REDACTOR, [source], again=True)
    (stored,) = lake.read("raw_sessions", WEEK, Session)
    assert stored.turns == session.turns
    assert fetched(server) == ["s0", "s0"]


def test_an_observation_that_was_filled_in_later_is_fetched(
    server: LangfuseServer, lake: Lake
) -> None:
    Recorder(server, "s0").trace("t0", "go", "")
    source = source_of(server)
    taken(lake, source)
    server.observations[0] |= {"output": "Done at last.", "updatedAt": "2026-10-05T12:05:00.000Z"}
    _, (session,), _ = taken(lake, source)
    assert session.turns[0].messages[-1].text == "Done at last."


def test_a_session_that_goes_on_for_weeks_stays_in_the_week_it_began(
    server: LangfuseServer, lake: Lake
) -> None:
    recorder = Recorder(server, "s0")
    recorder.trace("t0", "go", "Done.")
    taken(lake, source_of(server))
    recorder.clock = timedelta(days=40).total_seconds()
    recorder.trace("t1", "still there?", "Yes.")
    found, sessions, _ = taken(lake, source_of(server, START + timedelta(days=41)))
    assert found.weeks() == [WEEK]
    assert [turn.prompt for turn in sessions[0].turns] == ["go", "still there?"]


def test_an_id_that_holds_a_secret_is_told_without_it_and_never_stored(
    server: LangfuseServer, lake: Lake
) -> None:
    secret = Maker(61).github()
    for name in ("s0", f"run-{secret}"):
        Recorder(server, name).trace(f"t-{name[:3]}", "go", "Done.")
    for _ in range(2):
        found, sessions, unread = taken(lake, source_of(server))
        assert [session.id for session in sessions] == ["s0"]
        assert [row.reason for row in unread] == [
            "not fetched: its id holds a secret, which is not kept to ask for it"
        ]
        assert secret not in str((found, unread))
    assert fetched(server) == ["s0"]
    assert not Search(Planted({secret: "langfuse, id"})).below(Path(lake.url))


def test_an_interrupted_fetch_goes_on_where_it_was(server: LangfuseServer, lake: Lake) -> None:
    for number in range(6):
        Recorder(server, f"s{number}").trace(f"t{number}", "go", "Done.")
    source = source_of(server)
    found = scan_into(lake, [], REDACTOR, [source])
    source.reader(lake, found.of_week(WEEK)[:4], REDACTOR)
    before = fetched(server)
    _, sessions, _ = taken(lake, source)
    assert len(sessions) == 6
    assert sorted(before) == ["s0", "s1", "s2", "s3"]
    assert sorted(fetched(server)) == [f"s{number}" for number in range(6)]


def test_an_interrupted_listing_goes_on_where_it_was(server: LangfuseServer, lake: Lake) -> None:
    Recorder(server, "s0").trace("t0", "go", "Done.")
    server.trouble = [Trouble(400)]
    source = source_of(server, days_before=60)
    assert [entry.session_id for entry in source.scan(lake, REDACTOR)] == [""]
    windows = listings(server)
    source.scan(lake, REDACTOR)
    whole = listings(server) - windows
    assert (windows, whole) == (1, 3)
    server.trouble = []
    source.scan(lake, REDACTOR)
    assert listings(server) - windows - whole == 1


def test_a_server_that_is_away_costs_no_local_session(tmp_path: Path, lake: Lake) -> None:
    transcript(tmp_path / "projects", "0b5f7c1e-1111-4222-8333-444455556666")
    with LangfuseServer() as server:
        source = source_of(server, START + timedelta(hours=1))
        host = server.host
    found, sessions, unread = taken(lake, source, [tmp_path / "projects"])
    assert [session.source for session in sessions] == ["claude-code"]
    (missed,) = unread
    assert missed.path == f"langfuse:{host}"
    assert "not listed: cannot be reached" in missed.reason
    assert not missed.expected
    assert found.weeks() == [WEEK]


def test_a_server_that_goes_away_leaves_what_was_fetched_and_a_reason_for_the_rest(
    server: LangfuseServer, lake: Lake
) -> None:
    source = source_of(server)
    Recorder(server, "s0").trace("t0", "go", "Done.")
    taken(lake, source)
    for number in range(1, 13):
        Recorder(server, f"s{number}").trace(f"t{number}", "go", "Done.")
    found = scan_into(lake, [], REDACTOR, [source])
    server.trouble = [Trouble(503)] * 1_000
    before = len(server.requests)
    store_week(lake, found, WEEK, REDACTOR, [source])
    sessions = list(lake.read("raw_sessions", WEEK, Session))
    unread = list(lake.read("unread_transcripts", WEEK, UnreadTranscript))
    assert [session.id for session in sessions] == ["s0"]
    assert len(unread) == 12
    assert all(row.reason.startswith("not fetched: ") and not row.expected for row in unread)
    assert len(server.requests) - before <= 8
    server.trouble = []
    _, sessions, unread = taken(lake, source)
    assert (len(sessions), unread) == (13, [])


def test_a_session_of_which_there_is_a_transcript_is_read_from_that(
    server: LangfuseServer, tmp_path: Path, lake: Lake
) -> None:
    identity = "0b5f7c1e-1111-4222-8333-444455556666"
    transcript(tmp_path / "projects", identity)
    Recorder(server, identity).trace("t0", "Fix the cart, please.", "Fixed.")
    _, sessions, unread = taken(lake, source_of(server), [tmp_path / "projects"])
    assert [session.source for session in sessions] == ["claude-code"]
    (passed_over,) = unread
    assert (passed_over.path, passed_over.expected) == (f"langfuse:{identity}", True)
    assert fetched(server) == []


def test_another_server_or_another_beginning_lists_anew(lake: Lake) -> None:
    with LangfuseServer() as server:
        Recorder(server, "s1").trace("t1", "go", "Done.")
        source_of(server).scan(lake, REDACTOR)
    with LangfuseServer() as other:
        Recorder(other, "s2").trace("t2", "go", "Done.")
        source = source_of(other)
        assert [entry.session_id for entry in source.scan(lake, REDACTOR)] == ["s2"]
        filter = ServerFilter(since=START + timedelta(hours=1))
        late = LangfuseSource(client_of(other), filter, now=lambda: START)
        assert list(late.scan(lake, REDACTOR)) == []


def test_observations_without_a_session_are_no_session(server: LangfuseServer, lake: Lake) -> None:
    Recorder(server, "").trace("t0", "go", "Done.")
    assert source_of(server).scan(lake, REDACTOR) == []


SETTINGS = {
    "LANGFUSE_HOST": "http://127.0.0.1:9",
    "LANGFUSE_PUBLIC_KEY": "pk-test",
    "LANGFUSE_SECRET_KEY": "sk-test",
}


def test_a_server_is_a_source_only_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"DEBRIEF_HOME": str(tmp_path), **SETTINGS}.items():
        monkeypatch.setenv(name, value)
    assert SessionSources().servers() == ()
    assert len(SessionSources(langfuse=True).servers()) == 1
    monkeypatch.setenv("DEBRIEF_LANGFUSE_SESSIONS", "1")
    monkeypatch.setenv("DEBRIEF_LANGFUSE_SINCE", "2026-01-05")
    assert len(SessionSources().servers()) == 1
    monkeypatch.setenv("DEBRIEF_LANGFUSE", "off")
    assert SessionSources().servers() == ()


def test_sessions_of_no_server_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="none is configured"):
        source_from_settings(load_settings({"DEBRIEF_HOME": str(tmp_path)}))


def test_a_limit_of_requests_a_minute_is_kept(
    tmp_path: Path, server: LangfuseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = {"DEBRIEF_LANGFUSE_REQUESTS_A_MINUTE": "300"}
    host = {**SETTINGS, "LANGFUSE_HOST": server.host}
    source = source_from_settings(load_settings({"DEBRIEF_HOME": str(tmp_path), **host, **pace}))
    assert source is not None
    began = time.monotonic()
    for _ in range(4):
        source.client.get("/score-configs")
    assert time.monotonic() - began >= 3 * 60 / 300
