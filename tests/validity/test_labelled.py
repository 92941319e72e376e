"""Folders and lakes of labelled sessions, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.outcomes.store import Label, Labels, put_labels
from debrief.sessions.model import Session
from debrief.validity.measuring import batches_of_folder, batches_of_lake
from tests.scoring.scenario import session
from tests.validity.scenario import HEAD, labelled_folder


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
