"""300 lines of signals, drawn at random from real sessions and printed beside their evidence.

A person reads them: ``pytest -m shared -s tests/signals/test_drawn.py``. What a program can look
up is looked up: a quotation of a commit or a check stands in its call's result, and a file in what
was called.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.sessions.model import Evidence, Session, calls_of
from debrief.sessions.store import sessions_in_folder
from debrief.signals.extract import session_signals

SHARED = Path(__file__).parents[3] / "shared" / "sessions"
DRAWN = 300


def lines_of(session: Session) -> Iterator[tuple[str, str, Evidence | None]]:
    """Yield kind, text and place of each signal."""
    row = session_signals(session)
    yield "work", row.work, None
    yield "ending", row.ending, row.end
    yield from (("request", place.quote, place) for place in row.requests)
    yield from (("file", path, None) for path in (*row.change.files, *row.change.deleted))
    yield from (("commit", place.quote, place) for place in row.change.commits)
    yield from (("check", check.evidence.quote, check.evidence) for check in row.checks)
    for event in row.events:
        yield from ((event.kind, place.quote, place) for place in event.evidence)


def words_of(text: str) -> str:
    """Return the words of a text alone: a quotation leaves out line breaks and signs."""
    return " ".join(re.findall(r"\w+", text))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no sessions beside the checkout")
def test_of_300_signals_drawn_at_random_each_stands_where_it_says() -> None:
    sessions = [
        session
        for folder in sorted(SHARED.iterdir())
        if folder.is_dir()
        for session in sessions_in_folder(folder, lambda session: session)
    ]
    told = [(session, *line) for session in sessions for line in lines_of(session)]
    drawn = random.Random(11).sample(told, min(DRAWN, len(told)))
    false = []
    for session, kind, text, place in drawn:
        calls = {call.id: call for call in calls_of(session)}
        call = calls.get(place.call) if place else None
        shown = f"{call.command or call.input[:80]!r} -> {call.printed[:80]!r}" if call else ""
        print(f"{session.id[:8]} {kind}: {text!r} {shown}")
        if place is not None and place.call and call is None:
            false.append((session.id, kind, text))
        elif call is not None and kind in ("commit", "check"):
            said = words_of(f"{call.command} {call.printed}")
            first = words_of(text.rstrip("…"))[:30].rpartition(" ")[0]
            if first not in said:
                false.append((session.id, kind, text))
    assert false == []
