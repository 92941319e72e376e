"""No text takes time that grows with its square: four times the text, about four times the time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count

import pytest

from debrief.judging.answers import read_judgement
from debrief.models.answers import AnswerError
from debrief.sessions.actions import described
from debrief.sessions.model import ToolCall
from debrief.signals.extract import session_activity
from debrief.signals.risky_commands import hazards_of
from debrief.signals.shell import code_in, commands_in, writes_of
from tests.signals.scenario import Story

NUMBERS = count()
MOST = 8
"""Times as long for four times the text; 16 where time grows with the square."""


def bash(command: str) -> ToolCall:
    return described(ToolCall(id="c", name="Bash", input=json.dumps({"command": command})))


def asserted(text: str) -> None:
    session_activity(Story().turn("Fix it").run(f"python - <<'E'\n{text}\nE").session())


def said_last(text: str) -> None:
    session_activity(Story().turn("Fix it").run("make").say(text).session())


def judged(text: str) -> None:
    with pytest.raises(AnswerError):
        read_judgement(f"it says {text}")


def taken_apart(text: str) -> None:
    commands_in(text)
    code_in(text)
    list(writes_of(text))


def hazardous(text: str) -> None:
    hazards_of(bash(text))


def checked(text: str) -> None:
    session_activity(Story().turn("Fix it").run("make test | tail", text).session())


def checking(text: str) -> None:
    session_activity(Story().turn("Fix it").run(text, "5 passed in 0.1s").session())


TEXTS: dict[str, tuple[Callable[[str], None], str]] = {
    "blank lines before an assertion": (asserted, "\n"),
    "blanks before an assertion": (asserted, " "),
    "blank lines of a check": (checked, "\n"),
    "digits of a check": (checked, "1"),
    "counts of a check": (checked, "1 passed, "),
    "lines of a check": (checked, "--- FAIL: a (1.0s)\n"),
    "checks in a call": (checking, "pytest a; "),
    "marks in a call": (checking, "echo a; pytest a && "),
    "downloads": (hazardous, "curl "),
    "downloads into a pipe": (hazardous, "curl a |"),
    "here-documents": (taken_apart, "<<EOF "),
    "here-documents with a quote": (taken_apart, "<<'EOF "),
    "here-documents over lines": (taken_apart, "cat <<EOF\n"),
    "here-strings": (taken_apart, "cat <<<a\n"),
    "blanks after a here-document": (taken_apart, "<< \n"),
    "wrappers": (taken_apart, "sudo "),
    "code that opens files": (taken_apart, "python -c 'open(' "),
    "blank lines in an answer": (judged, "\n"),
    "feedback in an answer": (judged, "feedback\n"),
    "scores in an answer": (judged, "score\n"),
    "last words of limits": (said_last, "error the max token "),
    "last words of failure": (said_last, "I was unable "),
    "last words announced": (said_last, "ok, "),
}


def seconds(reads: Callable[[str], None], unit: str, size: int) -> float:
    """Return the time for a text that was never read before, so that none is recalled."""
    text = f"{unit * (size // len(unit))} {next(NUMBERS)}"
    started = time.process_time()
    reads(text)
    return time.process_time() - started


@pytest.mark.parametrize(("reads", "unit"), TEXTS.values(), ids=TEXTS)
def test_four_times_the_text_takes_four_times_the_time(
    reads: Callable[[str], None], unit: str
) -> None:
    size = 1_000
    while seconds(reads, unit, size) < 0.001:  # an answer of over 200,000 characters is not read
        size *= 2
    for _ in range(3):  # what else the machine does may cost one measurement, and not three
        one, four = (min(seconds(reads, unit, times * size) for _ in range(3)) for times in (1, 4))
        if four <= MOST * one:
            break
    assert four <= MOST * one
