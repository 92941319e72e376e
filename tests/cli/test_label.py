"""``debrief label``: a model proposes, a person decides on the page, and only that is a label."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.lake import Lake
from debrief.outcomes.proposing import (
    PROPOSED,
    ProposedLabel,
    proposals_by_session,
    sessions_to_label,
)
from debrief.outcomes.store import all_labels, success_labels
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Session
from debrief.settings import Settings
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.scoring.scenario import answer
from tests.view.shown import (
    MONDAY,
    OWN,
    fill,
    scores_of,
    served,
    session_of,
    settings_of,
    verdict_of,
    words,
)

UNTOLD = SessionVerdict(verdict="undetermined", basis="no_change")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Three sessions: one that is done and checked, one that nothing tells of, one unchecked."""
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    settings = settings_of(tmp_path, DEBRIEF_RATER="ada")
    sessions = [session_of(name, f"Fix the {name} cart.") for name in ("clear", "open", "middling")]
    fill(Lake(settings.lake), [(session, 0.9) for session in sessions])
    verdicts = {"clear": verdict_of(0.9), "middling": verdict_of(0.6), "open": UNTOLD}
    rows = [replace(scores_of(session, 0.5), verdict=verdicts[session.id]) for session in sessions]
    Lake(settings.lake).write("session_scores", f"{MONDAY:%Y-%m-%d}", rows, SessionScores)
    return settings


def label(settings: Settings, server: OpenAIServer, *arguments: Any) -> Result:
    env = {"DEBRIEF_MODEL_BASE_URL": server.url, "COLUMNS": "200"}
    given = ["label", "--model", "openai/tiny", "--lake", settings.lake, *map(str, arguments)]
    return CliRunner().invoke(app, given, env=env)


def reading(call: Call) -> Reply:
    """Done where the session is the open one, else short of it."""
    proof = {"turn": 1, "quote": "The cart adds up now."}
    requests = [{"turn": 1, "asked": "Fix the cart", "state": "done_seen", "proof": proof}]
    is_open = "Fix the open cart." in call.user
    said = answer(verdict="complete_verified" if is_open else "partial", requests=requests)
    return Reply(said)


def offered(page: str) -> list[str]:
    return re.findall(r'<h1><a href="/sessions/(\w+)\?then=next">', page)


def test_a_proposal_costs_what_was_said_and_is_a_label_only_once_a_person_says_so(
    settings: Settings,
) -> None:
    lake = Lake(settings.lake)
    with OpenAIServer(reading) as server:
        refused = label(settings, server, "--sample", 2)
        assert refused.exit_code == 1
        assert "openai/tiny would be asked 2 questions on 2 sessions: about" in refused.stderr
        assert not server.calls
        done = label(settings, server, "--sample", 2, "--yes")
        assert done.exit_code == 0, done.output
        assert "2 labels proposed: 1 good, 1 bad, 0 unsure; 0 failed." in done.stdout
        asked = len(server.calls)
    assert asked == 2
    found = proposals_by_session(lake)
    assert {id_: row.value for id_, row in found.items()} == {"open": "good", "middling": "bad"}
    assert found["open"].evidence[0].quote == "The cart adds up now."
    assert not list(all_labels(lake))
    assert success_labels(lake) == {}
    with served(settings) as client:
        text = client.get("/labels/next").text
        assert offered(text) == ["open"]
        assert "openai/tiny proposes “good”: done, checked, high confidence" in words(text)
        assert re.search(r'name="say" value="good" class="button" data-label-key="y"', text)
        assert "0 confirmed, 0 changed, 2 waiting" in words(text)
        client.post("/sessions/open/labels", data={"say": "good", "then": "next"}, headers=OWN)
        assert offered(client.get("/labels/next").text) == ["middling"]
        client.post("/sessions/middling/labels", data={"say": "unsure"}, headers=OWN)
        text = client.get("/labels/next").text
    assert "openai/tiny proposed labels: 1 confirmed, 1 changed, 0 waiting." in words(text)
    assert offered(text) == ["clear"]
    assert "tiny proposes" not in text
    assert [(row.session_id, row.source, row.rater) for row in all_labels(lake)] == [
        ("open", "view", "ada"),
        ("middling", "view", "ada"),
    ]


def test_the_next_sample_is_of_others_and_a_session_that_cannot_be_read_is_named(
    settings: Settings,
) -> None:
    with OpenAIServer(reading) as server:
        assert label(settings, server, "--sample", 1, "--yes").exit_code == 0
    with OpenAIServer(lambda _: Reply("I would rather not.")) as server:
        failed = label(settings, server, "--yes")
    assert failed.exit_code == 1
    assert "middling: openai/tiny: gave no usable answer" in failed.stderr
    assert "0 labels proposed: 0 good, 0 bad, 0 unsure; 2 failed." in failed.stdout
    assert set(proposals_by_session(Lake(settings.lake))) == {"open"}


def test_a_session_that_went_on_is_read_again_and_its_proposal_replaced(settings: Settings) -> None:
    lake, week = Lake(settings.lake), f"{MONDAY:%Y-%m-%d}"
    with OpenAIServer(reading) as server:
        assert label(settings, server, "--sample", 1, "--yes").exit_code == 0
    before = proposals_by_session(lake)["open"]
    grown = session_of("open", "Fix the open cart, and then the till.", digest="grown")
    sessions = [row for row in lake.read("raw_sessions", week, Session) if row.id != "open"]
    lake.write("raw_sessions", week, [*sessions, grown], Session)
    with OpenAIServer(lambda _: Reply(answer(verdict="failed"))) as server:
        assert label(settings, server, "--sample", 1, "--yes").exit_code == 0
    after = proposals_by_session(lake)["open"]
    assert (before.value, after.value, after.session_digest) == ("good", "bad", "grown")
    assert len(list(lake.rows(PROPOSED, ProposedLabel))) == 1


def test_sessions_are_chosen_in_the_order_of_the_page(settings: Settings) -> None:
    chosen = [session.id for session in sessions_to_label(Lake(settings.lake), 5)]
    with served(settings) as client:
        pages = [client.get(f"/labels/next?skip={skip}").text for skip in range(3)]
    assert chosen == [id_ for page in pages for id_ in offered(page)]


def test_without_a_model_or_a_session_it_is_said_what_is_missing(
    settings: Settings, tmp_path: Path
) -> None:
    alone = CliRunner().invoke(app, ["label", "--lake", settings.lake], env={"DEBRIEF_MODEL": ""})
    assert "has no model to ask. Name one: --model NAME." in alone.stderr
    (tmp_path / "empty").mkdir()
    given = ["label", "--model", "openai/tiny", "--lake", str(tmp_path / "empty")]
    empty = CliRunner().invoke(app, given)
    assert "has no scored session that waits for a label or a proposal" in empty.stderr
