"""A model reviews the newest sessions, exactly those, once somebody has agreed to it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from debrief.cli import reading as reading_process
from debrief.cli.asking import AskingEstimate
from debrief.cli.reading import BackgroundReading, ReviewQuestion
from debrief.lake import Lake
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.model import SessionScores
from debrief.settings import load_settings
from pipelines.reviewing import bound
from tests.cli.reviewer import MODEL, review
from tests.models import stand_ins
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.models.stand_ins import StandIn
from tests.pipelines.conftest import Home, Said
from tests.pipelines.test_model_run import conversation
from tests.pipelines.test_run import WEEK, write
from tests.pipelines.test_start import lives_in


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda call: Reply(review(call))) as running:
        yield running


@pytest.fixture
def transcripts(home: Home) -> Path:
    folder = home.path / ".claude" / "projects" / "shop"
    folder.mkdir(parents=True)
    for name in ("one", "two", "three"):
        lines = [line.replace("cents", f"{name} cents") for line in conversation(name)]
        write(folder, f"{name}.jsonl", lines)
    return folder


def run(home: Home, server: OpenAIServer, *options: str) -> Said:
    return home.typed(
        *("run", "--model", MODEL, *options),
        DEBRIEF_MODEL_BASE_URL=server.url,
        OPENAI_API_KEY="sk-loopback",
        DEBRIEF_RETRY_PAUSE="0.01",
    )


def lake_of(home: Home) -> Lake:
    return Lake(str(home.path / ".debrief/lake"))


@pytest.mark.usefixtures("transcripts")
def test_only_the_newest_are_reviewed_and_no_session_twice(
    home: Home, server: OpenAIServer
) -> None:
    dry = run(home, server, "--newest", "2", "--dry-run")
    assert dry.code == 0, dry.all
    assert f"{MODEL} would be asked 2 questions on 2 sessions: about" in dry.err
    assert server.calls == []
    nobody = run(home, server, "--newest", "2")
    assert nobody.code == 1
    assert "nobody agreed to it" in nobody.err
    assert server.calls == []
    first = run(home, server, "--newest", "2", "--yes")
    assert first.code == 0, first.all
    assert f"2 reviewed by {MODEL}: 2 complete, not verified. 1 not reviewed." in first.out
    assert len(server.calls) == 2
    rest = run(home, server, "--newest", "2", "--yes")
    assert rest.code == 0, rest.all
    assert f"3 reviewed by {MODEL}: 3 complete, not verified." in rest.out
    assert len(server.calls) == 3
    assert {row.status for row in lake_of(home).read("session_scores", WEEK, SessionScores)} == {
        "ok"
    }
    none = run(home, server, "--newest", "2", "--yes")
    assert "Every session that is worth a review has one." in none.out
    assert len(server.calls) == 3


@pytest.mark.usefixtures("transcripts")
def test_a_model_that_answers_nothing_gives_exit_code_one_and_no_verdict(
    home: Home, server: OpenAIServer
) -> None:
    server.reply = lambda call: Reply(status=404, error={"message": "no such model"})
    done = run(home, server, "--newest", "2", "--yes")
    assert done.code == 1
    assert "every question failed" in done.err
    assert verdicts_in(lake_of(home)) == {}


@pytest.mark.usefixtures("transcripts")
def test_a_run_whose_model_is_missing_reviews_nothing_and_names_the_key(home: Home) -> None:
    done = home.typed("run", "--newest", "2", OPENROUTER_API_KEY="", DEBRIEF_MODEL_BASE_URL="")
    assert done.code == 1
    assert "--newest: needs a model, and OPENROUTER_API_KEY is not set" in done.err


def claude(home: Home, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Install Claude Code on a machine, log in, and have it review."""
    programs = home.path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    (home.path / ".claude.json").write_text('{"oauthAccount": {}}')
    call = Call(1, "", {}, {"messages": [{"role": "system", "content": JUDGES}]})
    program = StandIn(programs, "claude")
    program.says(stand_ins.claude(review(call)))
    return program


JUDGES = '<judge name="code-reuse"> <judge name="plan-compliance">'


@pytest.mark.usefixtures("transcripts")
@pytest.mark.parametrize("agrees", [True, False])
def test_at_the_end_of_a_run_on_a_terminal_one_question_is_asked(
    home: Home, monkeypatch: pytest.MonkeyPatch, agrees: bool
) -> None:
    program = claude(home, monkeypatch)
    asked: list[str] = []

    def confirm(question: str, *, default: bool) -> bool:
        asked.append(question)
        assert not default
        return agrees

    monkeypatch.setattr("pipelines.reviewing.is_on_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", confirm)
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "DEBRIEF_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    done = home.typed("run")
    assert done.code == 0, done.all
    (question,) = asked
    assert question.startswith(
        "Claude Code is logged in here. Have it review your newest 3 sessions? About "
    )
    assert question.endswith("000 tokens of your plan.")
    assert len(program.asked) == 3 * agrees
    said = "3 reviewed by claude-code: 3 complete, not verified."
    assert (said in done.out) == agrees
    assert "3 not reviewed." in done.out, "before the question"


def test_what_is_agreed_to_is_a_limit_and_not_asked_again(home: Home) -> None:
    settings = load_settings({"DEBRIEF_HOME": str(home.path)})
    estimate = AskingEstimate(model="openai/tiny", calls=3, tokens=9, cost_usd=1.0)
    limited = bound(estimate, settings)
    assert (limited.max_calls, limited.max_cost_usd) == (6, estimate.most_usd)
    own = settings.with_given(max_cost_usd=0.5)
    assert bound(estimate, own).max_cost_usd == 0.5


@pytest.mark.usefixtures("transcripts")
def test_a_key_answers_the_question_once_it_was_asked(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = claude(home, monkeypatch)
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "DEBRIEF_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    settings = lives_in(home, monkeypatch)
    former = signal.getsignal(signal.SIGUSR1)
    try:
        question = ReviewQuestion(settings)
        os.kill(os.getpid(), signal.SIGUSR1)
        question.review_if_agreed()
        reading = BackgroundReading(settings)
        reading.catch_up(reading.look(), bool)
        reading_process._fill(settings)
        assert "3 sessions. 3 not reviewed.\n" in capsys.readouterr().out
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        question.ask()
        assert "Have it review your newest 3 sessions? About " in capsys.readouterr().out
        question.review_if_agreed()
        assert program.asked == []
        os.kill(os.getpid(), signal.SIGUSR1)
        until = time.monotonic() + 5
        while not program.asked and time.monotonic() < until:
            question.review_if_agreed()
        assert len(program.asked) == 3
        assert "3 reviewed by claude-code: 3 complete, not verified.\n" in capsys.readouterr().out
    finally:
        signal.signal(signal.SIGUSR1, former)


def test_reading_says_how_many_sessions_are_read(home: Home, transcripts: Path) -> None:
    older = [line.replace("2026-11", "2026-10") for line in conversation("older")]
    write(transcripts, "older.jsonl", older)
    places = {"DEBRIEF_HOME": str(home.path / ".debrief"), "DEBRIEF_SESSIONS": str(transcripts)}
    reading = BackgroundReading(load_settings(places))
    said: list[str] = []
    reading.catch_up(reading.look(), said.append)
    assert said == ["reading: 0 of 4 sessions", "reading: 3 of 4 sessions"]
