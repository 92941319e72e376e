"""Why a run failed, in the words of whatever failed first."""

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from debrief.errors import DebriefError

INTERRUPTED = "DagsterExecutionInterruptedError"


def was_interrupted(events: Iterable[dg.DagsterEvent]) -> bool:
    """Return whether somebody stopped the run, so that nothing is wrong with what it did."""
    errors = (event.step_failure_data.error for event in events if event.is_step_failure)
    return any(error is not None and INTERRUPTED in (error.cls_name or "") for error in errors)


def failure_in(events: Iterable[dg.DagsterEvent], job: str) -> tuple[str, str]:
    """Return the step that failed first in a run's events, and its root reason.

    Args:
        events: of the run.
        job: is named when no step failed, with the reason of the whole run.
    """
    step, error, reason = _failure(events, job)
    if error is None:
        return step, reason
    kind = f"{error.cls_name}: " if error.cls_name else ""
    return step, error.message.strip().rpartition(kind)[2] if kind else error.message.strip()


def failure_for_strangers(events: Iterable[dg.DagsterEvent], job: str) -> tuple[str, str]:
    """Return what ``failure_in`` does, but only words that were written for people.

    Of an error that is not one of ours, whose message may quote anything, only the kind is named.
    """
    found = list(events)
    step, error, _ = _failure(found, job)
    if error is not None and error.cls_name not in _own_errors():
        return step, error.cls_name or ""
    return failure_in(found, job)


def _failure(events: Iterable[dg.DagsterEvent], job: str) -> tuple[str, Any, str]:
    """Return the step, the error if one is known, else the reason."""
    error, reason = None, "the run failed before its first step"
    for event in events:
        if event.is_step_failure:
            error = _cause(event.step_failure_data.error)
            return str(event.step_key), error, "no reason given"
        if event.is_run_failure:
            error = _cause(getattr(event.event_specific_data, "error", None))
            reason = (event.message or "").strip() or reason
    return job, error, reason


def _cause(error: Any) -> Any:
    """Return the last of an error's causes that was written for people, else its root."""
    chain = []
    while error is not None:
        chain.append(error)
        error = error.cause
    own = [each for each in chain if each.cls_name in _own_errors()]
    return (own or chain or [None])[-1]


def _own_errors() -> set[str]:
    return {kind.__name__ for kind in _kinds(DebriefError)}


def _kinds(kind: type[DebriefError]) -> Iterator[type[DebriefError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)
