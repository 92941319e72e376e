"""Score the sessions that have a reference, to compare both.

Verdicts and places come from ``score_session`` and ``places_of``, as those of a run, by what a
session itself shows: outcomes take no part, as they are among the references.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from functools import partial

from msgspec import Struct

from debrief.keys import digest_of
from debrief.redaction.redactor import redactor_of
from debrief.scoring.model import ChunkScorer, SessionScores
from debrief.scoring.offline_evaluator import OfflineEvaluator
from debrief.scoring.order import OrderedSession, OrderTable, places_of
from debrief.scoring.rules import verdict_of
from debrief.scoring.scorer import score_session
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Session
from debrief.sessions.redaction import redact_session
from debrief.settings import load_settings
from debrief.signals.extract import extract_signals
from debrief.validity.changes import Move, Wordings, moves_of
from debrief.validity.references import LEVELS, Corpus, Reference, parts_of

_PART = 25
"""Sessions that a worker reads at once."""
Progress = Callable[[int], None]
"""Called with a number of sessions that are done."""


class Measured(Struct, frozen=True, kw_only=True):
    """A session with a reference, and what was said of it."""

    reference: Reference
    edited: bool
    """It changed a file."""
    verdict: SessionVerdict | None
    place: float | None = None
    """In the order; None where there are too few sessions to compare with."""
    moves: tuple[Move, ...] = ()
    """What changes did to the verdict."""

    @property
    def shown(self) -> float:
        """Return what a person sees first as one number: the verdict, and then the place."""
        level = LEVELS[self.verdict.verdict if self.verdict else "undetermined"]
        return level + 0.99 * (0.5 if self.place is None else self.place)


class Changing(Struct, frozen=True):
    """Which sessions are changed, and with which words."""

    wordings: Wordings
    ids: Collection[str]
    seed: int = 0


class _Scored(Struct, frozen=True):
    """What one session comes to, before it is compared with others."""

    columns: OrderedSession
    verdict: SessionVerdict | None
    edited: bool
    moves: tuple[Move, ...]


def measure(
    corpora: Sequence[Corpus],
    table: OrderTable | None,
    changing: Changing,
    progress: Progress = lambda _: None,
) -> list[Measured]:
    """Return what Debrief says of the sessions that have a reference, by family and id.

    Args:
        corpora: all sessions of one are ordered together.
        table: of the order; the shipped one by default.
        changing: which of them are changed, too.
        progress: called with a number of sessions that are done.
    """
    context = multiprocessing.get_context("spawn")
    found: list[list[_Scored]] = [[] for _ in corpora]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        work = {
            pool.submit(_scored, part, changing): number
            for number, corpus in enumerate(corpora)
            for part in parts_of(corpus, _PART)
        }
        for future in as_completed(work):
            found[work[future]] += future.result()
            progress(len(future.result()))
    each = zip(corpora, found, strict=True)
    rows = [row for corpus, own in each for row in _placed(corpus, own, table)]
    return sorted(rows, key=lambda row: (row.reference.family, row.reference.session_id))


def _scored(part: Corpus, changing: Changing) -> list[_Scored]:
    scorer, found = OfflineEvaluator(), []
    for session in part.sessions(_redact()):
        row = score_session(session, scorer)
        is_changed = session.id in part.references and session.id in changing.ids
        edited = bool(extract_signals(session).edits)
        moves = moves_of(session, _verdict, changing.wordings, changing.seed) if is_changed else ()
        found.append(_Scored(columns_of(row), row.verdict, edited, tuple(moves)))
    return found


def _verdict(session: Session) -> SessionVerdict:
    return verdict_of(extract_signals(session))


def columns_of(row: SessionScores) -> OrderedSession:
    """Return the columns of a row that the order is made of."""
    return OrderedSession(**{name: getattr(row, name) for name in OrderedSession.__struct_fields__})


def _placed(
    corpus: Corpus, rows: Sequence[_Scored], table: OrderTable | None
) -> Iterator[Measured]:
    places = places_of((row.columns for row in rows), table)
    for row in rows:
        id_ = row.columns.session_id
        if (reference := corpus.references.get(id_)) is not None:
            yield Measured(
                reference=reference,
                edited=row.edited,
                verdict=row.verdict,
                place=places[id_].place if id_ in places else None,
                moves=row.moves,
            )


def drawn(corpora: Iterable[Corpus], count: int) -> frozenset[str]:
    """Return the ids of so many sessions with a reference, chosen by nothing that they are."""
    ids = {id_ for corpus in corpora for id_ in corpus.references}
    return frozenset(sorted(ids, key=digest_of)[:count])


def scores_by(
    scorer: ChunkScorer,
    corpora: Iterable[Corpus],
    workers: int = 1,
    progress: Progress = lambda _: None,
) -> dict[str, SessionScores]:
    """Return what a model says of the sessions that have a reference, by their ids.

    Args:
        scorer: asks the model, or only counts what that would take.
        corpora: with the sessions.
        workers: questions that go out at a time.
        progress: called with 1 after each session.
    """
    found: dict[str, SessionScores] = {}
    with ThreadPoolExecutor(workers) as pool:
        for part in (part for corpus in corpora for part in parts_of(corpus, _PART)):
            sessions = (
                session for session in part.sessions(_redact()) if session.id in part.references
            )
            for row in pool.map(partial(_score, scorer=scorer), sessions):
                found[row.session_id] = row
                progress(1)
    return found


def _score(session: Session, scorer: ChunkScorer) -> SessionScores:
    return score_session(session, scorer)


def _redact() -> Callable[[Session], Session]:
    return partial(redact_session, redactor=redactor_of(load_settings()))
