"""The cache of answers that were found usable: shared by whoever shares a state.

Values are JSON and never pickles, so a state that somebody else could write runs no code here.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from debrief.models.usage import ModelUsage
from debrief.state.store import State


class Kept(Struct, frozen=True, kw_only=True):
    """An answer that was validated, and what it took to get it."""

    text: str
    usage: ModelUsage
    model: str
    """Who gave it: the model asked, or a fallback."""


class Cache:
    """Answers by key; safe in threads and processes.

    Args:
        place: the state that they are kept in, or its file; ``None`` keeps them in memory.

    Raises:
        ConfigurationError: the file cannot be made or opened.
    """

    def __init__(self, place: State | Path | None) -> None:
        self.state = place if isinstance(place, State) else State(place)
        self._decoder = msgspec.json.Decoder(Kept)

    def get(self, key: str) -> Kept | None:
        """Return the answer to a question; None when there is none that can be read."""
        value = self.state.get(key)
        if value is None:
            return None
        try:
            return self._decoder.decode(value)
        except msgspec.DecodeError:
            return None

    def put(self, key: str, kept: Kept) -> None:
        """Keep an answer; it is on its way to the disk when this returns."""
        self.state.put(key, msgspec.json.encode(kept))
