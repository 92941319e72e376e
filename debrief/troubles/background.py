"""Commands that go on after their call, and which of them a later look is after."""

from __future__ import annotations

import re

from debrief.sessions.model import ToolCall
from debrief.troubles.steps import CallMade

_ID_GIVEN = re.compile(
    r"\b(?:(?:session|cell) ID|background with ID:?) ([\w-]+)|\bsession_id\W+(\w+)"
)
_ID_ASKED = re.compile(r"\b(?:session|bash|shell|task|cell)_id\W{1,5}([\w-]+)")


class Background:
    """What one agent has started, by the ids that its tools gave."""

    def __init__(self) -> None:
        self._started: dict[str, CallMade] = {}

    def start(self, step: CallMade) -> None:
        """Keep a command by the id that its result names, if it names one."""
        for given in _ID_GIVEN.finditer((step.call.result or "")[:400]):
            self._started[given[1] or given[2]] = step

    def behind(self, look: ToolCall) -> CallMade | None:
        """Return the command that a look asks for by its id; None where that is not known."""
        asked = _ID_ASKED.search(look.input)
        return self._started.get(asked[1]) if asked else None
