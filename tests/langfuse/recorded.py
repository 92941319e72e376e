"""What a real server answered to our own requests, by version and mode: the stand-in's shapes.

``recording`` makes the files in ``recorded_answers/``: ids and times are plain in them, and nothing
is there but what the tests sent.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from debrief.langfuse.fetcher import FIELDS, LISTING, WHOLE

FOLDER = Path(__file__).with_name("recorded_answers")
VERSION = "4.16.0"
MODES = ("events_only", "dual", "legacy", "legacy-without-preview")
PATIENCE = 60.0
Json = dict[str, Any]

_ID = re.compile(
    r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b|[0-9a-f]{16}"
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


@cache
def recorded(mode: str) -> dict[str, Json]:
    """Return the answers of the mode of a real server, by what was asked."""
    found: dict[str, Json] = json.loads(file_of(mode).read_text())["answers"]
    return found


def like(example: Json, item: Json) -> Json:
    """Return an item with the keys of an example, and the example's values of what it lacks; a text
    that is not set is empty or null as there."""

    def value_of(key: str) -> Any:
        value = item.get(key, example[key])
        if value in (None, "") and (example[key] is None or isinstance(example[key], str)):
            return None if example[key] is None else ""
        return value

    return {key: value_of(key) for key in example}


def file_of(mode: str) -> Path:
    """Return where a mode's answers are."""
    return FOLDER / f"{VERSION}-{mode}.json"


def opened(address: str) -> httpx.Client:
    """Return a client of a server's API, its keys being in the address."""
    return httpx.Client(base_url=f"{address}/api/public", timeout=120)


def ask(server: httpx.Client, session: str, patience: float = PATIENCE) -> dict[str, Json]:
    """Return what a server answers to every kind of request that we make.

    Args:
        server: its API, with keys.
        session: an id; one observation of it is there.
        patience: seconds that the server has to show it.
    """
    return {name: _told(answer) for name, answer in _answers(server, session, patience)}


def _answers(
    server: httpx.Client, session: str, patience: float
) -> Iterator[tuple[str, httpx.Response]]:
    of_session = {"sessionId": session}
    seen = {"fields": FIELDS, "expandMetadata": WHOLE}
    observations = "/v2/observations"

    def get(path: str, **query: str | int) -> httpx.Response:
        return server.get(path, params=query)

    def until_shown(path: str, **query: str) -> httpx.Response:
        end = time.monotonic() + patience
        while True:
            answer = get(path, **query)
            if (answer.is_success and answer.json()["data"]) or time.monotonic() > end:
                return answer
            time.sleep(0.5)

    yield "traces", (traces := get("/traces", **of_session, limit=100))
    trace = traces.json()["data"][0]["id"] if traces.is_success else "none"
    yield "observations", get(observations, **of_session, **seen, limit=1_000)
    yield "observations, listed", get(observations, **of_session, fields=LISTING, limit=1)
    yield "observations of nobody", get(observations, sessionId="nobody", fields=LISTING)
    yield "observations, too many", get(observations, limit=5_000)
    yield "trace", get(f"/traces/{trace}")
    yield "trace of nobody", get(f"/traces/{uuid4().hex}")
    wrong = httpx.BasicAuth("pk-lf-nobody", "sk-lf-nothing")
    yield "a wrong key", server.get(observations, params=of_session, auth=wrong)
    name = f"debrief {uuid4().hex[:16]}"
    config = {"name": name, "dataType": "NUMERIC", "minValue": 0, "maxValue": 1}
    yield "config", (made := server.post("/score-configs", json=config))
    bare = {"name": "debrief", "dataType": "CATEGORICAL"}
    yield "config without categories", server.post("/score-configs", json=bare)
    long = {**config, "name": "x" * 36}
    yield "config with a long name", server.post("/score-configs", json=long)
    yield "configs", get("/score-configs", limit=1)
    id = str(uuid4())
    score = {"id": id, **of_session, "name": name, "value": 0.5, "dataType": "NUMERIC"}
    score |= {"configId": made.json()["id"], "comment": "good", "metadata": {"scorer": "me"}}
    yield "scores as a list", server.post("/scores", json=[score])
    yield "score", server.post("/scores", json=score)
    aimless = {key: value for key, value in score.items() if key != "sessionId"}
    yield "score of nothing", server.post("/scores", json=aimless)
    yield "score in words", server.post("/scores", json={**score, "value": "good"})
    yield "scores by id", until_shown("/v3/scores", id=id, fields="details")
    whole = {"fields": "details,subject,annotation"}
    yield "scores of a session", get("/v3/scores", **of_session, **whole, limit=100)
    yield "older scores by id", get("/v2/scores", scoreIds=id, limit=100)
    yield (
        "config archived",
        server.patch(f"/score-configs/{made.json()['id']}", json={"isArchived": True}),
    )
    yield "deletion", server.delete(f"/scores/{uuid4()}")


def _told(answer: httpx.Response) -> Json:
    text = _TIME.sub("2026-01-01T00:00:00.000Z", answer.text)
    ids: dict[str, str] = {}
    text = _ID.sub(lambda found: ids.setdefault(found[0], f"id-{len(ids) + 1}"), text)
    return {"status": answer.status_code, "body": json.loads(text)}


def shape(value: Any) -> Any:
    """Return what kind of value it is, an object's by key, a list's by its first item.

    >>> shape({"id": "id-1", "tags": [], "value": 0.5, "input": None})
    {'id': 'text', 'input': None, 'tags': [], 'value': 'number'}
    """
    if isinstance(value, dict):
        return {key: shape(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    kinds: dict[type, str] = {str: "text", bool: "yes or no", int: "number", float: "number"}
    return kinds.get(type(value))


def shapes(answers: dict[str, Json]) -> dict[str, Any]:
    """Return the shape of each answer with its status; what an error says is part of it."""
    return {
        name: (one["status"], shape(one["body"]), one["body"].get("message"))
        for name, one in answers.items()
    }
