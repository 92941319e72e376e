"""Which sessions a model is offered to review, by whom, and for how much."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.conditions import parse_where, where_of_sessions
from debrief.lake import Lake
from debrief.models.logins import logged_in
from debrief.review_offer import TOKENS_A_SESSION, review_offer, worth_reviewing
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Evidence, Session
from debrief.settings import load_settings
from debrief.signals.extract import session_signals
from debrief.signals.schema import TABLE, Event, SessionSignals
from tests.models import stand_ins
from tests.models.stand_ins import StandIn
from tests.view.shown import MONDAY, scores_of, session_of

CORRECTED = (Event(kind="correction", evidence=(Evidence(1, "", "no"),)),)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake of two weeks; ``stub`` is a session in which nothing happened."""
    lake = Lake(str(tmp_path / "lake"))
    for week, names in enumerate((("old",), ("early", "corrected", "late", "stub"))):
        started = MONDAY + timedelta(weeks=week)
        sessions = [
            session_of(name, started=started + timedelta(hours=hour))
            for hour, name in enumerate(names)
        ]
        signals = [session_signals(session) for session in sessions]
        signals = [
            replace(row, events=CORRECTED if row.session_id == "corrected" else ())
            if row.session_id != "stub"
            else replace(row, calls=0, work="nothing", ending="answered", events=())
            for row in signals
        ]
        lake.write("raw_sessions", f"{started:%Y-%m-%d}", sessions, Session)
        lake.write(TABLE, f"{started:%Y-%m-%d}", signals, SessionSignals)
    return lake


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder at the front of the search path, on a machine without a key."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    names = ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "DEBRIEF_MODEL", "DEBRIEF_NO_MODEL")
    for name in (*names, "CLAUDE_CONFIG_DIR", "CODEX_HOME", "DEBRIEF_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return folder


def claude(programs: Path) -> None:
    """Install Claude Code, and log in."""
    StandIn(programs, "claude").says(stand_ins.claude())
    folder = programs.parent / ".claude"
    folder.mkdir()
    (folder / ".credentials.json").write_text('{"claudeAiOauth": {}}')


def test_the_newest_week_comes_first_and_in_it_what_something_happened_in(lake: Lake) -> None:
    assert worth_reviewing(lake, 9) == ["corrected", "late", "early", "old"]
    assert worth_reviewing(lake, 2) == ["corrected", "late"]


def test_a_session_with_a_verdict_is_not_offered(lake: Lake) -> None:
    week = max(lake.partitions(TABLE))
    (late,) = lake.read("raw_sessions", week, Session, ("id", {"late"}))
    lake.write("session_scores", week, [scores_of(late, 0.8)], SessionScores)
    assert worth_reviewing(lake, 9) == ["corrected", "early", "old"]


def test_a_program_that_is_logged_in_is_offered(lake: Lake, programs: Path) -> None:
    claude(programs)
    offer = review_offer(lake, load_settings())
    assert offer is not None
    assert (offer.model, offer.title, offer.cost_usd) == ("claude-code", "Claude Code", None)
    assert offer.sessions == ("corrected", "late", "early", "old")
    assert offer.tokens == 4 * TOKENS_A_SESSION
    assert offer.command == "debrief run --model claude-code --newest 4"


def test_a_program_that_keeps_no_login_is_not_offered(lake: Lake, programs: Path) -> None:
    StandIn(programs, "claude").says(stand_ins.claude())
    assert logged_in() == []
    assert review_offer(lake, load_settings()) is None
    (programs.parent / ".claude.json").write_text('{"oauthAccount": {"id": "x"}}')
    assert [program.name for program in logged_in()] == ["claude-code"]
    assert review_offer(lake, load_settings()) is not None


def test_the_model_that_is_configured_is_offered_with_its_price(
    lake: Lake, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude(programs)
    monkeypatch.setenv("DEBRIEF_MODEL", "openai/gpt-4o-mini")
    assert review_offer(lake, load_settings()) is None, "it has no key"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    offer = review_offer(lake, load_settings())
    assert offer is not None
    assert (offer.model, offer.title) == ("openai/gpt-4o-mini", "")
    assert offer.cost_usd is not None
    assert 0.005 < offer.cost_usd < 0.05
    monkeypatch.setenv("DEBRIEF_NO_MODEL", "1")
    assert review_offer(lake, load_settings()) is None


def test_the_judges_own_model_is_offered_where_its_key_is_there(
    lake: Lake, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or")
    offer = review_offer(lake, load_settings())
    assert offer is not None
    assert offer.model == "openrouter/x-ai/grok-4.1-fast"


def test_nothing_is_offered_of_an_empty_lake(tmp_path: Path, programs: Path) -> None:
    claude(programs)
    assert review_offer(Lake(str(tmp_path / "none")), load_settings()) is None


def test_sessions_are_named_as_a_condition_whatever_their_ids_hold() -> None:
    ids = ["plain-id", "with,comma", "odd[1]*?", "semi;colon", "two words"]
    where = parse_where([where_of_sessions(ids)])
    assert all(where.takes({"session": {id_}}) for id_ in ids)
    assert not where.takes({"session": {"another"}})
