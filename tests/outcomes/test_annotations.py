"""What people say on a Langfuse server, as labels of its sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from debrief.outcomes.labels import labels_from_langfuse
from tests.langfuse.scenario import client_of
from tests.langfuse.server import Json, LangfuseServer, Request, Trouble


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
        return {"data": self.annotations[start : start + 2], "meta": meta}


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
             "stringValue": "complete", "sessionId": f"s{n}"}
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
