"""How a call ended: by its status and exit code; by its words only where these say nothing."""

from __future__ import annotations

import re
from functools import cache

from debrief.sessions.model import ToolCall
from debrief.signals.check_commands import checks_in
from debrief.signals.shell import commands_in
from debrief.troubles.check_findings import is_check
from debrief.troubles.naming import parts_of, pattern, tables

_ENDED_BADLY = re.compile(r"\A\s*(?:<returncode>(?!0)|Exit code:? [1-9])")


def has_failed(call: ToolCall) -> bool:
    """Return whether a call failed, by its status or its exit code, and never by its words."""
    if call.status in ("rejected", "unanswered"):
        return False
    return (
        call.status == "failed"
        or bool(call.exit_code)
        or (call.action == "run" and bool(_ENDED_BADLY.search((call.result or "")[:300])))
    )


def is_stopped(call: ToolCall) -> bool:
    """Return whether the agent itself told a program to stop: a server that it had started."""
    return call.exit_code in (130, 143) or r'"\u0003' in call.input


def is_denied(result: str) -> bool:
    """Return whether a result says that a person, or their settings, refused the call."""
    return bool(pattern("denied").search(result[:400]))


def is_answer(call: ToolCall) -> bool:
    """Return whether the status of a command is an answer: it ends with a search, a comparison
    or a test."""
    parts = [command.words for command in commands_in(call.command) if command.words]
    if not parts or call.exit_code not in (None, 1, 8):
        return False
    words = parts[-1]
    names = {words[0], " ".join(words[:2]), " ".join(words[:3])}
    return not answers().isdisjoint(names)


@cache
def answers() -> frozenset[str]:
    """Return the commands whose status is an answer; names may be of two or three words."""
    return frozenset(name.strip() for name in tables()["answers"]["commands"].split(","))


def went_well(call: ToolCall) -> bool:
    """Return whether a command was run to its end, and did not fail."""
    return call.action == "run" and call.status == "ok" and not has_failed(call)


def check_behind_a_pipe(call: ToolCall) -> tuple[str, ...]:
    """Return the check of a command line that printed its failure into another program, whose exit
    status is that of the line; empty where none did."""
    if call.action != "run" or "|" not in call.command:
        return ()
    runs = checks_in(call, turn=0, place=0, failed=False, changed=(), known=())
    if not any(run.passed is False for run in runs):
        return ()
    checks = {words for words in parts_of(call.command) if is_check(words)}
    return checks.pop() if len(checks) == 1 else ()  # of several, which one is not known
