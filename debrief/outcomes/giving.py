"""Store labels that people give on pages, and propose which session to label next."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from debrief.errors import InputError, without_controls
from debrief.judging.model import JudgeEvaluation
from debrief.keys import slugify
from debrief.lake import Lake
from debrief.langfuse.outgoing import Redact
from debrief.outcomes.store import LABELS, ORDER, Label, all_labels, only_label_writer
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict, basis_text

LONGEST_NAME, LONGEST_NOTE = 80, 4_000
COLUMNS = ("session_id", "name", "value", "rater", "note", "labelled_at")
_FORMULA = re.compile(r"^'*[=+\-@\t\r]")
"""How a cell begins that a spreadsheet would compute; ``labels_from_csv`` takes the quote away."""


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
    with only_label_writer(lake, home):
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
        writer.writerow([_FORMULA.sub(r"'\g<0>", cell) for cell in row])
    return text.getvalue()


_NOTHING_TELLS, _UNCHECKED = 0.5, 0.25
"""What a label is worth where nothing decides, and where nothing checked the work."""
_APART = 0.25
"""From where on a difference between scores is worth a word."""


class Worth(Struct, frozen=True):
    """How much a label of a session would teach, and why."""

    value: float
    """The sum of what the reasons are worth, each from 0 to 1; 0 for a session without scores."""
    why: tuple[str, ...] = ()


def worth_of(scores: Sequence[SessionScores], judgements: Sequence[JudgeEvaluation]) -> Worth:
    """Return how much a label of a session would teach.

    Args:
        scores: of the session, one a scorer; the one that speaks for it first.
        judgements: of the session, by all judges.
    """
    parts = list(_parts([row for row in scores if row.status == "ok"], judgements))
    return Worth(sum(value for value, _ in parts), tuple(why for _, why in parts if why))


def _parts(
    scores: Sequence[SessionScores], judgements: Sequence[JudgeEvaluation]
) -> Iterator[tuple[float, str]]:
    if not scores:
        return
    if scores[0].verdict is not None:
        yield _of_verdict(scores[0].verdict)
    yield _differ("Judges", {f"{row.judge} ({row.model})": row.score for row in judgements})
    yield _differ("Scorers", {row.model: row.overall_quality for row in scores})
    for row in scores:
        if row.uncertain:
            agreement = f"{row.chunk_agreement or 0.0:.2f}"
            yield 1.0, f"Its parts were scored differently (agreement {agreement})."


def _of_verdict(verdict: SessionVerdict) -> tuple[float, str]:
    if not verdict.is_known:
        return _NOTHING_TELLS, f"Nothing tells whether it was done. {basis_text(verdict)}"
    if verdict.verdict == "complete_unverified":
        return _UNCHECKED, f"It looks done, and nothing shows it. {basis_text(verdict)}"
    return 0.0, ""


def _differ(who: str, marks: dict[str, float | None]) -> tuple[float, str]:
    known = sorted((mark, name) for name, mark in marks.items() if mark is not None)
    if len(known) < 2:
        return 0.0, ""
    (least, low), (most, high) = known[0], known[-1]
    shown = f"{who} differ: {high} says {most:.2f}, {low} {least:.2f}."
    return most - least, shown if most - least >= _APART else ""
