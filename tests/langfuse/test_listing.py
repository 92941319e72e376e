"""What a server's listing shows: what changed, what came late, what is gone, what is chosen."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from debrief.lake import Lake
from debrief.langfuse.source import FETCHED_TABLE, LangfuseSource, ServerFilter
from tests.langfuse.scenario import START, Recorder, client_of
from tests.langfuse.server import LangfuseServer, Mode
from tests.langfuse.test_source import REDACTOR, listings, source_of, taken
from tests.planting import Planted, Search


def test_what_arrives_late_and_backdated_is_found_when_everything_is_listed(
    server: LangfuseServer, lake: Lake
) -> None:
    Recorder(server, "s0").trace("t0", "go", "Done.")
    taken(lake, source_of(server, START + timedelta(days=60), days_before=30))
    late = Recorder(server, "late")
    late.clock = -timedelta(days=20).total_seconds()
    late.trace("t1", "go", "Done.")
    hours = [timedelta(days=60, hours=hours) for hours in (1, 25)]
    scans = [
        source_of(server, START + later, days_before=30).scan(lake, REDACTOR) for later in hours
    ]
    assert [[entry.session_id for entry in scan] for scan in scans] == [["s0"], ["late", "s0"]]


@pytest.mark.parametrize("mode", ["events_only", "dual", "old"])
def test_a_session_that_is_deleted_on_the_server_leaves_the_lake_with_a_receipt(
    mode: Mode, lake: Lake
) -> None:
    with LangfuseServer(mode) as server:
        for number in range(2):
            Recorder(server, f"s{number}").trace(f"t{number}", "go", f"answer {number}")
        taken(lake, source_of(server))
        server.observations = [row for row in server.observations if row["sessionId"] != "s0"]
        server.traces = [trace for trace in server.traces if trace["sessionId"] != "s0"]
        for days in (1, 3, 5):
            now = START + timedelta(days=days, hours=1)
            _, sessions, unread = taken(lake, source_of(server, now))
            assert len(lake.partitions(FETCHED_TABLE)) == len(sessions)
            if days == 1:
                assert len(sessions) == 2
                assert Search(Planted({"answer 0": "deleted"})).below(Path(lake.url))
                continue
            assert [session.id for session in sessions] == ["s1"]
            (receipt,) = unread
            assert receipt.path == "langfuse:s0"
            assert receipt.reason.endswith("deleted on the server, as seen on 2026-10-08")
            assert receipt.expected
        assert not Search(Planted({"answer 0": "deleted"})).below(Path(lake.url))
        Recorder(server, "s0").trace("t0", "go", "back again")
        _, sessions, _ = taken(lake, source_of(server, now + timedelta(days=2)))
        assert len(sessions) == 2


def test_a_deleted_session_stays_where_that_is_wanted(server: LangfuseServer, lake: Lake) -> None:
    for number in range(2):
        Recorder(server, f"s{number}").trace(f"t{number}", "go", "Done.")
    taken(lake, source_of(server))
    server.observations = [row for row in server.observations if row["sessionId"] != "s0"]
    source = source_of(server, START + timedelta(days=3))
    source.keep_gone = True
    _, sessions, unread = taken(lake, source)
    assert ([session.id for session in sessions], unread) == (["s0", "s1"], [])


def test_a_server_that_shows_none_of_many_sessions_is_believed_a_day_later(
    server: LangfuseServer, lake: Lake
) -> None:
    for number in range(2):
        Recorder(server, f"s{number}").trace(f"t{number}", "go", "Done.")
    taken(lake, source_of(server))
    server.observations.clear()
    for hours in (0, 0, 1):
        source = source_of(server, START + timedelta(days=3, hours=hours))
        _, sessions, unread = taken(lake, source)
        assert len(sessions) == 2
        assert "shows none of the sessions that it had" in unread[-1].reason
    _, sessions, unread = taken(lake, source_of(server, START + timedelta(days=4, hours=1)))
    assert sessions == []
    assert ["deleted on the server" in row.reason for row in unread] == [True, True]


def test_the_only_session_of_a_server_leaves_the_lake_with_a_receipt(
    server: LangfuseServer, lake: Lake
) -> None:
    Recorder(server).trace("t1", "go", "Done.")
    taken(lake, source_of(server))
    server.observations.clear()
    _, sessions, (receipt,) = taken(lake, source_of(server, START + timedelta(days=3)))
    assert (sessions, lake.partitions(FETCHED_TABLE)) == ([], [])
    assert "deleted on the server" in receipt.reason
    assert receipt.expected


def test_a_run_over_many_weeks_lists_once(server: LangfuseServer, lake: Lake) -> None:
    for number in range(5):
        recorder = Recorder(server, f"s{number}")
        recorder.clock = timedelta(days=7 * number).total_seconds()
        recorder.trace(f"t{number}", "go", "Done.")
    now = START + timedelta(days=35)
    client = client_of(server)
    found = [
        LangfuseSource(client, ServerFilter(since=START), now=lambda: now).scan(lake, REDACTOR)
        for _ in range(6)
    ]
    assert [len({entry.week for entry in entries}) for entries in found] == [5] * 6
    assert listings(server) == 2


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        (ServerFilter(), ["s0", "s1", "s2"]),
        (ServerFilter(environments=frozenset({"production"})), ["s0", "s1"]),
        (ServerFilter(tags=frozenset({"beta", "gamma"})), ["s1", "s2"]),
        (ServerFilter(environments=frozenset({"production"}), tags=frozenset({"beta"})), ["s1"]),
    ],
)
@pytest.mark.parametrize("mode", ["events_only", "old"])
def test_sessions_are_chosen_by_environment_and_tag_and_the_others_told(
    mode: Mode, lake: Lake, only: ServerFilter, ids: list[str]
) -> None:
    facts = [("production", []), ("production", ["beta"]), ("staging", ["beta"])]
    with LangfuseServer(mode) as server:
        for number, (environment, tags) in enumerate(facts):
            Recorder(server, f"s{number}").trace(f"t{number}", "go", "Done.")
            for row in (*server.observations[-3:], server.traces[-1]):
                row.update(environment=environment, tags=tags)
        taken(lake, source_of(server))
        source = source_of(server)
        source.only = only
        _, sessions, unread = taken(lake, source)
    assert [session.id for session in sessions] == ids
    assert len(unread) == 3 - len(ids)
    assert all(row.expected and row.reason.startswith("left out: ") for row in unread)


@pytest.mark.parametrize("mode", ["events_only", "dual"])
def test_an_observation_without_the_session_s_id_is_noticed(mode: Mode, lake: Lake) -> None:
    with LangfuseServer(mode) as server:
        Recorder(server, "s0").trace("t0", "go", "Done.")
        for row in server.observations[1:]:
            row["sessionId"] = ""
        source = source_of(server)
        taken(lake, source)
        server.observations[1] |= {"output": "Let me see.", "updatedAt": "2026-10-05T13:00:00Z"}
        _, (session,), unread = taken(lake, source)
    assert [message.text for message in session.turns[0].messages] == ["Let me see.", "Done."]
    assert unread == []


def test_clocks_that_are_years_off_lose_no_session(server: LangfuseServer, lake: Lake) -> None:
    for name, years in (("past", -40), ("future", 40)):
        recorder = Recorder(server, name)
        recorder.clock = timedelta(days=365 * years).total_seconds()
        recorder.trace(f"t-{name}", "go", "Done.")
    now = START + timedelta(days=1)
    entries = LangfuseSource(client_of(server), now=lambda: now).scan(lake, REDACTOR)
    assert [entry.session_id for entry in entries] == ["future", "past"]
