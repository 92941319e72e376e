"""How a command ended: by its status and exit code; by its words only where these say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from debrief.friction.normalize import listed, parts_of
from debrief.sessions.model import ToolCall

_ENDED_BADLY = re.compile(r"\A\s*(?:<returncode>(?!0)|Exit code:? [1-9])")
_ASKS = frozenset({"--help", "-h", "help", "--version"})


def has_failed(call: ToolCall) -> bool:
    """Return whether a command was run and failed, by its status or its exit code."""
    if call.action != "run" or call.status in ("rejected", "unanswered"):
        return False
    return (
        call.status == "failed"
        or bool(call.exit_code)
        or bool(_ENDED_BADLY.search((call.result or "")[:300]))
    )


def went_well(call: ToolCall) -> bool:
    """Return whether a command was run to its end, and did not fail."""
    return call.action == "run" and call.status == "ok" and not has_failed(call)


def is_stopped(call: ToolCall) -> bool:
    """Return whether the agent itself told a program to stop: a server that it had started."""
    return call.exit_code in (130, 143) or r'"\u0003' in call.input


def is_answer(call: ToolCall) -> bool:
    """Return whether the status of a command is an answer: it ends with a search, a comparison
    or a test."""
    parts = parts_of(call.command)
    return bool(parts) and call.exit_code in (None, 1, 8) and _is_among("answers", parts[-1])


def is_look(words: Sequence[str]) -> bool:
    """Return whether a command only asks what there is: it looks, or prints a help or a version."""
    return (
        _is_among("looks", words) or _is_among("answers", words) or not _ASKS.isdisjoint(words[1:])
    )


def _is_among(name: str, words: Sequence[str]) -> bool:
    return not listed(name).isdisjoint({words[0], " ".join(words[:2]), " ".join(words[:3])})
