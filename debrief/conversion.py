"""Convert a lake of an earlier version, once: verdicts in today's words, rows by rules taken out.

A lake says in the file ``form`` which version it has; one that does not is converted when it is
opened. What a model was paid for is kept and gated; what rules made is not, as no rule gives a
verdict. A conversion that is cut short goes on at the next opening.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct

from debrief.errors import LakeError
from debrief.friction.schema import EFFECTS, LineEffect
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.outcomes.store import LABELS
from debrief.rubrics.model import (
    CANDIDATES,
    EVALUATIONS,
    EXTRACTED,
    RUBRICS,
    ExtractedRubric,
    RubricEvaluation,
)
from debrief.scoring.gate import gate_scores
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.training.leaderboard import LeaderboardRow
from debrief.training.model import INDEX, LINES, LineRow, TrainingSetRow

FORM: Final = "3"
"""Raise it when rows of an earlier version cannot be read any more."""
_FILE = "form"
_RULES = "offline"
"""The model's name in rows that rules made."""
_GONE: Final = (
    *("weekly_moves", "judge_probes", "judge_order_probes", "judge_agreement", "proposed_labels"),
    *("trouble_events", "troubles"),
)
"""Tables that are gone."""
_GONE_LABELS: Final = ("attribution", "check")
"""Sources of labels that are gone: neither says what became of the work."""
_MADE_ANEW: Final[Mapping[str, type[Struct]]] = {
    EFFECTS: LineEffect,
    "fingerprint_leaderboard": LeaderboardRow,
    INDEX: TrainingSetRow,
    LINES: LineRow,
}
"""Tables that the next run makes anew where their rows cannot be read any more."""
_VERDICTS: Final[Mapping[str, str]] = {
    "done_verified": "complete_verified",
    "done_unverified": "complete_unverified",
    "partly": "partial",
    "not_done": "failed",
    "cannot_tell": "undetermined",
}


class _FormerScores(Struct, kw_only=True):
    """A row of scores of an earlier version."""

    session_id: str
    session_digest: str
    started: Any
    ended: Any
    task: str
    tool: str
    model: str
    scoring_fingerprint: str
    status: str
    verdicts: list[dict[str, Any]] = []
    token_efficiency: float | None = None
    user_turn_efficiency: float | None = None
    tokens: int = 0
    chunks: list[dict[str, Any]] = []
    chunk_agreement: float | None = None
    uncertain: bool = False
    reading: dict[str, Any] | None = None
    injection_suspected: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class _FormerRubric(Struct):
    """A rubric of an earlier version; one that rules found says what it avoids."""

    avoids: str = ""


def open_lake(url: str | None = None) -> Lake:
    """Return a lake in today's form.

    Args:
        url: a folder or URL; the lake of the settings by default.

    Raises:
        LakeError: it has an earlier form and cannot be written.
    """
    lake = Lake(url)
    convert_lake(lake)
    return lake


def convert_lake(lake: Lake) -> None:
    """Convert a lake that does not say that it has today's form.

    Raises:
        LakeError: it has an earlier form and cannot be written.
    """
    if lake.read_bytes(_FILE) == FORM.encode() or not lake.partitions(SESSIONS_TABLE):
        return
    try:
        _convert(lake)
    except OSError as error:
        raise LakeError(
            lake.url,
            f"has the form of an earlier version and cannot be written: {error}",
            "Open it once where it can be, such as with debrief run",
        ) from None
    with suppress(OSError):  # a lake that may only be read is looked through each time
        lake.write_bytes(_FILE, FORM.encode())


def _convert(lake: Lake) -> None:
    for week in lake.partitions("session_scores"):
        if any(_is_former(row) for row in lake.read("session_scores", week, _FormerScores)):
            lake.write("session_scores", week, list(_reviews(lake, week)), SessionScores)
    _drop_rules(lake, "judge_evaluations", JudgeEvaluation, "model")
    _drop_rules(lake, EVALUATIONS, RubricEvaluation, "model")
    _drop_rules(lake, EXTRACTED, ExtractedRubric, "extractor")
    for table in _GONE:
        for partition in lake.partitions(table):
            lake.drop(table, partition)
    for table, row_type in _MADE_ANEW.items():
        for partition in lake.partitions(table):
            try:
                deque(lake.read(table, partition, row_type), maxlen=0)
            except msgspec.ValidationError:
                lake.drop(table, partition)
    for table in (CANDIDATES, RUBRICS):
        for name in lake.partitions(table):
            if any(row.avoids for row in lake.read(table, name, _FormerRubric)):
                lake.drop(table, name)
    for source in _GONE_LABELS:
        lake.drop(LABELS, source)
    lake.remove("order/table.json")


def _is_former(row: _FormerScores) -> bool:
    return row.model == _RULES or bool(row.verdicts) or row.reading is not None


def _reviews(lake: Lake, week: str) -> Iterator[SessionScores]:
    """Yield the reviews of a week in today's words, as far as signals let them stand."""
    sessions = {session.id: session for session in lake.read(SESSIONS_TABLE, week, Session)}
    for row in lake.read("session_scores", week, _FormerScores):
        session = sessions.get(row.session_id)
        if row.model == _RULES or row.status != "ok" or row.reading is None or session is None:
            continue
        values = msgspec.structs.asdict(row)
        values["review"] = _review(values.pop("reading"))
        values["chunks"] = [
            {**chunk, "dimension_scores": chunk.get("verdicts", ())} for chunk in row.chunks
        ]
        made = msgspec.convert(values, SessionScores, strict=False)
        if made.review is not None:
            yield gate_scores(made, made.review, session)


def _review(reading: dict[str, Any]) -> dict[str, Any]:
    requests = [
        {**each, "state": _VERDICTS.get(each["state"], each["state"])}
        for each in reading.get("requests", ())
    ]
    return {
        **reading,
        "verdict": _VERDICTS.get(reading["verdict"], reading["verdict"]),
        "requests": requests,
        "frictions": [
            {**each, "instead": each.get("rule", "")} for each in reading.get("troubles", ())
        ],
    }


def _drop_rules(lake: Lake, table: str, row_type: type[Any], column: str) -> None:
    """Take out of a table the rows that rules made."""
    for partition in lake.partitions(table):
        rows = list(lake.read(table, partition, _maker(column)))
        if any(getattr(row, column) == _RULES for row in rows):
            makers = {getattr(row, column) for row in rows} - {_RULES}
            kept = lake.read(table, partition, row_type, (column, makers)) if makers else ()
            lake.write(table, partition, list(kept), row_type)


def _maker(column: str) -> type[Struct]:
    return msgspec.defstruct("Maker", [(column, str, "")])
