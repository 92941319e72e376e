"""Labels that people gave in Langfuse: its annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from debrief.errors import LangfuseError
from debrief.langfuse.client import LangfuseClient, RequestRefusedError
from debrief.rubrics.labels import Label, Labels

_PAGE = 100
_ANNOTATION = "ANNOTATION"


def labels_from_langfuse(client: LangfuseClient) -> Labels:
    """Read all annotations of a server's project as labels.

    Texts and corrections are no labels. An annotation of a trace is one of its session. A server
    that is away is reported like an annotation that cannot be used: labels from elsewhere count.
    """
    sessions: dict[str, str] = {}
    labels, problems = [], []
    try:
        for item in _annotations(client):
            value = _value(item)
            if value is None:
                continue
            where = f"{client.host} annotation {item.get('id')}"
            session = _session_of(client, item, sessions)
            if not session:
                problems.append(f"{where}: belongs to no session")
                continue
            labels.append(
                Label(
                    session_id=session,
                    name=str(item.get("name") or ""),
                    value=value,
                    rater=str(item.get("authorUserId") or ""),
                    source=where,
                )
            )
    except LangfuseError as error:
        problems.append(f"its annotations were not read: {error}")
    labels.sort(key=lambda label: (label.session_id, label.name, label.rater, label.source))
    return Labels(labels=tuple(labels), problems=tuple(problems))


def _annotations(client: LangfuseClient) -> Iterator[Mapping[str, Any]]:
    try:
        yield from client.pages(
            "/v3/scores", source=_ANNOTATION, fields="details,subject,annotation", limit=_PAGE
        )
    except RequestRefusedError as error:
        if error.status != 404:
            raise
        yield from client.pages("/v2/scores", source=_ANNOTATION, limit=_PAGE)


def _value(item: Mapping[str, Any]) -> str | None:
    kind, value = item.get("dataType"), item.get("value")
    if kind == "CATEGORICAL":
        return str(item.get("stringValue") or value)
    if kind == "BOOLEAN":
        return "true" if value in (True, 1, "True", "true") else "false"
    if kind == "NUMERIC" and isinstance(value, int | float):
        return f"{value:.6g}"
    return None


def _session_of(
    client: LangfuseClient, item: Mapping[str, Any], sessions: dict[str, str]
) -> str | None:
    subject = item.get("subject") or {}
    kind, identity = subject.get("kind"), str(subject.get("id") or "")
    if kind == "session" or item.get("sessionId"):
        return identity or str(item["sessionId"])
    trace = (
        identity if kind == "trace" else str(subject.get("traceId") or item.get("traceId") or "")
    )
    if not trace:
        return None
    if trace not in sessions:
        sessions[trace] = _session_of_trace(client, trace)
    return sessions[trace]


def _session_of_trace(client: LangfuseClient, trace: str) -> str:
    ways: tuple[tuple[str, dict[str, str]], ...] = (
        ("/v2/observations", {"traceId": trace, "limit": "1"}),
        (f"/traces/{quote(trace, safe='')}", {}),
    )
    for path, query in ways:
        try:
            answer = client.get(path, **query)
        except RequestRefusedError as error:
            if error.status != 404:
                raise
            continue
        rows = answer.get("data", [answer]) if isinstance(answer, dict) else []
        for row in rows:
            if row.get("sessionId"):
                return str(row["sessionId"])
    return ""
