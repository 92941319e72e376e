"""A second opinion: a larger model reads only what the small one is unsure of, and then counts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.evaluators import make_evaluators
from debrief.scoring.scorer import score_session, score_week
from debrief.scoring.second_opinion import ASSUMED_ONE_IN
from debrief.settings import Settings, load_settings
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.scoring.scenario import answer, session
from tests.validity.scenario import identity, worked

PRICES = {"openai/small": {"input": 1, "output": 1}, "openai/large": {"input": 10, "output": 10}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    monkeypatch.setenv("DEBRIEF_PRICES", str(tmp_path / "prices.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five sessions, the test of one of which fails at the end."""
    for name in ("sure", "low", "untold", "broken", "refused"):
        worked(name, name != "broken").write(tmp_path / "sessions" / f"{name}.jsonl")
    return tmp_path / "sessions"


def is_large(call: Call) -> bool:
    return bool(call.body["model"].endswith("large"))


def reply(call: Call) -> Reply:
    """The large one finds all partly done; the small one is sure of some."""
    if is_large(call):
        return Reply(answer(verdict="partial"))
    asked = next(
        (n for n in ("low", "untold", "refused") if f"Fix the total of {n}." in call.user), ""
    )
    return Reply(
        {
            "low": answer(confidence="low"),
            "untold": answer(verdict="undetermined"),
            "refused": "I would rather not.",
        }.get(asked, answer())
    )


def score(server: OpenAIServer, *arguments: Any) -> dict[str, dict[str, Any]]:
    env = {"DEBRIEF_MODEL_BASE_URL": server.url}
    given = ["score", *map(str, arguments), "--model", "openai/small", "--json"]
    done = CliRunner().invoke(app, [*given, "--second-opinion", "openai/large", "--yes"], env=env)
    assert done.exit_code == 0, done.output
    return {row["session_id"]: row for row in json.loads(done.stdout)}


def test_only_what_the_small_model_is_unsure_of_is_read_by_the_large_one(folder: Path) -> None:
    with OpenAIServer(reply) as server:
        rows = score(server, folder)
        asked = Counter(map(is_large, server.calls))
        assert score(server, folder).keys() == rows.keys()
        again = [call for call in server.calls if "refused" not in call.user]
    assert asked[True] == 4, "not of the one that it is sure of"
    assert len(again) == 4 + 3, "no answer that could be used is asked for twice"
    reasons = {
        name: (rows[identity(name)].get("first_opinion") or {}).get("reason")
        for name in ("sure", "low", "untold", "broken", "refused")
    }
    assert reasons == {
        "sure": None,
        "low": "low_confidence",
        "untold": "undetermined",
        "broken": "contradicts_check",
        "refused": "refused",
    }
    for name, reason in reasons.items():
        row = rows[identity(name)]
        assert row["model"] == ("openai/large" if reason else "openai/small")
        assert row["verdict"]["verdict"] == ("partial" if reason else "complete_verified")
    low = rows[identity("low")]
    first = low["first_opinion"]
    assert (first["model"], first["verdict"]) == ("openai/small", "complete_verified")
    assert low["cost_usd"] > 5 * first["cost_usd"] > 0, "the price of both"
    assert len({row["scoring_fingerprint"] for row in rows.values()}) == 1


def test_a_person_is_told_who_read_and_why(folder: Path) -> None:
    with OpenAIServer(reply) as server:
        env = {"DEBRIEF_MODEL_BASE_URL": server.url, "DEBRIEF_SECOND_OPINION": "openai/large"}
        given = ["score", str(folder / "broken.jsonl"), "--model", "openai/small", "--yes"]
        done = CliRunner().invoke(app, given, env={**env, "COLUMNS": "200"})
    assert "scored by openai/large" in done.stdout
    said = (
        "openai/small read it first and was unsure: the last check says the opposite; its verdict: "
    )
    assert f"{said}done, checked" in done.stdout


def evaluators(server: OpenAIServer, **options: Any) -> Any:
    settings: Settings = load_settings().with_given(
        model="openai/small", model_base_url=server.url, attempts=1
    )
    return make_evaluators(settings, offline=False, second_opinion="openai/large", **options)


def test_where_the_large_one_has_no_answer_the_small_ones_stands_until_the_next_run() -> None:
    silent = True

    def unsure(call: Call) -> Reply:
        if not is_large(call):
            return Reply(answer(confidence="low"))
        return Reply("No.") if silent else Reply(answer(verdict="partial"))

    with OpenAIServer(unsure) as server:
        scorer = evaluators(server).chunk_scorer
        row = score_session(session(), scorer)
        assert (row.status, row.model, row.first_opinion) == ("ok", "openai/small", None)
        assert "openai/large: gave no usable answer" in row.second_failure
        silent = False
        scorer = evaluators(server).chunk_scorer  # of the next run
        (later,) = score_week([session()], scorer, [row])
        asked = len(server.calls)
        (kept,) = score_week([session()], scorer, [later])
        assert len(server.calls) == asked
    assert (later.model, later.second_failure) == ("openai/large", "")
    assert kept == later


def test_a_small_model_that_cannot_be_reached_is_no_reason_to_ask_a_dearer_one() -> None:
    with OpenAIServer(lambda call: Reply(status=401)) as server:
        row = score_session(session(), evaluators(server).chunk_scorer)
        assert not any(map(is_large, server.calls))
    assert row.status == "failed"


def test_an_estimate_counts_the_share_that_it_names() -> None:
    sessions = [session(f"s{number}") for number in range(200)]
    with OpenAIServer(reply) as server:
        counting = evaluators(server, dry_run=True)
        assert [row.status for row in score_week(sessions, counting.chunk_scorer)] == [
            "failed"
        ] * 200
        assert not server.calls
    further = counting.spent.calls - 200
    assert pytest.approx(further, abs=20) == 200 / ASSUMED_ONE_IN


def test_the_same_model_alone_is_another_scorer() -> None:
    with OpenAIServer(reply) as server:
        both = evaluators(server)
        alone = make_evaluators(
            load_settings().with_given(model="openai/small", model_base_url=server.url),
            offline=False,
            second_opinion="openai/small",
        )
    assert both.has_second_opinion
    assert not alone.has_second_opinion
    assert both.scoring_fingerprint != alone.scoring_fingerprint
