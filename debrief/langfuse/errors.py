"""What a Langfuse server answers in place of what it was asked for."""

from __future__ import annotations

from debrief.errors import LangfuseError

API = "/api/public"
"""Where a server's API begins."""
LACKING = (404, 501)
"""What a server answers for a path that its version or its mode does not have."""


class LangfuseAwayError(LangfuseError):
    """The server could not be reached, or stayed busy: nothing was wrong with the request."""

    overloaded = False
    """It was reached, and could not answer in time: a smaller question may do."""


class RequestRefusedError(LangfuseError):
    """The server answered, and will answer the same again."""

    def __init__(self, culprit: str, reason: str, next_move: str = "", status: int = 0) -> None:
        super().__init__(culprit, reason, next_move)
        self.status = status
