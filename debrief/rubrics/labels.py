"""Labels: what people said of sessions, wherever they said it.

A label is a session, the name of what is labelled, and a value. Names are those of judges, of
dimensions (``overall_quality`` included, also called ``score``), and of rubrics: a rubric's key,
with its score name and a slash before it where several score names share it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from msgspec import Struct

from debrief.errors import InputError, LangfuseError
from debrief.langfuse.client import LangfuseClient, RequestRefusedError
from debrief.markdown import front_matter
from debrief.rubrics.linting import read_text

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
            value = _value_of(item)
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
    for path, query in (("/v2/observations", {"traceId": trace, "limit": "1"}), (older, {})):
        try:
            answer = client.get(path, **query)
        except RequestRefusedError as error:
            if error.status != 404:
                raise
            continue
        for row in answer.get("data", [answer]) if isinstance(answer, dict) else []:
            if row.get("sessionId"):
                return str(row["sessionId"])
    return ""


_COLUMNS = ("session_id", "name", "value")
_LINE = re.compile(r"^[ \t]*(?:[-*] +)?([A-Za-z][\w./-]{0,80})[ \t]*:[ \t]+(\S[^\n]{0,40}?)[ \t]*$")


class Label(Struct, frozen=True, kw_only=True):
    """What one person said of one session."""

    session_id: str
    """As given: a session's id, or a plan's, which stands for the latest session of it."""
    name: str
    value: str
    """As given."""
    rater: str = ""
    source: str
    """Where it was read: a file with its line, or a server."""
    loose: bool = False
    """Read out of free text: not a label at all unless its name is known."""


class Labels(Struct, frozen=True, kw_only=True):
    """What was read, and what could not be."""

    labels: tuple[Label, ...] = ()
    problems: tuple[str, ...] = ()
    """Each names its place and its reason."""


def joined(parts: Iterable[Labels]) -> Labels:
    """Return the labels of several sources as one."""
    found = list(parts)
    return Labels(
        labels=tuple(label for part in found for label in part.labels),
        problems=tuple(problem for part in found for problem in part.problems),
    )


def labels_from_csv(path: Path) -> Labels:
    """Read a CSV file with the columns ``session_id,name,value`` and, if wanted, ``rater``.

    A line that is short of something is reported, and costs no other.

    Raises:
        InputError: the file is not there, is no UTF-8, or lacks a column.
    """
    text = read_text(path, "Check DEBRIEF_LABELS.")
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(f"{path}:{reader.line_num}", row) for row in reader]
    except csv.Error as error:
        raise InputError(str(path), f"is no CSV: {error}") from None
    named = {name.strip().casefold(): name for name in reader.fieldnames or () if name}
    if missing := [column for column in _COLUMNS if column not in named]:
        reason = f"has no column {', '.join(missing)}"
        raise InputError(str(path), reason, "Begin it: session_id,name,value")
    labels, problems = [], []
    for place, row in rows:
        given = {column: (row.get(named[column]) or "").strip() for column in _COLUMNS}
        empty = [column for column, value in given.items() if not value]
        if empty:
            if len(empty) < len(given):
                problems.append(f"{place}: has no {' and no '.join(empty)}")
            continue
        rater = (row.get(named["rater"]) or "").strip() if "rater" in named else ""
        session, name, value = given.values()
        labels.append(Label(session_id=session, name=name, value=value, rater=rater, source=place))
    return Labels(labels=tuple(labels), problems=tuple(problems))


def labels_from_feedback(folders: Iterable[Path]) -> Labels:
    """Read every ``human_feedback.md`` of some ``.debrief`` folders, one a plan or a session;
    those that are not there hold nothing.
    """
    paths = (
        path
        for folder in folders
        for place in ("training_data", "sessions")
        for path in sorted((folder / place).glob("*/human_feedback.md"))
    )
    parts = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            parts.append(Labels(problems=(f"{path}: cannot be read: {error}",)))
        else:
            parts.append(parse_feedback(text, path.parent.name, str(path)))
    return joined(parts)


def parse_feedback(text: str, session_id: str, source: str) -> Labels:
    """Read the labels in a person's feedback; free text alone holds none.

    Two ways to write them, and both may be used in one file::

        ---
        rater: ada
        task_completion: complete
        asks-for-proof: 4
        ---
        It did what I asked for, but …

        score: 0.8

    Front matter holds labels by name; ``rater`` and ``session`` (another session's id than the
    folder's name) are not labels. Below it, a line of its own ``name: value`` is one when the
    name is that of a judge, a dimension or a rubric, and is a part of the text otherwise.

    Args:
        text: the file's.
        session_id: of the folder that it lies in.
        source: named with every label.
    """
    text = text.replace("\r\n", "\n")
    head, body = front_matter(text)
    try:
        given = yaml.safe_load(head) if head else {}
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        return Labels(problems=(f"{source}: its front matter is no YAML: {reason}",))
    if not isinstance(given, dict):
        return Labels(problems=(f"{source}: its front matter is no list of names and values",))
    fields = {str(key): value for key, value in given.items()}
    rater = str(fields.pop("rater", ""))
    session = str(fields.pop("session", "") or session_id)
    label = partial(Label, session_id=session, rater=rater)
    labels, problems = [], []
    for name, value in fields.items():
        if isinstance(value, dict | list | None):
            problems.append(f"{source}: {name} has no single value")
        else:
            said = str(value).lower() if isinstance(value, bool) else str(value)
            labels.append(label(name=name, value=said, source=source))
    above = text.removesuffix(body).count("\n")
    labels += [
        label(name=found[1], value=found[2], source=f"{source}:{number}", loose=True)
        for number, line in enumerate(body.split("\n"), above + 1)
        if (found := _LINE.match(line))
    ]
    return Labels(labels=tuple(labels), problems=tuple(problems))
