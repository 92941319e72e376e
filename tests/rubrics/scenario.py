"""Small sessions of a person who works well and of one who does not, and their scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from debrief.keys import digest_of, week_of
from debrief.rubrics.contrast import BUILT_IN, SessionValues, session_values
from debrief.rubrics.model import ExtractedRubric, ReadWeek, Rubric
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Intervention, Message, Session, ToolCall, Turn
from tests.scoring.scenario import verdicts
from tests.training import scenario as training
from tests.training.scenario import said

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
WEEK = "2026-03-02"

SCALE = "1: Never seen\n2: Once, late\n3: Once, early\n4: In most prompts\n5: In every prompt"

GOOD = (
    "Totals in `billing/rounding.py` are off by a cent because `round_half` is used, and the "
    "ledger currently shows both values. Make sure each line must be rounded once, for example "
    "2.675 -> 2.68. Don't change the public API of Invoice. Run tests/test_rounding.py.",
    "Thanks, it works now. Please commit.",
)
BAD = ("fix it", "no, that is wrong", "still broken, you broke the other page", "try again")


MISSED = "<tool_use_error>String to replace not found in file.\nString: a</tool_use_error>"


def session(
    number: int,
    prompts: Sequence[str] = GOOD,
    *,
    weeks: int = 0,
    replies: Sequence[str] = (),
    stops: dict[int, Sequence[Intervention]] | None = None,
    calls: Sequence[ToolCall] = (),
    **changed: object,
) -> Session:
    """A session of these prompts, ``weeks`` weeks after the first Monday; its first message makes
    the calls."""
    started = MONDAY + timedelta(weeks=weeks, hours=number)
    turns = tuple(
        Turn(
            number=place,
            prompt=prompt,
            at=started,
            messages=(
                (
                    Message(
                        id=f"m{place}",
                        model="m",
                        text=replies[place - 1] if place <= len(replies) else "",
                        calls=tuple(calls) if place == 1 else (),
                    ),
                )
                if place <= len(replies) or (calls and place == 1)
                else ()
            ),
            interventions=tuple((stops or {}).get(place, ())),
        )
        for place, prompt in enumerate(prompts, 1)
    )
    values = {
        "id": f"session-{weeks}-{number:02}",
        "source": "claude-code",
        "tool": "claude-code",
        "task": "billing",
        "started": started,
        "ended": started + timedelta(minutes=30),
        "turns": turns,
        **changed,
    }
    return Session(**values, digest=digest_of(turns, number, weeks))  # type: ignore[arg-type]


def edits(missed: int, of: int = 10) -> list[ToolCall]:
    """Edits of a file each, the first of which miss: their text is not there."""
    return [
        ToolCall(
            id=f"edit-{number}",
            name="Edit",
            input=f'{{"file_path":"shop/cart{number}.py"}}',
            action="edit",
            path=f"shop/cart{number}.py",
            status="failed" if number < missed else "ok",
            result=MISSED if number < missed else "The file was updated.",
        )
        for number in range(of)
    ]


def scores(of: Session, quality: float | None, **changed: object) -> SessionScores:
    """The scores of a session, good from a half on: its verdict, its dimensions and what was
    written."""
    same: dict[str, object] = dict.fromkeys(("token_efficiency", "user_turn_efficiency"), quality)
    found = dict.fromkeys(("execution_quality", "tool_mastery", "resource_efficiency"), quality)
    verdict = said("complete_verified" if (quality or 0.0) >= 0.5 else "partial")
    fixed = {
        "verdict": verdict,
        "dimension_scores": verdicts(**found),
        "scoring_fingerprint": "f" * 8,
    }
    return training.scores(of, quality, **{**same, **fixed, **changed})


def a_week(good: int, bad: int, weeks: int = 0) -> tuple[list[Session], list[SessionScores]]:
    """A week of good sessions with high scores and bad ones, whose edits miss, with low scores."""
    sessions = [session(n, GOOD, weeks=weeks, calls=edits(0)) for n in range(good)]
    sessions += [session(n, BAD, weeks=weeks, calls=edits(4)) for n in range(good, good + bad)]
    values = [0.9 - n / 100 if n < good else 0.3 - n / 1000 for n in range(good + bad)]
    return sessions, [scores(one, value) for one, value in zip(sessions, values, strict=True)]


def valued(rows: Iterable[SessionScores]) -> list[SessionValues]:
    """The values of sessions by the usual score names."""
    return [session_values(row, BUILT_IN, row.verdict, {}) for row in rows]


def read(*weeks: tuple[Sequence[Session], Sequence[SessionScores]]) -> ReadWeek:
    """What gives a miner the sessions of these weeks with their values."""

    def read_week(week: str) -> Iterator[tuple[Session, SessionValues]]:
        for sessions, rows in weeks:
            by_id = {row.session_id: row for row in valued(rows)}
            for one in sessions:
                if week_of(one.started) == week and one.id in by_id:
                    yield one, by_id[one.id]

    return read_week


def rubric(number: int = 1, **changed: object) -> Rubric:
    """A rubric that judges the naming of places."""
    values = {
        "id": f"rubric_{number:03}",
        "key": f"key-{number}",
        "score_name": "excellence",
        "name": "Names the Place",
        "description": "The user names the files that a request is about.",
        "scoring_criteria": SCALE,
        **changed,
    }
    return Rubric(**values)  # type: ignore[arg-type]


def mined(what: str, week: str = WEEK, **changed: object) -> ExtractedRubric:
    """A rubric as it was mined from one week."""
    values = {
        "id": f"{week}.excellence.{what}",
        "score_name": "excellence",
        "week": week,
        "name": what.replace("-", " ").title(),
        "description": f"The user shows {what}.",
        "scoring_criteria": SCALE,
        "extractor": "m",
        "sessions": tuple(f"{week}-{n}" for n in range(10)),
        **changed,
    }
    return ExtractedRubric(**values)  # type: ignore[arg-type]


def summarized(prompt: str, scale: str = SCALE, names: str = "Theme") -> str:
    """What a summarizer answers: six rubrics, the last the heaviest, made of all in the prompt."""
    ids = re.findall(r'^\s*"id": "([^"]+)",$', prompt.split("## Task")[0], re.MULTILINE)
    rubrics = [
        {
            "name": f"{names} {letter}",
            "description": f"The user shows {letter * 6}.",
            "scoring_criteria": scale,
            "weight": 1 + place,
            "sources": ids[place::6],
        }
        for place, letter in enumerate("abcdef")
    ]
    return json.dumps({"rubrics": rubrics, "consolidation_notes": "By theme."})
