"""What gives a session away in a text: its id, its transcripts' paths, or words copied from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from debrief.sessions.model import Session, calls_of, texts_of
from debrief.sessions.readers.values import UNIQUE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST = 24
"""Letters and digits in a row, whatever stands between them, that are a session's words. What is
shorter is said in any session."""
_MIX = 0x9E3779B97F4A7C15
_IDENTITIES = frozenset(
    {
        *("id", "own_id", "parent_session", "plan_id"),
        *("session", "session_id", "session_ids", "sessions"),
    }
)
"""Fields that hold ids of sessions and nothing else."""
_WORD = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{11,}")
_FEWEST_DIGITS = 3


class Signs:
    """Recognises some sessions in texts.

    Words are compared by their letters and digits alone, so that a line break, another quotation
    mark or an escape between them hides nothing. The prompt files of a repository, which many
    sessions were given, are not the words of one.

    Args:
        ids: of the sessions.
        others: ids of sessions that stay: what names one of these is theirs.
        paths: of the sessions' transcripts.
    """

    def __init__(
        self, ids: Collection[str], others: Collection[str] = (), paths: Iterable[str] = ()
    ) -> None:
        self.ids = frozenset(ids)
        self._others = frozenset(others)
        self._paths = frozenset(paths)
        self._unmistakable = frozenset(filter(_is_unmistakable, self.ids))
        self._parts: list[NDArray[np.uint64]] = []
        self._words: NDArray[np.uint64] | None = None

    def learn(self, session: Session) -> None:
        """Take in the words of a session."""
        own = replace(
            session,
            branch="",
            cwd="",
            declared_tools=UNSET,
            instructions=UNSET,
            system_prompt=UNSET,
        )
        for text in (*texts_of(own), *(call.patch for call in calls_of(own))):
            letters, starts = _letters(text)
            if len(letters) >= LEAST:
                hashes = _hashes(letters)
                self._parts.append(hashes[starts[starts < len(hashes)]])
        self._words = None

    def names(self, text: str, field: str = "") -> bool:
        """Return whether a text names one of the sessions.

        Args:
            text: any.
            field: that it is the value of. An id that may be an ordinary word counts only in a
                field of ids.
        """
        if text in self._paths or (field in _IDENTITIES and text in self.ids):
            return True
        if not self._unmistakable or len(text) < _SHORTEST:
            return False
        if text in self._unmistakable:
            return True
        if len(self._unmistakable) <= _FEW and not any(one in text for one in self._unmistakable):
            return False
        found = (match.group() for kind in (UNIQUE, _WORD) for match in kind.finditer(text))
        return not self._unmistakable.isdisjoint(found)

    def quotes(self, text: str) -> bool:
        """Return whether a text holds words of one of the sessions."""
        import numpy as np

        if len(text) < LEAST or not self._parts:
            return False
        if self._words is None:
            self._words = np.unique(np.concatenate(self._parts))
            self._parts = [self._words]
        letters, _ = _letters(text)
        if len(letters) < LEAST or not len(self._words):
            return False
        hashes = _hashes(letters)
        places = np.searchsorted(self._words, hashes)
        places[places == len(self._words)] = 0
        return bool((self._words[places] == hashes).any())

    def are_in(self, text: str) -> bool:
        """Return whether a text names one of the sessions or holds its words."""
        return self.names(text) or self.quotes(text)

    def name_another(self, value: Any, field: str = "") -> bool:
        """Return whether a decoded value is that of a session that stays."""
        if isinstance(value, str):
            return field in _IDENTITIES and value in self._others
        if isinstance(value, Mapping):
            return any(self.name_another(item, str(key)) for key, item in value.items())
        return False


_SHORTEST = 12
"""Characters of an id that can be looked for inside of a text."""
_FEW = 50
"""Ids that are looked for one by one in less time than a text takes to be split into words."""


def _is_unmistakable(session_id: str) -> bool:
    """Return whether an id is no word that stands in a text for something else."""
    if UNIQUE.fullmatch(session_id):
        return True
    is_long = len(session_id) >= _SHORTEST and _WORD.fullmatch(session_id)
    return bool(is_long) and sum(map(str.isdigit, session_id)) >= _FEWEST_DIGITS


def _letters(text: str) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Return the letters and digits of a text, as bytes, and where words begin among them.

    Each sign of a script other than Latin may begin a word.
    """
    import numpy as np

    data = np.frombuffer(text.lower().encode("utf-8", "replace"), np.uint8)
    is_letter = ((data >= 97) & (data <= 122)) | ((data >= 48) & (data <= 57)) | (data >= 128)
    begins = is_letter & ~np.concatenate(([False], is_letter[:-1]))
    begins |= data >= 192
    return data[is_letter], np.flatnonzero(begins[is_letter])


def _hashes(letters: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return a hash of each run of ``LEAST`` letters."""
    import numpy as np

    with np.errstate(over="ignore"):
        runs = letters * np.uint64(_MIX)
        for length in (1, 2, 4):  # of each letter; then of runs of 2, 4 and 8
            runs = _joined(runs[:-length], runs[length:])
        return _joined(_joined(runs[:-16], runs[8:-8]), runs[16:])


def _joined(first: NDArray[np.uint64], then: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes of runs, each made of those of its two parts."""
    import numpy as np

    joined = (first ^ (first >> np.uint64(29))) * np.uint64(_MIX) + then
    return joined ^ (joined >> np.uint64(32))
