"""Labels of people in Langfuse: its annotations come in as labels, and labels given here go out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from debrief.errors import LangfuseError
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient, RequestRefusedError, timestamp
from debrief.langfuse.configs import NAMES, can_name_a_config
from debrief.langfuse.outgoing import LONGEST_COMMENT, OutgoingScore, Redact, safe, score_id
from debrief.langfuse.sending import LACKING
from debrief.outcomes.model import SUCCESS, Label, Labels, Source, success_of
from debrief.outcomes.store import Roll, all_labels, labelled_sessions
from debrief.scoring.dimensions import BY_NAME, OVERALL
from debrief.sessions.readers.values import moment

_PAGE = 100
_LABELLED_IN = "labelled_in"
"""Key of the metadata of an annotation that went out from here: where the label was given."""


def annotations_of(lake: Lake, redact: Redact = str) -> dict[str, list[OutgoingScore]]:
    """Return the labels that people gave here as annotations, by session.

    Labels that came from a server stay there. So does what no config can say: a name that a
    server does not take, words where a number is wanted. Of several by one person the last counts.

    Args:
        lake: with the table of labels and the sessions.
        redact: takes secrets out of a name and a note.
    """
    sessions = labelled_sessions(lake)
    began, roll = {row.id: row.started for row in sessions}, Roll(sessions)
    last: dict[str, OutgoingScore] = {}
    for label in all_labels(lake, ("person", "view", "csv")):
        session = roll.find(label.session_id)
        name = OVERALL if label.name == "score" else label.name
        value = _annotated(name, label)
        if not session or value is None:
            continue
        rater = safe(label.rater or "somebody", redact)
        note = f": {safe(label.detail, redact)}"[:LONGEST_COMMENT] if label.detail else ""
        identity = score_id(session, name, _LABELLED_IN, label.source, label.rater)
        last[identity] = OutgoingScore(
            id=identity,
            session_id=session,
            name=name,
            value=value,
            comment=f"Labelled by {rater}{note}",
            metadata={_LABELLED_IN: label.source, "rater": rater},
            timestamp=timestamp(began[session]),
            source="ANNOTATION",
        )
    found = defaultdict(list)
    for score in last.values():
        found[score.session_id].append(score)
    return found


def _annotated(name: str, label: Label) -> str | float | None:
    """Return a label's value as the config of its name has it; None when that cannot say it."""
    if name == SUCCESS:
        said = success_of(label)
        return None if said is None else float(said)
    if name in BY_NAME and BY_NAME[name].kind == "categorical":
        known = [anchor.label for anchor in BY_NAME[name].anchors]
        return label.value if label.value in known else None
    is_ours = name in NAMES
    try:
        number = float(label.value)
    except ValueError:
        return None
    if not math.isfinite(number) or not can_name_a_config(name) or (label.loose and not is_ours):
        return None
    return number if not is_ours or 0 <= number <= 1 else None


def labels_from_langfuse(client: LangfuseClient) -> Labels:
    """Read all annotations of a server's project as labels.

    Texts and corrections are no labels, and what went out from here does not come back. An
    annotation of a trace is one of its session. A server that is away is reported like an
    annotation that cannot be used: labels from elsewhere count.
    """
    sessions: dict[str, str] = {}
    labels, problems = [], []
    try:
        for item in _annotations(client):
            value = _value_of(item)
            if value is None or _LABELLED_IN in (item.get("metadata") or {}):
                continue
            session = _session_of(client, item, sessions)
            if not session:
                where = f"{client.host} annotation {item.get('id')}"
                problems.append(f"{where}: belongs to no session")
                continue
            labels.append(
                Label(
                    session_id=session,
                    name=str(item.get("name") or ""),
                    value=value,
                    source="langfuse",
                    detail=f"annotation {item.get('id')}",
                    rater=str(item.get("authorUserId") or ""),
                    origin=client.host,
                    observed_at=moment(item.get("timestamp")),
                )
            )
    except LangfuseError as error:
        return Labels(problems=(*problems, f"its annotations were not read: {error}"))
    labels.sort(key=lambda label: (label.session_id, label.name, label.rater, label.detail))
    read: Mapping[Source, frozenset[str]] = {"langfuse": frozenset({client.host})}
    return Labels(labels=tuple(labels), problems=tuple(problems), read=read)


def _annotations(client: LangfuseClient) -> Iterator[Mapping[str, Any]]:
    try:
        yield from client.pages(
            "/v3/scores", source="ANNOTATION", fields="details,subject,annotation", limit=_PAGE
        )
    except RequestRefusedError as error:
        if error.status not in LACKING:
            raise
        yield from client.pages("/v2/scores", source="ANNOTATION", limit=_PAGE)


def _value_of(item: Mapping[str, Any]) -> str | None:
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
    trace = identity if kind == "trace" else subject.get("traceId") or item.get("traceId")
    if trace and trace not in sessions:
        sessions[trace] = _session_of_trace(client, trace)
    return sessions.get(trace or "")


def _session_of_trace(client: LangfuseClient, trace: str) -> str:
    older = f"/traces/{quote(trace, safe='')}"
    for path, query in (("/v2/observations", {"traceId": trace, "limit": "1000"}), (older, {})):
        try:
            answer = client.get(path, **query)
        except RequestRefusedError as error:
            if error.status not in LACKING:
                raise
            continue
        for row in answer.get("data", [answer]) if isinstance(answer, dict) else []:
            if row.get("sessionId"):
                return str(row["sessionId"])
    return ""
