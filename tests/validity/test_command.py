"""``debrief validity``: folders and lakes of labelled sessions to tables, figures and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.cli.outcomes import validity
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.outcomes.store import Label, Labels, put_labels
from debrief.scoring.dimensions import DIMENSIONS
from debrief.sessions.model import Session
from debrief.validity.figures import FEWEST, MEAN
from debrief.validity.measuring import batches_of_folder, batches_of_lake
from tests.models.openai_server import Call, OpenAIServer, Reply, judged
from tests.scoring.scenario import session
from tests.validity.scenario import HEAD, labelled_folder
from tools.validity.__main__ import main as gate


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")


def test_each_family_is_reported_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labelled_folder(tmp_path / "data" / "a", 4 * FEWEST, family="one-agent")
    labelled_folder(tmp_path / "data" / "b", 2, family="another")
    target = tmp_path / "figures.json"
    validity(folders=[tmp_path / "data"], sample=4, shuffles=1, as_json=target)
    printed = capsys.readouterr().out
    assert "## one-agent: 20 sessions, 50% succeeded\n" in printed
    assert "## another: 2 sessions, 50% succeeded; too few of one outcome to count" in printed
    assert "| cut in half: must fall |" in printed
    assert "of 1 shuffles" in printed
    report = json.loads(target.read_text())
    figures = {(each["score"], each["family"]): each for each in report["figures"]}
    assert ("task_completion", "one-agent") in figures
    assert figures["fewer errors", "one-agent"]["estimates"]["AUROC"]["value"] == 1.0
    mean = figures["fewer errors", MEAN]
    assert (mean["sessions"], mean["estimates"]["AUROC"]["value"]) == (1, 1.0)


def test_the_gate_fails_when_a_bar_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = labelled_folder(tmp_path / "data", 2 * FEWEST, family="one-agent")
    monkeypatch.setattr("sys.argv", ["validity", str(folder), "--sample", "2", "--shuffles", "0"])
    code = gate()
    rows = [
        line for line in capsys.readouterr().out.splitlines() if line.endswith(("yes |", "NO |"))
    ]
    assert any("order, family left out, AUROC, each family" in row for row in rows)
    assert code == any(row.endswith("NO |") for row in rows)


def test_any_model_is_measured_through_the_products_own_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled_folder(tmp_path / "data", 12, family="one-agent")
    with OpenAIServer(answer) as server:
        monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", server.url)
        target = tmp_path / "figures.json"
        folders = [tmp_path / "data"]
        validity(folders=folders, model="openai/gpt-4o-mini", sample=0, shuffles=0, as_json=target)
        asked = [call.system + call.user for call in server.calls]
    assert asked
    assert not any("task-" in text or "labels.csv" in text for text in asked)
    report = json.loads(target.read_text())
    assert report["evaluators"] == "openai/gpt-4o-mini"
    found = {each["score"]: each["estimates"] for each in report["figures"]}
    assert found["overall_quality"]["AUROC"]["value"] == 1.0
    assert found["judge plan-compliance"]["AUROC"]["value"] == 0.5


def test_the_limit_on_cost_is_one_for_all_families_and_whatever_works_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for family in "abcd":
        labelled_folder(tmp_path / "data" / family, 2, family=family)
    with OpenAIServer(answer) as server:
        prices = tmp_path / "prices.json"
        prices.write_text('{"openai/tiny": {"input": 0, "output": 1000}}')
        monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", server.url)
        monkeypatch.setenv("DEBRIEF_PRICES", str(prices))
        target = tmp_path / "figures.json"
        folders, limit = [tmp_path / "data"], 0.9
        validity(folders=folders, model="openai/tiny", max_cost=limit, sample=0, as_json=target)
        assert len(server.calls) == 1
    failures = json.loads(target.read_text())["failures"]
    assert any("max_cost_usd is reached" in reason for reason in failures)


def answer(call: Call) -> Reply:
    """Good scores for a session that says it fixed the bug, and the same from every judge."""
    if "[[ ## score ## ]]" in call.system:
        return Reply(judged(0.9))
    level = -1 if "Fixed." in call.system + call.user else 0
    said = {
        each.name: {
            "score": each.anchors[level].label or each.anchors[level].value,
            "rationale": "Seen in turn 1.",
        }
        for each in DIMENSIONS
    }
    return Reply(json.dumps(said))


def test_a_label_and_a_transcript_make_a_run(tmp_path: Path) -> None:
    folder = labelled_folder(tmp_path, 30, family="one-agent")
    batches, problems = batches_of_folder(folder, sample=28)
    assert problems == []
    assert [len(batch.runs) for batch in batches] == [25, 5]
    assert [len(batch.sampled) for batch in batches] == [25, 3]
    runs = [run for batch in batches for run in batch.runs.values()]
    assert {run.family for run in runs} == {"one-agent"}
    assert sum(run.success for run in runs) == 15
    read = [one.id for batch in batches for one in batch.sessions(lambda same: same)]
    assert sorted(read) == sorted(run.session_id for run in runs)


def test_what_cannot_be_used_is_named_with_its_line_and_what_to_do(tmp_path: Path) -> None:
    folder = labelled_folder(tmp_path, 2)
    (known,) = sorted(path.stem for path in folder.rglob("*.jsonl"))[:1]
    lines = [f"{known},1,t1", f"{known[:-1]}x,1,t1", f"{known},maybe,t1", ",1,t1", "nobody,0,t2"]
    labels = folder / "labels.csv"
    labels.write_text("\n".join(["session_id,success,task", *lines]) + "\n")
    (folder / "sessions" / "broken.jsonl").write_text('{"type":"user",\n')
    batches, problems = batches_of_folder(folder, 0)
    assert [set(batch.runs) for batch in batches] == [{known}]
    by_place = {problem.split(": ")[0]: problem for problem in problems}
    assert "Write 1 or 0" in by_place[f"{labels}:4"]
    assert "has no session_id" in by_place[f"{labels}:5"]
    assert "Correct the id, or put its transcript there" in by_place[f"{labels}:6"]
    assert f"{labels}:3" in by_place
    assert f"{folder / 'sessions' / 'broken.jsonl'}:1" in by_place


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "holds no labels.csv"),
        ("id,ok\n", "has no column"),
        (f"{HEAD}\nnobody,1,t,,\n", "no transcript below"),
    ],
    ids=["no labels", "other columns", "no label of a session"],
)
def test_a_folder_without_a_usable_label_says_what_one_is(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(InputError, match=reason) as raised:
        batches_of_folder(tmp_path, 0)
    assert "session_id" in raised.value.next_move


def test_the_lakes_labels_of_success_do_as_well(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    with pytest.raises(InputError, match="holds no label of success"):
        batches_of_lake(lake, 0)
    lake.write("raw_sessions", "2026-10-05", [session("s1"), session("s2")], Session)
    label = Label(session_id="s2", name="success", value="yes", source="benchmark", task="t7")
    put_labels(lake, Labels(labels=(label,)))
    (batch,) = batches_of_lake(lake, sample=1)
    (run,) = batch.runs.values()
    assert (run.session_id, run.success, run.task, run.family) == ("s2", True, "t7", "claude-code")
    assert [one.id for one in batch.sessions(lambda same: same)] == ["s2"]
