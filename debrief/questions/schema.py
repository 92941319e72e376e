"""The rows of questions, and where their answers are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date

from msgspec import Struct

from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.scoring.model import FACETS, Facet, SessionScores
from debrief.scoring.precedence import effective_rows

QUESTIONS, ALL = "questions", "all"


class Sentence(Struct, frozen=True, kw_only=True):
    """A sentence of an answer, and the sessions that it rests on."""

    text: str
    sessions: tuple[str, ...]
    """Ids; their places stand in ``facets``."""


class CitedAnswer(Struct, frozen=True, kw_only=True):
    """What all sessions together answer, and what it rests on."""

    sentences: tuple[Sentence, ...] = ()
    model: str
    on: date
    asked: int
    """Sessions that were read for it."""
    found: tuple[str, ...] = ()
    """Ids of those that show what was asked for."""


class KeptQuestion(Struct, frozen=True, kw_only=True):
    """A question that a person asked. A row of ``questions``."""

    id: str
    text: str
    standing: bool = False
    """New sessions are asked it, too, in the call that reviews them."""
    answer: CitedAnswer | None = None
    """The newest; None where no answer could be put together."""


def question_id(text: str) -> str:
    """Return the id of a question: the same for the same words.

    >>> question_id("Which tests does it skip?") == question_id("which tests  does it skip")
    True
    """
    return digest_of("question", " ".join(text.casefold().split()).rstrip(" ?!."))[:12]


def questions_in(lake: Lake) -> list[KeptQuestion]:
    """Return the questions of a lake, in the order in which they were first asked."""
    return list(lake.read(QUESTIONS, ALL, KeptQuestion))


def facets_in(lake: Lake, weeks: Iterable[str] | None = None) -> Iterator[Facet]:
    """Yield what sessions answer: asked by themselves, then in the call that reviewed them.

    Args:
        lake: that holds them.
        weeks: all by default.
    """
    chosen = weeks if weeks is not None else lake.partitions("raw_sessions")
    for week in chosen:
        yield from lake.read(FACETS, week, Facet)
        for row in effective_rows(lake.read("session_scores", week, SessionScores)):
            yield from row.facets


def answers_by_question(facets: Iterable[Facet]) -> dict[str, dict[str, Facet]]:
    """Return the answer that counts of each session, by question and session: the first one."""
    found: dict[str, dict[str, Facet]] = defaultdict(dict)
    for facet in facets:
        if facet.status == "ok":
            found[facet.question_id].setdefault(facet.session_id, facet)
    return found
