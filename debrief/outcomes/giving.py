"""Labels that people give while they read: kept, replaced, taken back, and exported."""

from __future__ import annotations

import csv
import getpass
import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from debrief.errors import InputError, LakeError, without_controls
from debrief.files import locked
from debrief.keys import slugify
from debrief.lake import Lake
from debrief.langfuse.outgoing import Redact
from debrief.outcomes.model import Label
from debrief.outcomes.store import LABELS, ORDER, all_labels
from debrief.settings import Settings

LONGEST_NAME, LONGEST_NOTE = 80, 4_000
COLUMNS = ("session_id", "name", "value", "rater", "note", "labelled_at")
_WAIT = 30.0
"""Seconds for another writer on this machine to finish."""


def rater_of(settings: Settings) -> str:
    """Return who labels: as set, else the system's user."""
    try:
        return settings.rater.strip() or getpass.getuser()
    except (KeyError, OSError):  # a container's user that has no name
        return "somebody"


def label_of(
    session_id: str, name: str, value: str, note: str, rater: str, redact: Redact = str
) -> Label:
    """Return what a person says of a session now; an empty value takes back.

    Args:
        session_id: of the session.
        name: ``success``, a judge, dimension or rubric, or any other.
        value: as typed.
        note: why; may be empty.
        rater: who.
        redact: takes out secrets that were typed.

    Raises:
        InputError: there is no name, or something is longer than anybody types.
    """
    name, value = (" ".join(without_controls(text).split()) for text in (name, value))
    note = without_controls(note.replace("\r\n", "\n")).strip()
    if not name:
        raise InputError("the label", "has no name", "Write one, such as flaky-test.")
    for what, text, most in (
        ("name", name, LONGEST_NAME), ("value", value, LONGEST_NAME), ("note", note, LONGEST_NOTE)
    ):  # fmt: skip
        if len(text) > most:
            raise InputError(f"the label's {what}", f"has more than {most:,} characters")
    name, value, note = map(redact, (name, value, note))
    return Label(
        session_id=session_id,
        name=name,
        value=value,
        source="view",
        detail=note,
        rater=rater,
        observed_at=datetime.now(UTC),
    )


def give_label(lake: Lake, home: Path, label: Label) -> None:
    """Keep a label; that of the same person, session and name goes. One without a value goes too.

    Args:
        lake: with the table of labels.
        home: where this machine's writers wait for each other.
        label: of ``label_of``.

    Raises:
        LakeError: another writer does not end.
    """
    partition = f"{label.source}/{slugify(label.rater)}"
    with locked(home / "labels.lock", _WAIT) as is_ours:
        if not is_ours:
            raise LakeError(lake.url, "its labels are being written by another process")
        rows = [
            row
            for row in lake.read(LABELS, partition, Label)
            if (row.session_id, row.name) != (label.session_id, label.name)
        ]
        if label.value:
            rows.append(label)
        lake.write(LABELS, partition, sorted(rows, key=ORDER), Label)


def given_labels(lake: Lake) -> Iterator[Label]:
    """Yield the labels that were given on pages, by person and time."""
    return all_labels(lake, ("view",))


def labels_csv(labels: Iterable[Label]) -> str:
    """Return labels as a CSV file that ``DEBRIEF_LABELS`` takes in."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for label in labels:
        when = label.observed_at.isoformat() if label.observed_at else ""
        row = (label.session_id, label.name, label.value, label.rater, label.detail, when)
        writer.writerow(row)
    return text.getvalue()
