"""What is kept of a score that was sent to Langfuse."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ScoreReceipt(Struct, frozen=True, kw_only=True):
    """One row: one score of one session, and whether the server has it."""

    score_id: str
    session_id: str
    name: str
    value: str
    """The number, or the category, as it was sent."""
    status: Literal["written", "unconfirmed", "failed", "not_configured"]
    """``written`` only after it was read back from the server."""
    reason: str = ""
    host: str = ""
    content_digest: str = ""
    """Of what was sent: the same digest on a written row is not sent again."""
