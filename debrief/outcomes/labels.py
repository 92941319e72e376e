"""Read people's labels from CSV files, from feedback beside plans, and Langfuse annotations."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from debrief.errors import InputError, LangfuseError
from debrief.fields import FieldsError, fields_of
from debrief.files import read_text
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient, timestamp
from debrief.langfuse.errors import LACKING, RequestRefusedError
from debrief.langfuse.outgoing import (
    LONGEST_COMMENT,
    NAMES,
    OutgoingScore,
    Redact,
    can_name_a_config,
    safe,
    score_id,
)
from debrief.langfuse.sending import stored_scores
from debrief.markdown import front_matter
from debrief.outcomes.store import (
    SUCCESS,
    UNDECIDED,
    YES,
    Label,
    Labels,
    Roll,
    Source,
    all_labels,
    joined,
    labelled_sessions,
    success_of,
)
from debrief.scoring.dimensions import BY_NAME, OVERALL
from debrief.sessions.readers.values import moment

if TYPE_CHECKING:
    from langfuse.api.scores.types.score_v3 import ScoreV3

_COLUMNS = ("session_id", "name", "value")
_QUOTED_FORMULA = re.compile(r"^'(?='*[=+\-@\t\r])")
_LINE = re.compile(r"^[ \t]*(?:[-*] +)?([A-Za-z][\w./-]{0,80})[ \t]*:[ \t]+(\S[^\n]{0,40}?)[ \t]*$")


def labels_from_csv(path: Path) -> Labels:
    """Read a CSV file with the columns ``session_id,name,value`` and, if wanted, ``rater``; or
    ``session_id,success``. Either may have a ``task``, which several sessions were on, a
    ``family`` and a ``kind``, a ``note``, the time it was ``labelled_at``, and whether it was given
    ``blind``, without a score in sight.

    A line that is short of something is reported, and costs no other.

    Raises:
        InputError: the file is not there, is no UTF-8, or lacks a column.
    """
    text, path = read_text(path, "Check DEBRIEF_LABELS."), path.absolute()
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(str(path), f"is no CSV: {error}") from None
    named = {name.strip().casefold(): name for name in reader.fieldnames or () if name}
    columns = ("session_id", SUCCESS) if SUCCESS in named and "name" not in named else _COLUMNS
    if missing := [column for column in columns if column not in named]:
        reason = f"has no column {', '.join(missing)}"
        move = "Begin it: session_id,name,value (or: session_id,success)"
        raise InputError(str(path), reason, move)
    labels, problems = [], []
    for line, row in rows:
        given = {
            name: _QUOTED_FORMULA.sub("", (row.get(column) or "").strip())
            for name, column in named.items()
        }
        empty = [column for column in columns if not given[column]]
        if empty:
            if len(empty) < len(columns):
                problems.append(f"{path}:{line}: has no {' and no '.join(empty)}")
            continue
        label = Label(
            session_id=given["session_id"],
            name=given["name"] if columns is _COLUMNS else SUCCESS,
            value=given[columns[-1]],
            source="csv",
            detail=given.get("note", ""),
            observed_at=moment(given.get("labelled_at")),
            rater=given.get("rater", ""),
            origin=str(path),
            line=line,
            task=given.get("task", ""),
            family=given.get("family", ""),
            kind=given.get("kind", ""),
            blind=given.get("blind", "").casefold() in ("1", *YES),
        )
        is_known = success_of(label) is not None or label.value.casefold() in UNDECIDED
        if label.name == SUCCESS and not is_known:
            reason = f"success is {label.value!r}, which is neither yes nor no. Write 1 or 0."
            problems.append(f"{path}:{line}: {reason}")
        else:
            labels.append(label)
    read: Mapping[Source, frozenset[str]] = {"csv": frozenset({str(path)})}
    return Labels(labels=tuple(labels), problems=tuple(problems), read=read)


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
            parts.append(Labels(read={"person": frozenset({str(path)})}))
    return joined(parts)


def parse_feedback(text: str, session_id: str, origin: str) -> Labels:
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
        origin: named with every label.
    """
    text = text.replace("\r\n", "\n")
    head, body = front_matter(text)
    try:
        fields = fields_of(head) if head else {}
    except FieldsError as error:
        reason = f"its front matter cannot be read: {error.reason}"
        return Labels(problems=(f"{origin}:{error.line + 1}: {reason}",))
    rater = str(fields.pop("rater", "") or "")
    session = str(fields.pop("session", "") or session_id)
    known: dict[str, Any] = {"session_id": session, "rater": rater, "origin": origin}
    label: Callable[..., Label] = partial(Label, source="person", **known)
    labels, problems = [], []
    for name, value in fields.items():
        if isinstance(value, dict | list | None):
            problems.append(f"{origin}: {name} has no single value")
        else:
            said = str(value).lower() if isinstance(value, bool) else str(value)
            labels.append(label(name=name, value=said))
    above = text.removesuffix(body).count("\n")
    labels += [
        label(name=found[1], value=found[2], line=number, loose=True)
        for number, line in enumerate(body.split("\n"), above + 1)
        if (found := _LINE.match(line))
    ]
    return Labels(labels=tuple(labels), problems=tuple(problems))


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
        session, name = roll.find(label.session_id), _name_of(label)
        value = _annotated(name, label)
        if not session or value is None:
            continue
        rater = safe(label.rater or "somebody", redact)
        note = f": {safe(label.detail, redact)}"[:LONGEST_COMMENT] if label.detail else ""
        identity = annotation_id(session, label)
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


def annotation_id(session_id: str, label: Label) -> str:
    """Return the id that a label has on a server as an annotation of a session."""
    return score_id(session_id, _name_of(label), _LABELLED_IN, label.source, label.rater)


def _name_of(label: Label) -> str:
    return OVERALL if label.name == "score" else label.name


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
            if value is None or _LABELLED_IN in (item.metadata or {}):
                continue
            session = _session_of(client, item, sessions)
            if not session:
                where = f"{client.host} annotation {item.id}"
                problems.append(f"{where}: belongs to no session")
                continue
            labels.append(
                Label(
                    session_id=session,
                    name=item.name,
                    value=value,
                    source="langfuse",
                    detail=f"annotation {item.id}",
                    rater=item.author_user_id or "",
                    origin=client.host,
                    observed_at=item.timestamp,
                )
            )
    except LangfuseError as error:
        return Labels(problems=(*problems, f"its annotations were not read: {error}"))
    labels.sort(key=lambda label: (label.session_id, label.name, label.rater, label.detail))
    read: Mapping[Source, frozenset[str]] = {"langfuse": frozenset({client.host})}
    return Labels(labels=tuple(labels), problems=tuple(problems), read=read)


def _annotations(client: LangfuseClient) -> Iterator[ScoreV3]:
    source = {"source": "ANNOTATION"}
    return stored_scores(client, source, **source, fields="details,subject,annotation")


def _value_of(item: ScoreV3) -> str | None:
    match item.data_type:
        case "CATEGORICAL":
            return str(item.value)
        case "BOOLEAN":
            return "true" if item.value else "false"
        case "NUMERIC":
            return f"{item.value:.6g}"
    return None


def _session_of(client: LangfuseClient, item: ScoreV3, sessions: dict[str, str]) -> str | None:
    subject = item.subject
    if subject is None:
        return None
    if subject.kind == "session":
        return subject.id
    trace = subject.id if subject.kind == "trace" else getattr(subject, "trace_id", None)
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
