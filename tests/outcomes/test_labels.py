"""Where people's labels are read, and what is no label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from debrief.errors import InputError
from debrief.outcomes.labels import (
    labels_from_csv,
    labels_from_feedback,
    labels_from_langfuse,
    parse_feedback,
)
from debrief.outcomes.store import success_of
from tests.langfuse.recorded import like
from tests.langfuse.scenario import client_of
from tests.langfuse.server import Json, LangfuseServer, Request, Trouble

FEEDBACK = """---
rater: ada
task_completion: complete
code-reuse: 0.8
tests: true
---
It works, but look at this:

- score: 0.7
see https://example.org: fine
Note: good
"""


def test_a_csv_gives_labels_with_rater_and_line(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("\ufeffName, session_id,value,rater\ncode-reuse,s1,0.8,ada\n\ncode-reuse,s2,\n")
    found = labels_from_csv(path)
    (label,) = found.labels
    assert (label.session_id, label.name, label.value) == ("s1", "code-reuse", "0.8")
    assert (label.source, label.rater, label.place) == ("csv", "ada", f"{path}:2")
    assert found.problems == (f"{path}:4: has no value",)


def test_a_csv_of_successes_names_the_lines_it_cannot_use(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("session_id,success,task\ns1,1,t\ns2,maybe,t\ns3,,t\ns4,no,\n")
    found = labels_from_csv(path)
    assert [(label.session_id, success_of(label), label.task) for label in found.labels] == [
        ("s1", True, "t"), ("s4", False, ""),
    ]  # fmt: skip
    assert found.problems == (
        f"{path}:3: success is 'maybe', which is neither yes nor no. Write 1 or 0.",
        f"{path}:4: has no success",
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"session,name,value\ns1,x,1\n", "has no column session_id"),
        (b"", "has no column session_id, name, value"),
        (b"session_id,name,value\n\xff\xfe", "is not UTF-8 at byte 22"),
        (b'session_id,name,value\ns1,"x,1', "is no CSV"),
    ],
    ids=["column", "empty", "bytes", "quote"],
)
def test_a_csv_that_cannot_be_used_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        labels_from_csv(path)


def test_a_csv_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv: cannot be read: No such file"):
        labels_from_csv(Path("nowhere.csv"))


def test_feedback_has_labels_in_its_front_matter_and_on_lines_of_their_own() -> None:
    found = parse_feedback(FEEDBACK, "plan-1", "f.md")
    assert [(label.name, label.value, label.loose) for label in found.labels] == [
        ("task_completion", "complete", False),
        ("code-reuse", "0.8", False),
        ("tests", "true", False),
        ("score", "0.7", True),
        ("Note", "good", True),
    ]
    assert {label.session_id for label in found.labels} == {"plan-1"}
    assert {label.rater for label in found.labels} == {"ada"}
    assert found.labels[3].place == "f.md:9"


@pytest.mark.parametrize("text", ["It was fine.\nI would do it again: yes, really.\n", ""])
def test_free_text_alone_is_no_label(text: str) -> None:
    assert parse_feedback(text, "p", "f").labels == ()


def test_feedback_may_name_the_session_it_is_on() -> None:
    found = parse_feedback("---\nsession: abc\nscore: 1\n---\n", "plan-1", "f")
    assert [label.session_id for label in found.labels] == ["abc"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\na: [1\n---\n", "cannot be read"),
        (
            f"---\na: {'[' * 5_000}\n---\n",
            "f:2: its front matter cannot be read: it is over 10 levels",
        ),
        ("---\n- 1\n---\n", "holds no fields"),
        ("---\nscore: [1, 2]\n---\n", "score has no single value"),
    ],
)
def test_front_matter_that_cannot_be_used_is_reported(text: str, reason: str) -> None:
    found = parse_feedback(text, "p", "f")
    assert found.labels == ()
    assert reason in found.problems[0]


def test_every_feedback_file_of_a_debrief_folder_is_read(tmp_path: Path) -> None:
    for place, text in (
        ("training_data/plan-1", "score: 0.2"),
        ("sessions/s-2", "score: 0.9"),
        ("sessions/s-3", "just words"),
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "human_feedback.md").write_text(text)
    (tmp_path / "sessions/s-4").mkdir()
    (tmp_path / "sessions/s-4/human_feedback.md").write_bytes(b"\xff\xff")
    found = labels_from_feedback([tmp_path, tmp_path / "nowhere"])
    assert [(label.session_id, label.value) for label in found.labels] == [
        ("plan-1", "0.2"), ("s-2", "0.9"),
    ]  # fmt: skip
    assert "s-4" in found.problems[0]


class Annotated(LangfuseServer):
    """A server that lists annotations, in pages of two."""

    annotations: list[Json]

    def __enter__(self) -> Annotated:
        super().__enter__()
        return self

    def _route(self, request: Request) -> tuple[int, Any]:
        newer = request.path.endswith("/v3/scores")
        if newer and self.mode == "old":
            return 404, {"message": "Not found"}
        if request.path.endswith("/scores"):
            assert request.query["source"] == "ANNOTATION"
            return 200, self._page(request.query, newer)
        return super()._route(request)

    def _page(self, query: Mapping[str, str], newer: bool) -> Json:
        start = int(query.get("cursor", 0)) if newer else 2 * (int(query.get("page", 1)) - 1)
        more = start + 2 < len(self.annotations)
        pages = {"page": start // 2 + 1, "totalPages": -(-len(self.annotations) // 2)}
        meta = ({"cursor": str(start + 2)} if more else {}) if newer else pages
        example = self._example("scores of a session" if newer else "older scores by id")
        shown = [like(example, item) for item in self.annotations[start : start + 2]]
        return {"data": shown, "meta": {"limit": 2, **meta}}


def annotation(number: int, form: str, value: object, **subject: str) -> Json:
    return {
        "id": f"a{number}", "name": "task_completion", "dataType": form, "value": value,
        "source": "ANNOTATION", "authorUserId": "ada", "subject": subject,
    }  # fmt: skip


def test_annotations_of_a_server_are_labels_of_their_sessions() -> None:
    with Annotated() as server:
        server.observations = [  # the session stands on the root alone
            {"id": "o", "traceId": "t1", "sessionId": "s3", "startTime": "2026-03-02T09:00:00Z"},
            {"id": "p", "traceId": "t1", "sessionId": None, "startTime": "2026-03-02T09:00:01Z"},
        ]
        server.annotations = [
            annotation(1, "CATEGORICAL", "complete", kind="session", id="s1"),
            annotation(2, "NUMERIC", 0.67, kind="session", id="s2"),
            annotation(3, "BOOLEAN", True, kind="trace", id="t1"),
            annotation(4, "TEXT", "nice", kind="session", id="s1"),
            annotation(5, "NUMERIC", 1, kind="experiment", id="e1"),
        ]
        found = labels_from_langfuse(client_of(server))
    assert [(label.session_id, label.value, label.rater) for label in found.labels] == [
        ("s1", "complete", "ada"), ("s2", "0.67", "ada"), ("s3", "true", "ada"),
    ]  # fmt: skip
    assert [problem.endswith("a5: belongs to no session") for problem in found.problems] == [True]


def test_an_older_server_is_read_the_older_way() -> None:
    with Annotated(mode="old") as server:
        server.annotations = [
            {"id": f"a{n}", "name": "x", "dataType": "CATEGORICAL", "value": 0,
             "stringValue": "complete", "sessionId": f"s{n}", "source": "ANNOTATION"}
            for n in range(3)
        ]  # fmt: skip
        found = labels_from_langfuse(client_of(server))
    assert [(label.session_id, label.value) for label in found.labels] == [
        (f"s{n}", "complete") for n in range(3)
    ]


def test_a_server_that_is_away_is_reported_and_costs_no_other_label() -> None:
    with Annotated() as server:
        server.annotations = []
        server.trouble = [Trouble(503) for _ in range(4)]
        found = labels_from_langfuse(client_of(server))
    assert found.labels == ()
    assert "annotations were not read" in found.problems[0]
