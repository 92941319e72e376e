"""Labels that people give on pages: kept, replaced, taken back, exported, and counted."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.outcomes.giving import give_label, given_labels, label_of, labels_csv
from debrief.outcomes.labels import annotations_of, labels_from_csv
from debrief.outcomes.store import Label, Labels, put_labels, success_labels
from debrief.redaction.redactor import Redactor
from tests.certification.scenario import reviewed_lake

TOKEN = "ghp_" + "a8Kd93jfLs02mXq7Vb5nTz1RwYc6He4GuPio"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    names = [f"s{number}" for number in range(1, 5)]
    return reviewed_lake(str(tmp_path / "lake"), dict.fromkeys(names, "partial"))


def give(lake: Lake, session: str, name: str, value: str, note: str = "", by: str = "ada") -> None:
    give_label(lake, Path(lake.url).parent, label_of(session, name, value, note, by))


def said(lake: Lake) -> list[tuple[str, str, str, str]]:
    labels = given_labels(lake)
    return sorted((row.rater, row.session_id, row.name, row.value) for row in labels)


def test_a_persons_label_replaces_their_own_of_before_and_nobody_elses(lake: Lake) -> None:
    put_labels(
        lake, Labels(labels=(Label(session_id="s1", name="success", value="no", source="ci"),))
    )
    give(lake, "s1", "success", "good")
    give(lake, "s1", "success", "bad", by="Bob / QA")
    give(lake, "s1", "flaky", "1")
    give(lake, "s1", "success", "unsure")
    assert said(lake) == [
        ("Bob / QA", "s1", "success", "bad"),
        ("ada", "s1", "flaky", "1"),
        ("ada", "s1", "success", "unsure"),
    ]
    assert success_labels(lake)["s1"][:2] == (False, "view")
    give(lake, "s1", "success", "", by="Bob / QA")
    give(lake, "s1", "flaky", "")
    assert said(lake) == [("ada", "s1", "success", "unsure")]
    assert success_labels(lake)["s1"][:2] == (False, "ci")


def _many(url: str, start: int) -> None:
    for number in range(start, start + 10):
        give(Lake(url), f"s{number}", "success", "good")


def test_two_writers_at_once_lose_no_label(lake: Lake) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_many, args=(lake.url, start)) for start in (0, 10)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(said(lake)) == 20


def test_the_exported_file_is_one_that_labels_are_read_from(lake: Lake, tmp_path: Path) -> None:
    give(lake, "s1", "success", "good", 'Tests, "all" of them\nwere run')
    give(lake, "s2", "success", "unsure")
    give(lake, "s3", "asks for proof", "4", "=1+1", by="<b>Bob</b>")
    path = tmp_path / "labels.csv"
    path.write_text(labels_csv(given_labels(lake)), newline="")
    read = labels_from_csv(path)
    assert read.problems == ()
    fields = ("session_id", "name", "value", "rater", "detail", "observed_at")
    assert {tuple(getattr(row, name) for name in fields) for row in read.labels} == {
        tuple(getattr(row, name) for name in fields) for row in given_labels(lake)
    }


def test_labels_of_pages_count_wherever_peoples_labels_do(lake: Lake) -> None:
    give(lake, "s1", "success", "good", f"works; the token was {TOKEN}")
    give(lake, "s2", "success", "bad")
    give(lake, "s3", "success", "unsure")
    give(lake, "s1", "task_completion", "complete")
    give(lake, "s2", "my own thought", "1")
    labels = success_labels(lake)
    assert {id_: (success.success, success.source) for id_, success in labels.items()} == {
        "s1": (True, "view"), "s2": (False, "view"),
    }  # fmt: skip
    redactor = Redactor(b"0" * 32)
    sent = annotations_of(lake, lambda text: redactor.redact(text).text)
    assert {(score.session_id, score.name, score.value) for each in sent.values() for score in each} == {
        ("s1", "success", 1.0), ("s1", "task_completion", "complete"), ("s2", "success", 0.0),
        ("s2", "my own thought", 1.0),
    }  # fmt: skip
    (comment,) = (score.comment for score in sent["s1"] if score.name == "success")
    assert comment.startswith("Labelled by ada: works; the token was ")
    assert TOKEN not in comment


@pytest.mark.parametrize(
    ("name", "value", "note", "reason"),
    [
        (" \n ", "1", "", "has no name"),
        ("x" * 81, "1", "", "name: has more than 80 characters"),
        ("x", "1" * 81, "", "value: has more than 80 characters"),
        ("x", "1", "n" * 4_001, "note: has more than 4,000 characters"),
    ],
)
def test_what_nobody_types_is_refused(name: str, value: str, note: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        label_of("s1", name, value, note, "ada")


def test_what_a_terminal_would_obey_is_not_kept() -> None:
    made = label_of("s1", "a\x1b[31m\n b", "1\u202e", "one\r\ntwo\x00", "ada")
    assert (made.name, made.value, made.detail) == ("a\ufffd[31m b", "1\ufffd", "one\ntwo\ufffd")
