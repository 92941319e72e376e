"""Tasks, listings and benchmarks, and every value that a query may not have."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from debrief.recorder.storage.store import RecordStore
from debrief.version import VERSION
from tests.recorder.service.helpers import (
    Api,
    assert_problem,
    ensure_task,
    new_record,
    running,
    stored,
    upload,
)
from tests.waiting import LONG


def test_a_task_is_made_once(client: httpx.Client) -> None:
    task = {"id": "tailwind-setup", "name": "Tailwind", "description": "Sets it up."}

    made = client.post("/tasks", json=task)

    assert made.status_code == 201
    assert client.post("/tasks", json=task).json() == made.json()
    assert_problem(client.post("/tasks", json={**task, "name": "Other"}), 409, "another id")
    assert made.json() in client.get("/tasks").json()["tasks"]
    assert client.get("/tasks/tailwind-setup").json() == made.json()
    assert_problem(client.post("/tasks", json={**task, "description": "x" * 70_000}), 422)
    assert_problem(upload(client, new_record(task_id="nobody-made-it")), 404, "nobody-made-it")


@pytest.mark.parametrize(
    "task",
    [
        {"name": "x"},
        {"id": "x"},
        {"id": "", "name": "x"},
        {"id": "Upper", "name": "x"},
        {"id": "a_b", "name": "x"},
        {"id": "a" * 65, "name": "x"},
        {"id": "x\n", "name": "x"},
        {"id": "x", "name": ""},
        {"id": "x", "name": "n" * 201},
        {"id": "x", "name": "x", "color": "red"},
        {"id": 1, "name": "x"},
    ],
    ids=str,
)
def test_a_task_that_is_none_is_told_why(client: httpx.Client, task: Any) -> None:
    assert assert_problem(client.post("/tasks", json=task), 422)["reasons"]


def test_sessions_are_listed_by_pages_and_filters(record_store: RecordStore) -> None:
    ensure_task(record_store)
    ensure_task(record_store, "other")
    with running(record_store) as api, api.client() as client:
        ids = [str(stored(client, repo_name=f"repo-{number % 2}")) for number in range(7)]
        other = str(stored(client, task_id="other"))
        client.patch(f"/sessions/{ids[3]}", json={"status": "ready"})

        page = client.get("/sessions", params={"limit": 3, "taskId": "cart"}).json()
        assert [session["id"] for session in page["sessions"]] == ids[:3]
        assert page["more"]
        params = {"taskId": "cart", "cursor": page["cursor"]}
        rest = client.get("/sessions", params=params).json()
        assert [session["id"] for session in rest["sessions"]] == ids[3:]
        assert not rest["more"]

        def found(**params: str) -> list[str]:
            listed = client.get("/sessions", params=params).json()["sessions"]
            export = client.get("/export.jsonl", params=params)
            ids = [session["id"] for session in listed]
            lines = export.text.splitlines()
            assert [json.loads(line)["meta"]["sessionId"] for line in lines] == ids
            assert export.headers["debrief-count"] == str(len(ids))
            return ids

        assert found(taskId="other") == [other]
        assert found(status="ready") == [ids[3]]
        assert found(repoName="repo-1") == ids[1::2]
        assert found(repoName="o'; DROP TABLE tasks; --%s") == []
        assert found(repoName="repo-1", taskId="other") == []
        assert found(since="2026-11-02T09:42:00Z") == [*ids, other]
        assert found(until="2026-11-02T09:42:00+00:00") == []
        assert found(since="2026-11-02T09:42:00.001Z") == []
        assert found(since="2026-11-02", until="2026-11-03") == [*ids, other]
        assert found(since="2026-11-03") == found(until="2026-11-02") == []
        late = str(stored(client))
        assert found(cursor=rest["cursor"], taskId="cart") == [late]


BAD_VALUES = {
    "/sessions limit": [
        *("0", "501", "-1", "9" * 400, "many", "", "1_0", "+5", " 5", "\uff15"),
    ],
    "/sessions since": [
        *("2026-11-02T09:42:00 01:00", "yesterday", "0.5", "2026-11-31", "2026-11-02T09:42:00"),
    ],
    "/sessions until": [
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-45T00:00:00Z"),
    ],
    "/sessions status": ["done"],
    "/sessions taskId": ["../etc", "x" * 65],
    "/sessions repoName": ["a\x00b", "", "x" * 301],
    "/sessions cursor": [
        *("nonsense", "\x00", "ffffffff-received-1", "00000000-received-" + "f" * 40, ""),
    ],
    "/benchmarks cursor": ["00000000-received-1"],
    "/benchmarks sessionId": ["1"],
    "/benchmarks adapter": ["\x1b[0m"],
    "/export.jsonl format": ["csv"],
    "/export.jsonl split": ["test"],
    "/export.jsonl limit": ["0", "1_0", str(2**31)],
    "/export.jsonl manifest": ["perhaps"],
    "/export.jsonl cursor": ["nonsense", "00000000-received-1"],
}
BAD_QUERIES = [(place, value) for place, values in BAD_VALUES.items() for value in values]


@pytest.mark.parametrize(("place", "value"), BAD_QUERIES, ids=lambda text: repr(text[:24]))
def test_a_query_value_that_does_not_fit_is_named(
    client: httpx.Client, place: str, value: str
) -> None:
    path, name = place.split(" ")
    problem = assert_problem(client.get(path, params={name: value}), 422)
    assert name in problem["place"]


MISSPELT = {
    "task=cart": "task: is not known",
    "TaskId=cart": "TaskId: is not known",
    "=": "is not known",
}


@pytest.mark.parametrize(("query", "words"), MISSPELT.items())
@pytest.mark.parametrize("path", ["/sessions", "/export.jsonl", "/benchmarks"])
def test_a_misspelt_filter_is_not_taken_for_none(
    client: httpx.Client, path: str, query: str, words: str
) -> None:
    assert_problem(client.get(f"{path}?{query}"), 422, words)


@pytest.mark.parametrize("id", ["1", "none", "%00", "..", "%2e%2e%2f", "a" * 3_000])
def test_an_id_that_is_none_is_refused(client: httpx.Client, id: str) -> None:
    assert client.get(f"/sessions/{id}").status_code in (404, 422)


def test_what_is_not_there_is_told_so(client: httpx.Client) -> None:
    assert_problem(client.get(f"/sessions/{uuid4()}"), 404)
    assert_problem(client.get(f"/sessions/{uuid4()}/record"), 404)
    assert_problem(client.get("/nowhere"), 404)
    assert_problem(client.get("/tasks/"), 404)
    assert_problem(client.get("/tasks/nowhere"), 404, "task nowhere: does not exist")
    assert_problem(client.get("/tasks/No%20Where"), 422)
    assert_problem(client.get("/docs"), 404)


@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "BREW"])
@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/health", "GET"), ("/tasks", "GET, POST"), ("/sessions/x", "GET, PATCH")],
)
def test_a_method_that_a_path_does_not_take_is_told_which_it_takes(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)

    assert_problem(answer, 405)
    assert answer.headers["allow"] == allowed


def test_benchmarks_stand_beside_the_sessions(client: httpx.Client) -> None:
    session = str(stored(client))
    figure: dict[str, Any] = {
        "adapter": f"shop-{uuid4().hex[:6]}",
        "version": "2026-11-02",
        "metric": "pass_rate",
        "value": 0.62,
        "n": 50,
        "taskId": "cart",
        "sessionId": session,
        "details": {"suite": "held-out", "seeds": [1, 2]},
    }

    made = client.post("/benchmarks", json=figure)
    newer = client.post("/benchmarks", json={**figure, "version": "2026-11-09", "value": 0.7})

    assert made.status_code == 201, made.text
    assert {**made.json(), **figure} == made.json()
    listed = client.get("/benchmarks", params={"adapter": figure["adapter"]}).json()
    assert [row["value"] for row in listed["benchmarks"]] == [0.62, 0.7]
    version = {"adapter": figure["adapter"], "version": "2026-11-09"}
    assert client.get("/benchmarks", params=version).json()["benchmarks"] == [newer.json()]
    one: dict[str, Any] = {"adapter": figure["adapter"], "limit": 1}
    first = client.get("/benchmarks", params=one).json()
    assert first["more"]
    rest = client.get("/benchmarks", params={**one, "cursor": first["cursor"]}).json()
    assert rest["benchmarks"] == [newer.json()]


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("value", "high", 422),
        ("value", None, 422),
        ("n", 0, 422),
        ("n", 2**31, 422),
        ("adapter", "", 422),
        ("metric", "a\u0000b", 422),
        ("details", {"a": ["\u0000"]}, 422),
        ("details", {"\\\u0000": 1}, 422),
        ("metric", "a\u0007b", 422),
        ("taskId", "nobody-made-it", 404),
        ("sessionId", "9b2e6d14-53c7-4f0a-8e41-2d7a90b6c358", 404),
        ("more", 1, 422),
    ],
)
def test_a_figure_that_cannot_be_is_refused(
    client: httpx.Client, field: str, value: Any, status: int
) -> None:
    figure = {"adapter": "a", "version": "1", "metric": "m", "value": 0.5, field: value}

    assert_problem(client.post("/benchmarks", json=figure), status)


def test_health_tells_when_the_database_is_away(api: Api) -> None:
    health = httpx.get(f"{api.url}/health", timeout=LONG).json()
    assert health == {"status": "ok", "version": VERSION, "recordVersion": 3}
    nowhere = RecordStore("postgresql://nobody@127.0.0.1:9/none")
    service = api.service
    former, service.store = service.store, nowhere
    try:
        away = httpx.get(f"{api.url}/health", timeout=LONG)
        tasks = httpx.get(
            f"{api.url}/tasks",
            headers={"Authorization": f"Bearer {api.tokens['all']}"},
            timeout=LONG,
        )
    finally:
        service.store = former
    for answer in (away, tasks):
        assert_problem(answer, 503)
        assert answer.headers["retry-after"]
        assert "postgresql://" not in answer.text
        assert "127.0.0.1" not in answer.text


def test_a_zone_whose_plus_was_not_escaped_is_told_how_it_is(client: httpx.Client) -> None:
    assert_problem(client.get("/sessions?since=2026-11-02T09:42:00+01:00"), 422, "write %2B")


def test_health_tells_when_the_database_is_of_another_revision(record_store: RecordStore) -> None:
    with running(record_store) as api:
        record_store.migrate("0002")
        problem = assert_problem(
            httpx.get(f"{api.url}/health", timeout=LONG), 503, "has revision 0002"
        )
        assert problem["nextMove"] == "Run: debrief database migrate"
        record_store.migrate()
        assert httpx.get(f"{api.url}/health", timeout=LONG).status_code == 200
