"""Twelve invented sessions with known answers, to measure a model's error before paying for a year
of them.

The sessions stand beside this module as ATIF trajectories, the answers in ``answers.toml``. None is
of the demo or of anybody's work, so no model's judges were tuned on them.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from debrief.scoring.verdict import VerdictName
from debrief.sessions.model import Session
from debrief.sessions.sources import read_week, scan

_HERE = Path(__file__).resolve().parent


class KnownAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What a careful reader says of a session."""

    verdict: VerdictName
    quality: tuple[float, float]
    """From 0 to 1: the least and the most that fit."""
    why: str
    false_claim: bool = False
    """The agent says that something is so which the recording shows not to be."""


class CalibrationSession(Struct, frozen=True):
    """A session, and what is known of it."""

    name: str
    """For people; the session's id does not give its answer away."""
    session: Session
    known: KnownAnswer


def calibration_sessions() -> list[CalibrationSession]:
    """Return the sessions with their answers, by name."""
    text = (_HERE / "answers.toml").read_text("utf-8")
    answers = msgspec.toml.decode(text, type=dict[str, KnownAnswer])
    found = scan([_HERE])
    items = (
        item for week in found.weeks() for item in read_week(found, week, lambda session: session)
    )
    sessions = {
        Path(item.transcripts[0].path).stem: item for item in items if isinstance(item, Session)
    }
    return [
        CalibrationSession(name, sessions[name], known) for name, known in sorted(answers.items())
    ]
