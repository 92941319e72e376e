"""A Langfuse server on loopback, with the manners of the real ones.

It keeps scores, configs and observations in memory, and takes its time to show what it took. It
drops in silence what a config forbids, and answers like a server of the mode that it is given: in
the shapes, and with the very errors, that were recorded of one (``recorded``).
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

from tests import http_server
from tests.http_server import LoopbackServer, Reply
from tests.langfuse.recorded import like, recorded

Mode = Literal["events_only", "dual", "legacy", "old"]
Wire = Literal["object", "list"]
Json = dict[str, Any]

API = "/api/public"
ON_CLOUD = "The observations v2 API is only available on Langfuse Cloud."
"""What versions 3.143 to 3.158 say, by their source."""
TAKEN = "2026-10-05T12:00:00.000Z"
"""When every score was."""
TARGETS = ("sessionId", "traceId", "datasetRunId")


@dataclass
class Request:
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


@dataclass
class Trouble:
    """An answer that the server gives instead of the right one."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    """Of the requests that it hits; empty for all."""


class LangfuseServer:
    """A server; use it as a context.

    Args:
        mode: ``events_only``, ``dual`` and ``legacy`` are version 4, ``old`` is version 3, which
            answers as version 4 without the preview of its new way does, but for observations.
        wire: whether scores are taken as an object (up to 4.16) or as a list (newer).
        looks: how often a score is asked for before it is shown.
    """

    public_key = "pk-test"
    secret_key = "sk-test"

    def __init__(self, mode: Mode = "events_only", wire: Wire = "object", looks: int = 0) -> None:
        self.mode, self.wire, self.looks = mode, wire, looks
        self._recorded = recorded("legacy-without-preview" if mode == "old" else mode)
        self.version = "3.150.0" if mode == "old" else "4.16.0"
        """Empty for a server that does not tell."""
        self.moved: set[str] = set()
        """Traces from before a move to version 4: no observation shows them."""
        self.cut_short: list[int] = []
        """Bytes after which the server dies in the next answers."""
        self.page = 1_000
        """The largest page of observations that it gives, whatever the limit asks."""
        self.requests: list[Request] = []
        self.trouble: list[Trouble] = []
        self.drops: set[str] = set()
        """Names of scores that are taken and never stored."""
        self.most_at_once = 1_000
        """Observations that it can gather in time; asked for more, it answers 504."""
        self.page_of_text = ""
        """Given instead of every answer, as another program at the address would."""
        self.scores: dict[str, Json] = {}
        self.deletions: list[str] = []
        """Ids of scores whose deletion waits; see ``two_minutes_pass``."""
        self.configs: list[Json] = []
        self.observations: list[Json] = []
        self.traces: list[Json] = []
        self._asked: dict[str, int] = {}
        self._lock = threading.RLock()
        self._http = LoopbackServer(self._answer)

    @property
    def host(self) -> str:
        return self._http.url

    def __enter__(self) -> LangfuseServer:
        self._http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.__exit__()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let no request be answered meanwhile."""
        with self._lock:
            yield

    def two_minutes_pass(self, times: int = 1) -> None:
        """Carry out a deletion each time, whatever was written under its id meanwhile."""
        for identity in self.deletions[:times]:
            self.scores.pop(identity, None)
        del self.deletions[:times]

    def sent(self, method: str, path: str) -> list[Request]:
        """Return the requests of a method to a path below the API."""
        return [r for r in self.requests if r.method == method and r.path == f"{API}{path}"]

    def add_config(self, **config: Any) -> Json:
        made = {"id": str(uuid4()), "projectId": "p1", "isArchived": False}
        at = f"2026-10-05T12:{len(self.configs):02}:00.000Z"
        made |= {"createdAt": at, "minValue": None, "maxValue": None}
        _, example = self._as_recorded("config")
        made = like(example, {**made, "description": None, "categories": None, **config})
        self.configs.append(made)
        return made

    def _answer(self, received: http_server.Request) -> Reply:
        split = urlsplit(received.path)
        body = json.loads(received.body) if received.body else None
        request = Request(received.method, split.path, dict(parse_qsl(split.query)), body)
        status, headers, told = self.answer(request, received.headers.get("authorization", ""))
        data = (self.page_of_text or json.dumps(told)).encode()
        headers = {**headers, "content-type": "application/json"}
        if self.cut_short and "health" not in split.path:
            headers["Content-Length"] = str(len(data))
            data = data[: self.cut_short.pop(0)]
        return Reply(status, data, headers)

    def answer(self, request: Request, authorization: str) -> tuple[int, Mapping[str, str], Any]:
        with self._lock:
            if request.path == f"{API}/health":
                return 200, {}, {"status": "OK", "version": self.version}
            self.requests.append(request)
            hit = next((t for t in self.trouble if t.method in ("", request.method)), None)
            if hit is not None:
                self.trouble.remove(hit)
                return hit.status, hit.headers, {"message": "not now"}
            keys = base64.b64encode(f"{self.public_key}:{self.secret_key}".encode()).decode()
            if authorization != f"Basic {keys}":
                status, body = self._as_recorded("a wrong key")
                return status, {}, body
            status, body = self._route(request)
            return status, {}, body

    def _route(self, request: Request) -> tuple[int, Any]:
        path = request.path.removeprefix(API)
        match (request.method, path.strip("/").split("/")):
            case ("GET", ["score-configs"]):
                return 200, _paged(self.configs, request.query)
            case ("POST", ["score-configs"]):
                return self._new_config(request.body)
            case ("POST", ["scores"]):
                return self._take(request.body)
            case ("PATCH", ["score-configs", identity]):
                (config,) = [config for config in self.configs if config["id"] == identity]
                config.update(request.body)
                return 200, config
            case ("DELETE", ["scores", identity]):
                self.deletions.append(identity)
                return 202, {"message": "Score deletion queued successfully"}
            case ("GET", ["v3", "scores"]) if self.mode != "old":
                limit = int(request.query.get("limit", 50))
                is_whole = "subject" in request.query.get("fields", "")
                wanted = "scores of a session" if is_whole else "scores by id"
                example = self._example(wanted)
                shown = [like(example, item) for item in self._shown(request.query, "id")]
                return 200, {"data": shown, "meta": {"limit": limit}}
            case ("GET", ["v2", "scores"]) if self.mode != "events_only":
                example = self._example("older scores by id")
                found = self._shown(request.query, "scoreIds")
                shown = [like(example, _as_v2(item)) for item in found]
                return 200, _paged(shown, request.query)
            case ("GET", ["v2", "observations"]) if self.mode != "old":
                return self._observed(request.query)
            case ("GET", ["v2", "observations"]) if self.mode == "old":
                return 501, {"message": ON_CLOUD, "error": "NotImplementedError"}
            case ("GET", ["traces"]) if self.mode != "events_only":
                session = request.query.get("sessionId")
                own = [t for t in self.traces if session in (None, t["sessionId"])]
                user = request.query.get("userId")
                own = [t for t in own if user in (None, t.get("userId"))]
                own = [t for t in own if _within(t["timestamp"], request.query)]
                return 200, _paged([self._with_ids(trace) for trace in own], request.query)
            case ("GET", ["traces", identity]) if self.mode != "events_only":
                return self._trace(identity)
            case _ if self.mode == "old":
                return 404, {"message": "Not found"}
            case _:
                return self._as_recorded("traces")

    def _as_recorded(self, asked: str) -> tuple[int, Json]:
        answer = self._recorded[asked]
        return answer["status"], answer["body"]

    def _example(self, asked: str) -> Json:
        example: Json = self._recorded[asked]["body"]["data"][0]
        return example

    def _new_config(self, body: Json) -> tuple[int, Json]:
        if body.get("dataType") == "CATEGORICAL" and not body.get("categories"):
            return self._as_recorded("config without categories")
        if len(body["name"]) > 35:
            return self._as_recorded("config with a long name")
        return 200, self.add_config(**body)

    def _take(self, body: Any) -> tuple[int, Any]:
        if self.wire == "object":
            wrong = "scores as a list" if isinstance(body, list) else _refusal(body)
            return self._as_recorded(wrong) if wrong else (200, {"id": self._keep(body)})
        if not isinstance(body, list):
            text = "Invalid input: expected array, received object"
            error = {"expected": "array", "code": "invalid_type", "path": [], "message": text}
            return 400, {"message": "Invalid request data", "error": [error]}
        errors = [{"message": wrong} for item in body if (wrong := _refusal(item))]
        for item in body:
            if not _refusal(item):
                self._keep(item)
        if not errors:
            return 202, {"message": "Accepted"}
        taken = len(body) - len(errors)
        return 207, {"accepted": taken, "rejected": len(errors), "errors": errors}

    def _keep(self, body: Json) -> str:
        """Keep a score, or drop it without a word, as the worker behind the API does."""
        identity = body.get("id") or str(uuid4())
        if body["name"] in self.drops:
            return identity
        kept = {**body, "id": identity}
        if config_id := body.get("configId"):
            config = next((c for c in self.configs if c["id"] == config_id), None)
            if config is None or not _allowed(config, body["value"]):
                return identity
            kept["name"] = config["name"]
        elif body.get("source") == "ANNOTATION":
            return identity
        first = self.scores.get(identity, {})
        if first:  # what it was written on, it stays on
            kept = {key: value for key, value in kept.items() if key not in TARGETS}
            kept |= {key: value for key, value in first.items() if key in TARGETS}
        kept["timestamp"] = TAKEN
        kept["environment"] = (first or body).get("environment", "default")
        kept["metadata"] = {**first.get("metadata", {}), **body.get("metadata", {})}
        self.scores[identity] = kept
        self._asked[identity] = 0
        return identity

    def _shown(self, query: Mapping[str, str], by: str) -> list[Json]:
        wanted = {
            key: query[key].split(",")
            for key in (by, "sessionId", "traceId", "name", "source")
            if key in query
        }
        shown = []
        for identity, score in self.scores.items():
            kind = "session" if "sessionId" in score else "trace"
            subject = {"kind": kind, "id": score[f"{kind}Id"]}
            always = {"projectId": "p1", "source": "API"}
            item = {**always, **score, by: identity, "subject": subject}
            if all(item.get(key) in known for key, known in wanted.items()):
                self._asked[identity] += 1
                if self._asked[identity] > self.looks:
                    shown.append(item)
        return shown

    def _observed(self, query: Mapping[str, str]) -> tuple[int, Json]:
        limit = int(query.get("limit", 50))
        if limit > 1_000:
            return self._as_recorded("observations, too many")
        if limit > self.most_at_once:
            return 504, {"message": "Gateway timeout"}
        conditions = [
            *json.loads(query.get("filter", "[]")),
            *[_is_one_of(name, query[name]) for name in _FILTERS if name in query],
        ]
        rows = [
            row
            for row in self.observations
            if query.get("fromStartTime", "") <= row["startTime"] < query.get("toStartTime", "9")
            and all(_holds(condition, row) for condition in conditions)
            and self.mode != "legacy"
            and row["traceId"] not in self.moved
        ]
        rows.sort(key=lambda row: (row["startTime"], sha256(row["id"].encode()).digest()))
        rows.reverse()
        start = int(base64.b64decode(query["cursor"])) if "cursor" in query else 0
        end = start + min(limit, self.page)
        cursor = {"cursor": base64.b64encode(str(end).encode()).decode()}
        whole = query.get("expandMetadata", "").split(",")
        asked = "observations" if "io" in query.get("fields", "") else "observations, listed"
        shown = [like(self._example(asked), _shortened(row, whole)) for row in rows[start:end]]
        return 200, {"data": shown, "meta": cursor if end < len(rows) else {}}

    def _with_ids(self, trace: Json) -> Json:
        rows = self.observations
        ids = [row["id"] for row in rows if row["traceId"] == trace["id"]]
        return like(self._example("traces"), {**trace, "observations": ids})

    def _trace(self, identity: str) -> tuple[int, Json]:
        for trace in self.traces:
            if trace["id"] == identity:
                _, whole = self._as_recorded("trace")
                (example,) = whole["observations"]
                own = [row for row in self.observations if row["traceId"] == identity]
                return 200, like(
                    whole, {**trace, "observations": [like(example, row) for row in own]}
                )
        return self._as_recorded("trace of nobody")


_FILTERS = ("sessionId", "traceId", "userId")


def _is_one_of(column: str, value: str) -> Json:
    return {"column": column, "operator": "any of", "value": [value]}


def _holds(condition: Json, row: Json) -> bool:
    is_one = (row.get(condition["column"]) or "") in condition["value"]
    return bool(is_one == (condition["operator"] == "any of"))


def _shortened(row: Json, whole: list[str]) -> Json:
    """Cut the metadata that was not asked for whole, which starts at 200 characters."""
    metadata = row.get("metadata")
    if not isinstance(metadata, dict):
        return row
    texts = {key: v if isinstance(v, str) else json.dumps(v) for key, v in metadata.items()}
    return {**row, "metadata": {k: v if k in whole else v[:200] for k, v in texts.items()}}


def _within(timestamp: str, query: Mapping[str, str]) -> bool:
    return query.get("fromTimestamp", "") <= timestamp < query.get("toTimestamp", "9")


def _paged(rows: list[Json], query: Mapping[str, str]) -> Json:
    page, limit = int(query.get("page", 1)), int(query.get("limit", 50))
    total = {"totalItems": len(rows), "totalPages": -(-len(rows) // limit)}
    data = rows[(page - 1) * limit : page * limit]
    return {"data": data, "meta": {"page": page, "limit": limit, **total}}


def _refusal(body: Json) -> str:
    """Return under which name the refusal of a score was recorded; empty for none."""
    if sum(name in body for name in TARGETS) != 1:
        return "score of nothing"
    is_text = body.get("dataType") == "NUMERIC" and isinstance(body["value"], str)
    return "score in words" if is_text else ""


def _allowed(config: Json, value: str | float) -> bool:
    if config["dataType"] == "CATEGORICAL":
        return value in [category["label"] for category in config["categories"]]
    low, high = config["minValue"], config["maxValue"]
    return (
        not isinstance(value, str)
        and (low is None or value >= low)
        and (high is None or value <= high)
    )


def _as_v2(item: Json) -> Json:
    text = item["value"] if isinstance(item["value"], str) else None
    return {**item, "value": 0 if text else item["value"], "stringValue": text}
