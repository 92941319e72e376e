"""The first page and recurring friction: what is shown of the last days, and where its numbers lead."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from debrief.files import locked
from debrief.friction.failed_commands import failed_commands
from debrief.friction.grouping import recurring_failures
from debrief.friction.schema import ALL, RECURRING, RecurringFriction
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.settings import Settings
from debrief.signals.schema import SessionSignals
from debrief.snapshots.model import SessionMetadataRow
from debrief.view.app import make_app
from tests.friction.scenario import day, prices
from tests.friction.test_failures import wrong_runner
from tests.signals.scenario import Story
from tests.view.shown import (
    MONDAY,
    OWN,
    event_of,
    fill,
    served,
    serving,
    session_of,
    settings_of,
    signals_of,
    words,
)
from tests.view.test_session import EVIL, LIVE
from tests.waiting import LONG, wait_until

LINE = "Run `bun run test`, not `rtk bun run test`, which fails here."


def write_friction(lake: Lake, sessions: list[Session]) -> RecurringFriction:
    """Write what recurs in sessions; one has no known price."""
    found = [
        event
        for session in sessions
        for event in failed_commands(session, prices if session.id != "day-0" else lambda _: None)
    ]
    (friction,) = recurring_failures(found)
    lake.write(RECURRING, ALL, [friction], RecurringFriction)
    return friction


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of a lake of one week: three times the same missing tool, one session that ran twice into a
    text that was not there and was corrected, one of another repository, and one that nobody
    reviewed."""
    made = settings_of(tmp_path_factory.mktemp("home"))
    made.home.mkdir(parents=True)
    made.prices.write_text(json.dumps({"model-a": {"input": 1000, "output": 2000}}))
    missed = Story().turn("hi").turn("Rename the total of the cart")
    for _ in range(2):
        missed.edit("/home/ada/shop/cart.py", "a", "b", status="failed").read("cart.py")
    sessions = [
        *(day(number, wrong_runner()) for number in range(3)),
        day(3, missed),
        day(4, Story().turn("Say what the cart does").say("It adds up."), "other"),
        day(5, Story().turn("Add a tax").say("Added."), ""),
    ]
    lake = Lake(made.lake)
    told = {
        "day-1": signals_of(sessions[1], event_of("failed_check", quote="2 failed")),
        "day-3": signals_of(sessions[3], event_of("correction", 2)),
    }
    fill(lake, list(zip(sessions, (0.9, 0.4, 0.4, 0.6, 0.9, None), strict=True)), told)
    write_friction(lake, sessions)
    return made


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[httpx.Client]:
    with served(settings) as found:
        yield found


def test_home_has_what_to_look_at_in_words_and_friction_with_its_line(
    client: httpx.Client,
) -> None:
    page = client.get("/").text
    text = words(page)
    assert "Since 2 Mar 2026" in text
    assert (
        "5 reviewed by claude-code : 2 complete, verified ; 1 complete, not verified ; 2 failed"
        in text
    )
    assert "1 not reviewed" in text
    assert "rtk bun: no such subcommand" in text
    assert "shop 3 sessions $1.20" in text
    assert f'data-copy="{LINE}"' in page
    looked_at = words(page.partition("To look at")[2].partition("Recurring friction")[0])
    first, then = looked_at.index("Corrected twice (turns 1, 2"), looked_at.index("A check failed")
    assert first < then, "the most urgent comes first"
    for word in ("best", "percent", "mean of"):
        assert word not in looked_at
    listed = client.get("/sessions").text
    assert "Rename the total of the cart" in listed, "a greeting is no title"


def test_where_nobody_reviewed_there_is_no_verdict_and_a_program_is_offered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = settings.home.parent / "machine"
    (machine / ".claude").mkdir(parents=True)
    (machine / ".claude/.credentials.json").write_text('{"claudeAiOauth": {}}')
    program = machine / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(machine))
    monkeypatch.setenv("PATH", str(machine), prepend=":")
    own = settings_of(settings.home.parent / "asked", DEBRIEF_NO_MODEL="")
    fill(Lake(own.lake), [(session_of(f"s{n}"), None) for n in range(3)])
    with served(own) as client:
        page = client.get("/").text
        shown = words(client.get("/sessions/s0").text)
    assert "Have claude-code review the newest 3 (about 36,000 tokens)" in words(page)
    assert 'data-copy="debrief run --model claude-code --newest 3"' in page
    assert "3 not reviewed" in words(page)
    assert "none is reviewed" in words(page)
    assert "complete" not in words(page.partition("<dialog")[0])
    assert "not reviewed Have claude-code review the newest 3" in shown


def test_while_signals_are_read_nothing_else_is_said(settings: Settings) -> None:
    own = settings_of(settings.home.parent / "reading")
    lake = Lake(own.lake)
    lately = datetime.now(UTC) - timedelta(days=2)
    sessions = [session_of(f"s{n}", f"Do job {n} now.", started=lately) for n in range(3)]
    week = week_of(lately)
    lake.write("raw_sessions", week, sessions, Session)
    lake.write("session_signals", week, [signals_of(sessions[0])], SessionSignals)
    with served(own) as client:
        text = words(client.get("/").text)
        assert "Reading 1 of 3 sessions." in text
        assert "Looked for once all sessions are read." in text
        for said in ("not reviewed:", "3 not reviewed", "Nothing in these days", "Nobody has"):
            assert said not in text
        assert "Its signals are not read yet." in words(client.get("/sessions").text)
        assert "Its signals are not read yet." in words(client.get("/sessions/s1").text)
        lake.write("session_signals", week, list(map(signals_of, sessions)), SessionSignals)
        wait_until(lambda: "3 not reviewed" in words(client.get("/").text))
        assert "Nothing in these days" in words(client.get("/").text)


def test_each_number_of_sessions_leads_to_as_many_sessions(client: httpx.Client) -> None:
    page = client.get("/").text
    found = re.findall(r'<a href="(/sessions\?[^"]+)">([^<]*)</a>', page)
    numbered = [(href, said) for href, said in found if re.match(r"\d+(?!\S)", said)]
    numbered = [one for one in numbered if "tokens" not in one[1]]
    assert len(numbered) > 10
    for href, said in numbered:
        count = re.findall(r"\d+", said)[-1]
        shown = client.get(href.replace("&amp;", "&")).text
        status = re.search(r'role="status">(\d+) session', shown)
        assert status, href
        assert status[1] == count, (href, said)


def test_friction_has_a_page_with_its_quotations_and_its_cost(client: httpx.Client) -> None:
    listed = client.get("/friction?repository=shop").text
    (path,) = set(re.findall(r'href="(/friction/[0-9a-f]+)"', listed))
    assert "Open: no session had a line about it." in listed
    page = client.get(path).text
    text = words(page)
    assert "unrecognized subcommand &#39;bun&#39;" in text
    assert "rtk bun run test and then bun run test" in text
    assert f'data-copy="{LINE}"' in page
    assert "Cost $1.20" in text
    for session in ("day-1", "day-2"):
        assert f'href="/sessions/{session}#turn-1"' in page
    unknown = client.get("/friction?repository=colour")
    assert (unknown.status_code, "has no recurring friction" in unknown.text) == (400, True)
    assert client.get("/friction/0123").status_code == 404


def test_a_strangers_words_in_friction_are_shown_and_not_obeyed(settings: Settings) -> None:
    own = settings_of(settings.home.parent / "hostile")
    lake = Lake(own.lake)
    sessions = [day(number, wrong_runner()) for number in (0, 2, 4)]
    fill(lake, [(session, 0.4) for session in sessions])
    made = write_friction(lake, sessions)
    evil = dict.fromkeys(("what", "repository"), EVIL)
    examples = tuple(replace(event, command=EVIL, instead=EVIL, **evil) for event in made.examples)
    made = replace(made, line=EVIL, existing=EVIL, examples=examples, **evil)
    lake.write(RECURRING, ALL, [made], RecurringFriction)
    with served(own) as client:
        for path in ("/", "/friction", f"/friction/{made.id}"):
            page = client.get(path)
            assert page.status_code == 200
            assert "49 {%" not in page.text
            assert "&lt;script&gt;alert(1)" in page.text
            assert not LIVE.search(page.text.partition("<main")[2]), path


def test_what_the_model_cost_is_by_ones_own_prices_and_follows_them(settings: Settings) -> None:
    own = settings_of(settings.home.parent / "priced")
    own.home.mkdir(parents=True)
    fill(Lake(own.lake), [(day(1, wrong_runner()), 0.9)])
    with served(own) as client:
        page = words(client.get("/").text)
        assert "1 of the sessions name no price or count no tokens" in page
        own.prices.write_text(settings.prices.read_text())
        limit = datetime.now(UTC) + timedelta(seconds=LONG)
        while "tokens , $1.20 ." not in (page := words(client.get("/").text)):
            assert datetime.now(UTC) < limit, page


def test_a_lake_that_nobody_looked_for_friction_in_is_shown_all_the_same(
    settings: Settings,
) -> None:
    own = settings_of(settings.home.parent / "unsearched")
    lately = datetime.now(UTC) - timedelta(days=2)
    sessions = [session_of(f"s{n}", f"Do job {n} now.", started=lately) for n in range(2)]
    week = week_of(lately)
    Lake(own.lake).write("raw_sessions", week, sessions, Session)
    Lake(own.lake).write("session_signals", week, list(map(signals_of, sessions)), SessionSignals)
    with served(own) as client:
        text = words(client.get("/").text)
        assert "Do job 1 now." in text
        assert "Nobody has looked for friction yet." in text
        assert "Nobody has looked for friction yet." in words(client.get("/friction").text)
        assert "which CLAUDE.md or AGENTS.md" not in text, "nobody has looked for them"
        looked_for = [
            SessionMetadataRow(
                session_id=session.id,
                tool=session.tool,
                recorded_at=session.started,
                task=session.task,
            )
            for session in sessions
        ]
        Lake(own.lake).write("session_metadata", week, looked_for, SessionMetadataRow)
        wait_until(lambda: "2 sessions do not say which CLAUDE.md" in words(client.get("/").text))
        assert "debrief hooks install" in words(client.get("/prompts").text)


def test_a_page_is_never_blank_and_fills_in_while_the_lake_is_read(settings: Settings) -> None:
    own = settings_of(settings.home.parent / "late")
    lake = Lake(own.lake)
    fill(lake, [(session_of("one", "Fix the total of the cart."), 0.9)])
    app = make_app(lake, own)
    with serving(app) as client:
        with locked(app.state.index.path.with_suffix(".lock")):
            page = client.get("/").text
            assert "Reading the lake" in page
            assert '<noscript><meta http-equiv="refresh"' in page
        with client.stream("GET", "/progress", headers={"Sec-Fetch-Site": "same-origin"}) as told:
            assert told.headers["content-type"].startswith("text/event-stream")
            states = (json.loads(line[5:]) for line in told.iter_lines() if line[:5] == "data:")
            read = next(state for state in states if state["changes"] and not state["is_behind"])
            assert "Fix the total of the cart." in client.get("/").text
            fill(lake, [(session_of("two", started=MONDAY + timedelta(weeks=1)), 0.9)])
            next(state for state in states if state["changes"] > read["changes"])
        shown = re.search('data-grows="one" data-about="([^"]+)"', client.get("/sessions/one").text)
        assert shown is not None
        with client.stream("GET", "/progress?session=one", headers=OWN) as told:
            states = (json.loads(line[5:]) for line in told.iter_lines() if line[:5] == "data:")
            assert next(states)["about"] == shown[1]
            fill(lake, [(session_of("three", started=MONDAY + timedelta(weeks=1)), 0.9)])
            assert next(states)["about"] == shown[1], "another session is read"
            fill(lake, [(session_of("one", ended=MONDAY + timedelta(hours=1)), 0.9)])
            next(state for state in states if state["about"] != shown[1])


def test_each_verdict_has_its_colour_in_the_weeks(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    sessions = [(session_of(f"s{n}"), quality) for n, quality in enumerate((0.9, 0.6, 0.2, None))]
    fill(Lake(settings.lake), sessions)
    with served(settings) as client:
        page = client.get("/").text
    tones = re.findall(r'<rect class="(\w+)"', page)
    assert {"good", "calm", "bad"} <= set(tones)
    assert tones.count("bad") == 1
