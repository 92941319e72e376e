"""What a session is called: by the person, else by a model, else by a summary of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from debrief.sessions.readers.claude_code.records import Record
from debrief.sessions.readers.jsonl import string


class Title:
    """The best title that a file's records told so far."""

    def __init__(self) -> None:
        self.text = ""
        self._rank = 0
        self._summaries: list[tuple[Any, str]] = []

    def take(self, record: Record) -> None:
        """Take a record that tells one."""
        kind = record.type
        if kind == "summary":
            self._summaries.append((record.leafUuid, string(record.summary)))
            return
        is_custom = kind == "custom-title"
        title = string(record.customTitle if is_custom else record.aiTitle).strip()
        rank = 2 if is_custom else 1
        if title and rank >= self._rank:
            self.text, self._rank = title, rank

    def settle(self, records: Collection[str]) -> None:
        """Take a summary when it is of this file's records: older versions mixed them up."""
        if self.text:
            return
        for leaf, summary in self._summaries:
            if summary and type(leaf) is str and leaf in records:
                self.text = summary.strip()
