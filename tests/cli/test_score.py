"""``debrief score``: one session or many, from wherever they are, and what is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec.structs import replace

from debrief.cli import score as command
from debrief.cli.score import UNANSWERED
from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.lake import Lake
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from tests.cli.reviewer import MODEL, reviewer
from tests.langfuse.scenario import Recorder, fetched
from tests.langfuse.server import LangfuseServer
from tests.langfuse.test_source import transcript
from tests.models.openai_server import OpenAIServer
from tests.scoring.scenario import answer as read_as
from tests.scoring.scenario import session, turn

IDENTITY = "0b5f7c1e-1111-4222-8333-444455556666"
WEEK = "2026-10-05"


def score(**options: Any) -> int:
    """Run the command with a model that reviews; return its exit code."""
    by = {} if "answers" in options else {"model": MODEL, "yes": True}
    try:
        command.score(**{**by, **options})
    except typer.Exit as ended:
        return ended.exit_code
    return 0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    elsewhere = ("DEBRIEF_LAKE", "DEBRIEF_MODEL", "DEBRIEF_NO_MODEL", "OPENROUTER_API_KEY")
    for name in ("LANGFUSE_HOST", "LANGFUSE_BASE_URL", *elsewhere):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(tmp_path / "projects"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def model(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with reviewer(monkeypatch) as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return transcript(tmp_path / "projects", IDENTITY)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangfuseServer]:
    with LangfuseServer() as running:
        monkeypatch.setenv("LANGFUSE_HOST", running.host)
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", running.public_key)
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", running.secret_key)
        recorder = Recorder(running)
        recorder.trace("t1", "Fix the cart, please.", "Fixed.")
        for number in range(9):
            recorder.ran("t1", "bash", json.dumps({"command": f"sed -i s/a/b/ {number}.py"}), "")
        yield running


def lake_with(home: Path, *sessions: Session) -> Lake:
    lake = Lake(str(home / "lake"))
    lake.write("raw_sessions", WEEK, sessions, Session)
    return lake


def test_a_transcript_is_reviewed_and_shown_with_its_signals(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(session=str(path)) == 0
    told = capsys.readouterr()
    assert f"\n{IDENTITY}  " in told.out
    assert "\nverdict  complete, not verified\n    Reviewed by openai/tiny" in told.out
    assert told.out.index("\nverdict ") < told.out.index("\nsignals\n")
    assert "Nothing was kept: the lake has no such session as it is now." in told.err


def test_a_review_of_a_session_in_the_lake_is_kept_and_not_paid_for_again(
    home: Path, model: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    another = session("session-two", (turn(1, prompt="and the till"),))
    lake = lake_with(home, session("session-one"), another)
    assert score(session="session-one") == 0
    assert f"Kept 1 review in {lake.url}." in capsys.readouterr().err
    rows = list(lake.read("session_scores", WEEK, SessionScores))
    assert [(row.session_id, row.model) for row in rows] == [("session-one", MODEL)]
    said = verdicts_in(lake)["session-one"]
    assert (said.verdict, said.source) == ("complete_unverified", MODEL)
    asked = len(model.calls)
    assert score(everything=True) == 0
    assert f"Kept 2 reviews in {lake.url}." in capsys.readouterr().err
    assert len(model.calls) == asked + 1
    assert score(session="session-one", model="openai/other") == 0
    rows = list(lake.read("session_scores", WEEK, SessionScores))
    assert [row.model for row in rows] == ["openai/other", MODEL, MODEL]
    assert verdicts_in(lake)["session-one"].source == "openai/other"


def test_what_was_read_otherwise_is_not_kept(
    home: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_with(home, replace(session(IDENTITY), digest="of an earlier reading"))
    assert score(session=str(path)) == 0
    assert "Nothing was kept" in capsys.readouterr().err
    assert not lake.partitions("session_scores")


def test_without_a_model_the_next_move_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake_with(home, session("session-one"))
    monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", "")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(ConfigurationError, match="needs a model, and OPENROUTER_API_KEY") as why:
        score(session="session-one", model="")
    assert "--model claude-code" in str(why.value)


def test_a_transcript_may_be_named_from_another_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = path.parents[1] / "beside"
    beside.mkdir()
    monkeypatch.chdir(beside)
    assert score(session=f"../{path.parent.name}/{path.name}") == 0


@pytest.mark.parametrize("wanted", ["session-one", "session-o", IDENTITY, IDENTITY[:8]])
def test_a_session_is_found_in_the_lake_and_among_the_machines_transcripts(
    home: Path, path: Path, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake_with(home, session("session-one"), session("session-two"))
    assert path.is_file()
    assert score(session=wanted) == 0
    printed = capsys.readouterr().out
    heads = (f"\n{IDENTITY}  ", "\nsession-one  claude-code, checkout, 2026")
    assert any(head in printed for head in heads)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("session", "begins 2 sessions' ids: session-one, session-two"),
        ("nobody-knows-it", "is no transcript, and no session in"),
        ("nosession", "is no transcript, and no session in"),
        ("s", "is too short: 6 characters"),
    ],
)
def test_a_session_is_not_guessed_at(home: Path, wanted: str, reason: str) -> None:
    lake_with(home, session("session-one"), session("session-two"))
    with pytest.raises(InputError, match=reason):
        score(session=wanted)


def test_a_file_that_is_no_transcript_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match="no known session has this form"):
        score(session=str(tmp_path / "notes.txt"))
    with pytest.raises(InputError, match=f"^{tmp_path}: holds no session"):
        score(session=str(tmp_path))


def test_everything_is_told_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(session=str(path.parent)) == 0, "a folder of them"
    assert "1 session reviewed, 0 failed" in capsys.readouterr().out
    assert score(session=str(path), as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["session"]["id"] == told["scores"]["session_id"] == IDENTITY
    assert told["scores"]["verdict"]["source"] == MODEL
    assert [each["dimension"] for each in told["scores"]["dimension_scores"]] == list(BY_NAME)
    assert set(told["evidence"]) == set(BY_NAME)
    assert told["scores"]["uncertain"] is False


def test_what_a_session_holds_cannot_move_the_cursor(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake_with(home, session("session-one", (turn(1, prompt="wrong! \x1b[2J\x1b]0;x\x07 again"),)))
    assert score(session="session-one") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_lakes_sessions_are_scored_together(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake_with(home, session("session-one"), session("session-two", ()))
    assert score(everything=True) == 1
    printed = capsys.readouterr().out
    assert "the session has no turns" in printed
    assert "1 session reviewed, 1 failed" in printed
    assert "1 part, 0 of them over 70,000 tokens" in printed


def test_a_session_on_the_server_is_scored_and_stored(
    server: LangfuseServer, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(langfuse="s1", store=True) == 0
    assert "4 of 4 scores confirmed by" in capsys.readouterr().out
    assert {kept["sessionId"] for kept in server.scores.values()} == {"s1"}
    receipts = list(Lake(str(home / "lake")).read("langfuse_scores", WEEK, ScoreReceipt))
    assert len(receipts) == 4
    sent = len(server.sent("POST", "/scores"))
    assert score(langfuse="s1", store=True) == 0
    assert len(server.sent("POST", "/scores")) == sent


@pytest.mark.parametrize("how", ["option", "setting"])
def test_scores_are_stored_on_the_first_trace_where_that_is_asked_for(
    server: LangfuseServer, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Recorder(server).trace("t2", "And the till, please.", "Fixed.")
    if how == "setting":
        monkeypatch.setenv("DEBRIEF_SCORE_TARGET", "trace")
    given = {"score_target": "trace"} if how == "option" else {}
    assert score(langfuse="s1", store=True, **given) == 0
    kept = list(server.scores.values())
    assert kept
    assert {(one.get("traceId"), one.get("sessionId")) for one in kept} == {("t1", None)}
    assert score(langfuse="s1", store=True, score_target="session") == 0
    assert {one.get("sessionId") for one in server.scores.values()} == {None, "s1"}


def test_a_score_target_without_storing_is_refused(server: LangfuseServer) -> None:
    with pytest.raises(InputError, match=r"says where scores are written\. Add --store"):
        score(langfuse="s1", score_target="trace")
    assert server.requests == []


def test_an_id_that_is_nowhere_here_is_looked_for_on_the_server(
    server: LangfuseServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(session="s1") == 0
    told = capsys.readouterr()
    assert f"Looking for s1 on {server.host}" in told.err
    assert "verdict  complete, not verified" in told.out
    with pytest.raises(InputError, match=f"no session in .* or on {server.host}"):
        score(session="s2")


@pytest.mark.parametrize("asked", ["session", "langfuse"])
def test_a_session_that_is_still_arriving_is_told_with_what_to_do(
    server: LangfuseServer, asked: str
) -> None:
    now = datetime.now(UTC).isoformat()
    server.observations.append(
        {**server.observations[-1], "id": "o9", "parentObservationId": "late", "updatedAt": now}
    )
    with pytest.raises(InputError, match=r"1 of its .* still arriving") as refused:
        score(**{asked: "s1"})
    assert refused.value.next_move == "Run again in some minutes."


def test_without_a_server_it_is_said_how_one_is_searched() -> None:
    with pytest.raises(InputError, match="on a Langfuse server they are, too, once LANGFUSE_HOST"):
        score(session="s2")


def test_a_session_that_the_server_does_not_have_is_not_stored_unless_asked_for(
    server: LangfuseServer,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake_with(home, replace(fetched(server), id="elsewhere"))
    assert score(session="elsewhere", store=True) == 1
    assert "DEBRIEF_LANGFUSE_ALL_SCORES=1 sends its scores" in capsys.readouterr().out
    assert server.scores == {}
    monkeypatch.setenv("DEBRIEF_LANGFUSE_ALL_SCORES", "1")
    assert score(session="elsewhere", store=True) == 0
    assert {kept["sessionId"] for kept in server.scores.values()} == {"elsewhere"}


def test_a_score_that_the_server_does_not_confirm_gives_exit_code_one(
    server: LangfuseServer, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = [{"label": "yes", "value": 1}]
    server.add_config(name="execution_quality", dataType="CATEGORICAL", categories=kinds)
    assert score(langfuse="s1", store=True) == 1
    printed = capsys.readouterr().out
    assert "3 of 4 scores confirmed by" in printed
    assert "execution_quality: failed: the score config" in printed


def test_a_server_that_refuses_is_named(server: LangfuseServer) -> None:
    server.public_key = "pk-another"
    with pytest.raises(DebriefError, match="401"):
        score(langfuse="s1")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "needs one of"),
        ({"session": "a", "everything": True}, "needs one of"),
        ({"everything": True, "store": True}, "take one session"),
        ({"langfuse": "s1"}, "none is configured"),
        ({"everything": True}, "^the lake: holds no session"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises((InputError, ConfigurationError), match=reason):
        score(**options)


def test_storing_without_a_server_is_refused(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="none is configured"):
        score(session=str(path), store=True)


def answer(rationale: str = "As turn 1 shows, it was done as it was asked for.") -> str:
    return read_as(rationale)


def test_a_coding_agent_answers_in_a_models_place(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"session": str(path), "answers": str(tmp_path / "work"), "model": "some-model"}
    assert score(**options) == UNANSWERED
    prompt = tmp_path / "work" / "part-1-of-1.md"
    assert "1 prompts need an answer" in capsys.readouterr().out
    assert "Fix the cart, please." in prompt.read_text()
    before = prompt.read_text()
    (tmp_path / "work" / "part-1-of-1.answer.json").write_text(f"```json\n{answer()}\n```")
    assert score(**options) == 0
    assert prompt.read_text() == before
    printed = capsys.readouterr().out
    assert "\nverdict  complete, " in printed
    assert "\n    Reviewed by some-model" in printed
    assert "request 1  done, seen to hold\n    turn 1: go on" in printed
    assert not Lake(str(tmp_path / "home/lake")).partitions("session_scores")


def test_a_long_session_says_how_many_traces_its_parts_repeat(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "".join(f"I looked at file {number} of the shop. " for number in range(20))
    turns = (turn(n, text=f"Round {n}: {said}") for n in range(1, 1_001))
    lake_with(home, session("long", tuple(turns)))
    options = {"session": "long", "answers": str(tmp_path / "work")}
    assert score(**options) == UNANSWERED
    prompts = sorted((tmp_path / "work").glob("part-*.md"))
    assert len(prompts) > 1
    for prompt in prompts:
        prompt.with_name(f"{prompt.stem}.answer.json").write_text(answer())
    capsys.readouterr()
    assert score(**options) == 0
    repeated = "tokens at most and with the last 4 traces of the one before\n"
    printed = capsys.readouterr().out
    assert f"parts {len(prompts)}, each of 70,000 {repeated}" in printed.replace("\n    ", " ")


def test_an_agents_unusable_answer_is_named_with_the_reason(path: Path, tmp_path: Path) -> None:
    options = {"session": str(path), "answers": str(tmp_path / "work")}
    score(**options)
    file = tmp_path / "work" / "part-1-of-1.answer.json"
    file.write_text('{"requests": [], "verdict": "partial"}')
    with pytest.raises(DebriefError, match="it leaves out quality"):
        score(**options)
    file.write_text("I could not.")
    with pytest.raises(DebriefError, match="no object with requests, a verdict and a quality"):
        score(**options)


def test_answers_to_another_session_are_not_mixed_in(home: Path, tmp_path: Path) -> None:
    lake_with(home, session("session-one"), session("session-two"))
    score(session="session-one", answers=str(tmp_path / "work"))
    with pytest.raises(InputError, match="holds prompts of another session"):
        score(session="session-two", answers=str(tmp_path / "work"))
