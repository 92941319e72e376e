"""A run without a model says that nothing was reviewed, and how it could be."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.cli.offer import HOW_TO_ASK, offer_text
from debrief.review_offer import ReviewOffer
from tests.models import stand_ins
from tests.models.stand_ins import StandIn
from tests.sessions.scanned import session, written

OFFER = ReviewOffer(
    model="claude-code",
    title="Claude Code",
    sessions=tuple(f"s{number}" for number in range(20)),
    tokens=183_412,
    cost_usd=None,
)


def test_the_offer_is_a_question_with_what_it_takes() -> None:
    assert offer_text(OFFER) == (
        "Claude Code is logged in here. Have it review your newest 20 sessions? About 183,000 "
        "tokens of your plan."
    )
    keyed = ReviewOffer(
        model="openai/tiny", title="", sessions=("s1",), tokens=12_000, cost_usd=0.24
    )
    assert offer_text(keyed) == (
        "Have openai/tiny review your newest session? About 12,000 tokens, about $0.24."
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder at the front of the search path, on a machine without a key."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_LANGFUSE", "off")
    for name in ("OPENROUTER_API_KEY", "DEBRIEF_MODEL", "DEBRIEF_NO_MODEL", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    written(tmp_path / "sessions", session(1), session(2))
    return folder


def run(here: Path, *options: str) -> Result:
    import_module("pipelines.command")  # adds the command
    top = here.parent
    arguments = ["run", "--sessions", str(top / "sessions"), "--lake", str(top / "lake"), *options]
    return CliRunner().invoke(app, arguments)


def test_a_run_without_a_model_and_a_login_says_how_to_have_reviews(here: Path) -> None:
    done = run(here)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "2 not reviewed." in said
    assert "No model was asked, so nothing was reviewed in this run." in said
    assert HOW_TO_ASK in said


def test_off_a_terminal_the_command_is_named_and_nothing_is_asked(here: Path) -> None:
    program = StandIn(here, "claude")
    program.says(stand_ins.claude())
    (here.parent / ".claude.json").write_text('{"oauthAccount": {}}')
    done = run(here)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Claude Code is logged in here. Have it review your newest 2 sessions?" in said
    place = f"--lake {here.parent / 'lake'} --sessions {here.parent / 'sessions'}"
    assert said.endswith(f"debrief run --model claude-code --newest 2 {place}")
    assert program.asked == []


def test_who_wants_no_model_is_offered_none(here: Path) -> None:
    StandIn(here, "claude").says(stand_ins.claude())
    (here.parent / ".claude.json").write_text('{"oauthAccount": {}}')
    done = run(here, "--no-model")
    assert done.exit_code == 0, done.output
    assert "Have it review" not in done.output
