"""Store labels that people give on pages, and give them out as a file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from debrief.errors import InputError, without_controls
from debrief.keys import slugify
from debrief.lake import Lake
from debrief.langfuse.outgoing import Redact
from debrief.outcomes.store import LABELS, ORDER, Label, all_labels, only_label_writer

LONGEST_NAME, LONGEST_NOTE = 80, 4_000
COLUMNS = ("session_id", "name", "value", "rater", "note", "labelled_at", "blind")
_FORMULA = re.compile(r"^'*[=+\-@\t\r]")
"""How a cell begins that a spreadsheet would compute; ``labels_from_csv`` takes the quote away."""


def label_of(
    session_id: str,
    name: str,
    value: str,
    note: str,
    rater: str,
    redact: Redact = str,
    *,
    blind: bool = False,
) -> Label:
    """Return what a person says of a session now; an empty value takes back.

    Args:
        session_id: of the session.
        name: ``success``, or any other.
        value: as typed.
        note: why; may be empty.
        rater: who.
        redact: takes out secrets that were typed.
        blind: no score, verdict or review of the session was in sight.

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
        blind=blind,
    )


def give_label(lake: Lake, home: Path, label: Label) -> None:
    """Keep a label; that of the same person, session and name goes.

    One that was given blind stays beside a later one that was not: who changes their mind at the
    sight of a review says something of the session, and the first word of the review. A label
    without a value takes back all of this person, session and name.

    Args:
        lake: with the table of labels.
        home: where this machine's writers wait for each other.
        label: of ``label_of``.

    Raises:
        LakeError: another writer does not end.
    """
    partition = f"{label.source}/{slugify(label.rater)}"
    with only_label_writer(lake, home):
        rows = [
            row
            for row in lake.read(LABELS, partition, Label)
            if (row.session_id, row.name) != (label.session_id, label.name)
            or (row.blind and label.value and not label.blind)
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
        blind = "yes" if label.blind else ""
        row = (label.session_id, label.name, label.value, label.rater, label.detail, when, blind)
        writer.writerow([_FORMULA.sub(r"'\g<0>", cell) for cell in row])
    return text.getvalue()
