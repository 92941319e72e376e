"""Every stated fact is held against the event that it cites, on real sessions."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.signals.extract import Facts, extract_signals
from debrief.sessions.model import Evidence, Session, ToolCall, calls_of
from debrief.sessions.store import sessions_in_folder

SHARED = Path(__file__).parents[3] / "shared" / "sessions"
COUNTED = ("errors", "timeouts", "repeats", "edits", "published", "corrections", "interruptions")


def stated(session: Session, facts: Facts) -> Iterator[tuple[str, Evidence]]:
    for name in COUNTED:
        yield from ((name, place) for place in getattr(facts, name))
    yield from (("check", run.evidence) for run in facts.checks if run.passed is not None)


def is_true(name: str, place: Evidence, session: Session, calls: dict[str, ToolCall]) -> bool:
    """Look a fact up in the transcript, by means of its own."""
    turn = next((turn for turn in session.turns if turn.number == place.turn), None)
    if name in ("corrections", "interruptions"):
        assert turn is not None
        said = "\n".join([turn.prompt, *(deed.text for deed in turn.interventions)])
        kinds = {deed.kind for deed in turn.interventions}
        words = " ".join(re.findall(r"\w+", place.quote.rstrip("…")))
        return (name == "interruptions" and "interruption" in kinds) or words[:40] in " ".join(
            re.findall(r"\w+", said.replace("’", "'"))
        )
    call = calls[place.call]
    result = call.result or ""
    failed = (
        call.status == "failed"
        or bool(call.exit_code)
        or bool(re.search(r"(?i)error|exit|fail|❌|returncode|not found|denied", result[:300]))
    )
    if name == "errors":
        return failed
    if name == "timeouts":
        return failed and bool(re.search(r"(?i)tim|124|kill|SIG", result[-700:]))
    if name == "repeats":
        same = [
            tool_call
            for tool_call in calls.values()
            if (tool_call.name, tool_call.input) == (call.name, call.input)
        ]
        return len(same) > 1 and call.action in ("read", "search", "run")
    if name == "edits":
        shown = json.dumps(call.input, ensure_ascii=False) + str(call.path)
        return call.status != "unanswered" and (
            place.quote.rpartition("/")[2] in shown or " " in place.quote
        )
    if name == "published":
        return bool(re.search(r"\bgit\b.*\b(commit|push)\b", call.command, re.DOTALL))
    quoted = " ".join(place.quote.rstrip("…").split())[:40]
    return quoted in " ".join(
        re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", result).replace("\\n", "\n").split()
    )


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no sessions beside the checkout")
def test_of_300_facts_drawn_at_random_none_is_false() -> None:
    found = []
    for folder in sorted(SHARED.iterdir()):
        if folder.is_dir():
            for session in sessions_in_folder(folder, lambda session: session):
                calls = {call.id: call for call in calls_of(session)}
                facts = extract_signals(session)
                found += [(session, calls, name, at) for name, at in stated(session, facts)]
    assert len(found) > 300
    drawn = random.Random(11).sample(found, 300)
    false = [
        (session.id, name, place)
        for session, calls, name, place in drawn
        if not is_true(name, place, session, calls)
    ]
    assert false == []
