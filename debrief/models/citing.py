"""Find the turns and quotations that a model cites in its own words.

An answer's words are read once, when it comes; what they cite is kept beside them as evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from debrief.sessions.model import Evidence

_CITATION = re.compile(
    r"\bturns?\s+#?(\d{1,6}(?:\s*(?:,|and|to|&|-|–)\s*(?:turns?\s+)?#?\d{1,6}\b)*)", re.IGNORECASE
)
_QUOTED = re.compile(r"\bturn (\d{1,6}): “([^”]{1,400})”")


def cited_turns(words: str) -> Iterator[int]:
    """Yield the turn numbers that a model cites; of a range its two ends."""
    for citation in _CITATION.findall(words):
        yield from map(int, re.findall(r"\d+", citation))


def cited_evidence(words: str) -> tuple[Evidence, ...]:
    """Return the turns that a model cites, with the words that it quotes beside them.

    >>> [(each.turn, each.quote) for each in cited_evidence("As turn 2: “no” and turn 4 show.")]
    [(2, 'no'), (4, '')]
    """
    quoted = [Evidence(int(turn), "", quote) for turn, quote in _QUOTED.findall(words)]
    turns = {place.turn for place in quoted}
    rest = (turn for turn in dict.fromkeys(cited_turns(words)) if turn not in turns)
    return (*quoted, *map(Evidence, rest))
