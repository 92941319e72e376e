"""Labels of people in files: CSV, and the feedback beside a plan."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from debrief.errors import InputError
from debrief.files import read_text
from debrief.markdown import front_matter
from debrief.outcomes.model import SUCCESS, UNSURE, Label, Labels, Source, joined, success_of
from debrief.sessions.readers.values import moment

_COLUMNS = ("session_id", "name", "value")
_LINE = re.compile(r"^[ \t]*(?:[-*] +)?([A-Za-z][\w./-]{0,80})[ \t]*:[ \t]+(\S[^\n]{0,40}?)[ \t]*$")


def labels_from_csv(path: Path) -> Labels:
    """Read a CSV file with the columns ``session_id,name,value`` and, if wanted, ``rater``; or
    ``session_id,success``. Either may have a ``task``, which several sessions were on, a
    ``family`` and a ``kind``, a ``note`` and the time it was ``labelled_at``.

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
        given = {name: (row.get(column) or "").strip() for name, column in named.items()}
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
        )
        unsure = label.value.casefold() == UNSURE
        if label.name == SUCCESS and success_of(label) is None and not unsure:
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
        given = yaml.safe_load(head) if head else {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        return Labels(problems=(f"{origin}: its front matter is no YAML: {reason}",))
    if not isinstance(given, dict):
        return Labels(problems=(f"{origin}: its front matter is no list of names and values",))
    fields = {str(key): value for key, value in given.items()}
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
