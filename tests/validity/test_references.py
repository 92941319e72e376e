"""What readers, benchmarks and people know of sessions, read from files and lakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.outcomes.store import Label, Labels, put_labels
from debrief.sessions.model import Session
from debrief.validity.references import corpora_in, corpus_of_lake, parts_of
from tests.scoring.scenario import session
from tests.validity.scenario import HEAD, benchmark_folder, identity, read_folder, worked


def test_readers_are_found_with_the_sessions_beside_them(tmp_path: Path) -> None:
    for name in ("a", "b", "other"):
        worked(name).write(tmp_path / "sessions" / f"{name}.jsonl")
    said: list[dict[str, object]] = [
        {"name": "a", "verdict": "complete_verified", "quality": 80, "why": "good", "reading": 1},
        {"name": "a", "verdict": "partial", "quality": 50},
        {"name": "b", "verdict": "undetermined"},
    ]
    ((corpus,), problems) = corpora_in(read_folder(tmp_path / "labels", said))
    assert problems == []
    a, b = (corpus.references[identity(name)] for name in ("a", "b"))
    assert (a.verdict, a.quality, a.done, len(a.readings)) == ("partial", 65.0, False, 2)
    assert (b.verdict, b.quality, b.done) == ("undetermined", None, None)
    read = {one.id for one in corpus.sessions(lambda same: same)}
    assert read == {identity(name) for name in ("a", "b", "other")}


def test_a_session_is_found_by_its_path_where_the_reader_wrote_another_id(tmp_path: Path) -> None:
    worked("a").write(tmp_path / "elsewhere" / "repo" / "a.jsonl")
    said: list[dict[str, object]] = [
        {"name": "x", "verdict": "complete_verified", "transcript": "repo/a.jsonl"},
        {"name": "y", "verdict": "failed", "transcript": "repo/none.jsonl"},
    ]
    labels = read_folder(tmp_path / "labels", said)
    ((corpus,), problems) = corpora_in(labels / "read.jsonl", tmp_path / "elsewhere")
    assert set(corpus.references) == {identity("a")}
    assert problems == [f"session {identity('y')}: its transcript is not there. Name --sessions."]


def test_a_line_that_is_no_reading_is_named_and_a_transcript_is_none(tmp_path: Path) -> None:
    worked("a").write(tmp_path / "sessions" / "a.jsonl")
    labels = read_folder(tmp_path / "labels", [{"name": "a", "verdict": "complete_verified"}])
    with (labels / "read.jsonl").open("a") as file:
        file.write('\n{"session_id": "b", "verdict": "splendid"}\n')
    worked("b").write(labels / "b.jsonl")
    (_, problems) = corpora_in(labels)
    (problem,) = problems
    assert problem.startswith(f"{labels / 'read.jsonl'}:3: is no reading: Invalid enum value")


def test_families_of_a_benchmark_are_apart(tmp_path: Path) -> None:
    benchmark_folder(tmp_path / "one", 3, "agent-one")
    benchmark_folder(tmp_path / "two", 2, "agent-two")
    corpora, problems = corpora_in(tmp_path)
    assert problems == []
    assert [len(corpus.references) for corpus in corpora] == [6, 4]
    tasks = [reference.task for reference in corpora[0].references.values()]
    assert sorted(tasks) == ["task-0", "task-0", "task-1", "task-1", "task-2", "task-2"]
    parts = list(parts_of(corpora[0], 4))
    sizes = [len(list(part.sessions(lambda same: same))) for part in parts]
    assert sizes == [4, 2]


def test_what_cannot_be_used_is_named_with_its_line_and_what_to_do(tmp_path: Path) -> None:
    folder = benchmark_folder(tmp_path, 1, "f")
    known = identity("f-0-0")
    lines = [f"{known},1,t1", f"{known[:-1]}x,1,t1", f"{known},maybe,t1", ",1,t1", "nobody,0,t2"]
    labels = folder / "labels.csv"
    labels.write_text("\n".join(["session_id,success,task", *lines]) + "\n")
    (folder / "sessions" / "broken.jsonl").write_text('{"type":"user",\n')
    corpora, problems = corpora_in(folder)
    assert [set(corpus.references) for corpus in corpora] == [{known}]
    by_place = {problem.split(": ")[0]: problem for problem in problems}
    assert "Write 1 or 0" in by_place[f"{labels}:4"]
    assert "has no session_id" in by_place[f"{labels}:5"]
    assert "Correct the id, or put its transcript there" in by_place[f"{labels}:6"]
    assert f"{labels}:3" in by_place
    assert f"{folder / 'sessions' / 'broken.jsonl'}:1" in by_place


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "holds no reader's file and no labels.csv"),
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
        corpora_in(tmp_path)
    assert "session_id" in raised.value.next_move


def test_what_people_say_of_a_lakes_sessions_counts_and_outcomes_do_not(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", "2026-10-05", [session("s1"), session("s2")], Session)
    merged = Label(session_id="s1", name="success", value="yes", source="ci")
    put_labels(lake, Labels(labels=(merged,)))
    with pytest.raises(InputError, match="holds no label of a person"):
        corpus_of_lake(lake)
    label = Label(session_id="s2", name="success", value="no", source="view", rater="ada")
    put_labels(lake, Labels(labels=(merged, label)))
    corpus = corpus_of_lake(lake)
    (reference,) = corpus.references.values()
    assert (reference.session_id, reference.done, reference.verdict) == ("s2", False, None)
    assert [one.id for one in corpus.sessions(lambda same: same)] == ["s1", "s2"]
