"""``debrief validity``: folders of sessions and readers to tables, with a model and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.scoring.dimensions import DIMENSIONS
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.scoring.scenario import answer
from tests.validity.scenario import benchmark_folder, identity, read_folder, worked

COUNT = 24


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")


def validity(*arguments: object, **options: str) -> Result:
    given = [*map(str, arguments)]
    return CliRunner().invoke(app, ["validity", *given], env={"COLUMNS": "200", **options})


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Readers of 24 sessions: half are tested and pass, half fail their test at the end."""
    lines: list[dict[str, object]] = []
    for number in range(COUNT):
        good = number % 2 == 0
        worked(str(number), good).write(tmp_path / "sessions" / f"{number}.jsonl")
        verdict = "complete_verified" if good else "partial"
        quality = 80 if good else 30
        lines.append({"name": str(number), "verdict": verdict, "quality": quality + number})
    return read_folder(tmp_path / "labels", lines)


def test_verdicts_are_compared_with_readers_and_then_sessions_are_changed(
    labels: Path, tmp_path: Path
) -> None:
    target = tmp_path / "figures.json"
    done = validity(labels, "--json", target)
    assert done.exit_code == 0, done.output
    assert f"{COUNT} sessions with a label that could be read." in done.stdout
    exact = "| the readers' verdict exactly, where there is a verdict | 24 sessions | 100%"
    assert exact in done.stdout
    assert "| breaks off half way | must not be complete_verified |" in done.stdout
    report = json.loads(target.read_text())
    spearman = next(each for each in report["agreement"] if "Spearman" in each["name"])
    assert spearman["value"]["low"] > 0.5
    assert report["crossed"] == {
        "complete_verified": {"complete_verified": 12},
        "partial": {"partial": 12},
    }


def test_a_benchmark_is_held_to_pairs_of_one_task(tmp_path: Path) -> None:
    benchmark_folder(tmp_path / "data", 12, "agent")
    done = validity(tmp_path / "data", "--changed", 0)
    assert done.exit_code == 0, done.output
    assert "| runs of one task, verdict, then place: AUROC | 12 tasks | 1.00 (1.00" in done.stdout
    assert "Changes after which" not in done.stdout


def reading(call: Call) -> Reply:
    """Good scores where the test passed."""
    good = "3 passed" in call.system + call.user
    level = -1 if good else 0
    scores: dict[str, Any] = {
        dimension.name: dimension.anchors[level].label or dimension.anchors[level].value
        for dimension in DIMENSIONS
    }
    said = json.loads(answer(**scores))
    return Reply(json.dumps({**said, "verdict": "complete_verified" if good else "failed"}))


def test_a_model_is_asked_after_its_cost_was_said_and_agreed_to(
    labels: Path, tmp_path: Path
) -> None:
    prices, target = tmp_path / "prices.json", tmp_path / "figures.json"
    prices.write_text('{"openai/tiny": {"input": 1, "output": 1}}')
    model = ("--model", "openai/tiny", "--changed", "0", "--json", target)
    with OpenAIServer(reading) as server:
        env = {"DEBRIEF_MODEL_BASE_URL": server.url, "DEBRIEF_PRICES": str(prices)}
        refused = validity(labels, *model, **env)
        assert refused.exit_code == 1
        assert "openai/tiny would be asked 24 questions on 24 sessions: about" in refused.stderr
        assert "$" in refused.stderr
        assert "was not asked, as nobody agreed to it. Add --yes" in refused.stderr
        assert len(server.calls) == 0
        limited = validity(labels, *model, "--yes", "--max-cost", "0.0000001", **env)
        assert "max_cost_usd is reached" in limited.stdout
        assert len(server.calls) == 0
        done = validity(labels, *model, "--yes", **env)
        assert done.exit_code == 0, done.output
        shown = [call.system + call.user for call in server.calls]
    assert len(shown) == COUNT
    assert not any("read.jsonl" in text for text in shown)
    assert "On 24 sessions with a label, openai/tiny's word is worth more than none" in done.stdout
    paired = {load["name"]: load for load in json.loads(target.read_text())["paired"]}
    assert paired["done or not: AUROC, the model"]["value"]["value"] == 1.0
    assert paired["done or not: AUROC, the model minus offline"]["value"]["value"] == 0.0


def test_nothing_is_said_of_folders_without_references(tmp_path: Path) -> None:
    worked("a").write(tmp_path / f"{identity('a')}.jsonl")
    done = validity(tmp_path)
    assert done.exit_code == 1
    assert "holds no reader's file and no labels.csv" in done.stderr
