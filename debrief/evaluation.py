"""The loop that judges, scores and rubrics share: rows in order, nothing evaluated twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from debrief.errors import DebriefError
from debrief.models.subject import asking_about
from debrief.retry import current_wait, waits_end_with_it, waits_since
from debrief.sessions.model import Session

_GROUPS_AHEAD = 2
"""Groups held for each worker, so that none waits for the slowest."""


Item = TypeVar("Item")
Row = TypeVar("Row")


def evaluate(
    groups: Iterable[Sequence[Item]],
    stored: Callable[[Item], Row | None],
    ask: Callable[[Item], Row],
    *,
    workers: int = 1,
) -> Iterator[Row]:
    """Yield one row an item, in order.

    With several workers, a group's first item is asked alone and the others once it has an
    answer: they share a prefix, which a provider's prompt cache can serve only after it was seen
    once. Other groups go on meanwhile. Ending the iteration cancels what was not begun.

    Args:
        groups: items of one session each, which are that session or begin with it; read lazily,
            two groups for each worker held at once.
        stored: the row of an earlier run that still holds for an item, or None.
        ask: makes a row; a failure is a row with its reason, never an exception. Called from
            several threads when there are several workers.
        workers: calls at a time; 1 makes them in this thread.
    """

    began = current_wait()

    def row_of(item: Item) -> Row:
        row = stored(item)
        if row is not None:
            return row
        with waits_since(began), asking_about(*_session_of(item)):
            return ask(item)

    if workers <= 1:
        for group in groups:
            yield from map(row_of, group)
        return
    waiting: deque[Future[list[Future[Row]]]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="evaluate") as pool:

        def begin(group: Sequence[Item]) -> list[Future[Row]]:
            first: Future[Row] = Future()
            first.set_result(row_of(group[0]))
            return [first, *(pool.submit(row_of, item) for item in group[1:])]

        try:
            with waits_end_with_it():
                for group in groups:
                    if group:
                        waiting.append(pool.submit(begin, group))
                    if len(waiting) >= _GROUPS_AHEAD * workers:
                        yield from (future.result() for future in waiting.popleft().result())
                while waiting:
                    yield from (future.result() for future in waiting.popleft().result())
        finally:
            pool.shutdown(cancel_futures=True)


def _session_of(item: object) -> tuple[str, ...]:
    """Return the id of the session that an item is, or begins with; nothing for another item."""
    first = item[0] if isinstance(item, tuple) else item
    return (first.id,) if isinstance(first, Session) else ()


def holds_answer(row: Any) -> bool:
    """Return whether somebody answered for a row of judging or of scoring.

    A judgement without a score may be one for which nobody was asked, as of an unknown plan.
    """
    is_judgement = bool(getattr(row, "judge", ""))
    return row.status == "ok" and not (is_judgement and row.score is None)


def failure_of(error: Exception) -> str:
    """Return the reason that a failed row gives for an error."""
    return str(error) if isinstance(error, DebriefError) else f"{type(error).__name__}: {error}"


def version_of(evaluator: object) -> str:
    """Return the version of an evaluator whose own rules can change under one name, else ''."""
    return str(getattr(evaluator, "version", ""))
