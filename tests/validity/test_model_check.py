"""``debrief judges check --model``: how far a model is off on sessions with known answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.scoring.offline_evaluator import OfflineEvaluator
from debrief.scoring.scorer import score_session
from debrief.scoring.verdict import VerdictName
from debrief.validity.calibration import CalibrationSession, calibration_sessions
from debrief.validity.changes import wordings_from
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.scoring.scenario import answer

CASES = calibration_sessions()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")


def case_of(call: Call) -> CalibrationSession:
    return next(case for case in CASES if case.session.id in call.user)


def reading(verdict: VerdictName, claim: dict[str, Any] | None = None) -> Reply:
    said = json.loads(answer())
    completion = {"complete_verified": "complete", "partial": "partial", "failed": "failed"}
    said["dimensions"]["task_completion"]["score"] = completion.get(verdict)
    return Reply(json.dumps({**said, "verdict": verdict, "claims": [claim] if claim else []}))


def better(call: Call) -> Reply:
    """Name the recording that is done and checked, and words of it."""
    shown = {
        call.user.index(case.session.id): case for case in CASES if case.session.id in call.user
    }
    place, case = next(
        (place, shown[at])
        for place, at in enumerate(sorted(shown), 1)
        if shown[at].known.verdict == "complete_verified"
    )
    quote = case.session.turns[0].prompt.splitlines()[0][:60]
    basis = {"recording": place, "turn": 1, "quote": quote, "what": "It was seen to hold."}
    return Reply(json.dumps({"grounds": [basis], "better": place}))


def careful(call: Call) -> Reply:
    """Answer as a careful reader: sees complaints, admissions, what broke off or failed last."""
    if "You compare how a coding agent" in call.system + call.user:
        return better(call)
    case, words = case_of(call), wordings_from()
    closing = case.session.turns[-1].messages[-1].text.splitlines()[0][:60]
    claim = {"turn": len(case.session.turns), "quote": closing, "state": "contradicted"}
    bad = (*words.complaints, *words.admissions, *words.failures)
    if any(sentence in call.user for sentence in bad):
        return reading("failed", claim)
    changed = case.session.turns[-1].messages[-1].text[-40:] not in call.user
    if case.known.verdict == "complete_verified" and (changed or "again-" in call.user):
        return reading("partial")
    return reading(case.known.verdict, claim if case.known.false_claim else None)


def check(reply: Callable[[Call], Reply], *arguments: str) -> tuple[Result, OpenAIServer]:
    with OpenAIServer(reply) as server:
        env = {"DEBRIEF_MODEL_BASE_URL": server.url, "COLUMNS": "300"}
        given = ["judges", "check", "--model", "openai/tiny", *arguments]
        return CliRunner().invoke(app, given, env=env), server


@cache
def checked_carefully(seed: int) -> tuple[Result, OpenAIServer]:
    """Ask a careful reader once in this file for each seed: it takes a hundred questions."""
    return check(careful, "--yes", "--seed", str(seed))


def test_what_it_takes_is_said_before_anything_is_asked() -> None:
    refused, server = check(careful)
    assert refused.exit_code == 1
    assert "openai/tiny would be asked" in refused.stderr
    assert "was not asked, as nobody agreed to it. Add --yes" in refused.stderr
    assert not server.calls


def test_a_careful_reader_is_worth_more_than_none() -> None:
    done, server = checked_carefully(0)
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("openai/tiny finds 12 of 12 known verdicts; one answer to all would")
    assert "Its word is worth more than none" in first
    assert "| a false claim is seen | 4 | 4 (100%" in done.stdout
    assert "| a false claim is seen where there is none | 8 | 0 (0%" in done.stdout
    assert "| asked again: the same verdict | 12 | 12 (100%" in done.stdout
    assert "| compared in both orders: the better one is named | 3 | 3 (100%" in done.stdout
    assert "| compared in both orders: the order decides | 3 | 0 (0%" in done.stdout
    assert f"{len(server.calls)} questions, " in done.stdout
    assert f"would be asked {len(server.calls)} questions" in done.stderr


@pytest.mark.parametrize("verdict", ["complete_verified", "undetermined"])
def test_one_answer_to_all_is_worth_nothing(verdict: VerdictName) -> None:
    done, _ = check(lambda _: reading(verdict), "--yes")
    assert done.exit_code == 1
    assert "nothing shows that its word is worth more" in done.stdout.splitlines()[0]


def test_a_model_without_a_usable_answer_is_worth_nothing_and_says_why() -> None:
    done, _ = check(lambda _: Reply("I would rather not."), "--yes", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert {one["given"] for one in found["check"]["sessions"]} == {None}
    assert all("no usable answer" in one["failure"] for one in found["check"]["sessions"])


def test_the_words_of_changes_are_drawn_when_it_runs() -> None:
    first, second = (checked_carefully(seed)[1].calls for seed in (0, 1))
    assert {call.user for call in first} != {call.user for call in second}


def test_answers_are_defensible_and_ids_do_not_give_them_away() -> None:
    assert len(CASES) == 12
    for case in CASES:
        least, most = case.known.quality
        assert 0 <= least < most <= 1
        assert not any(word in case.session.id for word in case.name.split("-"))
        assert score_session(case.session, OfflineEvaluator()).status == "ok"
    assert {case.known.verdict for case in CASES} == {
        *("complete_verified", "complete_unverified", "partial", "failed")
    }
