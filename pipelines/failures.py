"""Why a run failed, in the words of whatever failed first."""

from collections.abc import Iterable, Iterator

import dagster as dg
from dagster._core.events import JobFailureData
from dagster_shared.error import SerializableErrorInfo

from debrief.errors import DebriefError

INTERRUPTED = "DagsterExecutionInterruptedError"


def was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Return whether somebody stopped the run, so that nothing is wrong with what it did."""
    return any(
        event.step_failure_data.error is not None
        and INTERRUPTED in (event.step_failure_data.error.cls_name or "")
        for event in result.all_events
        if event.is_step_failure
    )


def first_failure(result: dg.ExecuteInProcessResult) -> tuple[str, str]:
    """Return the step that failed first, and its root reason without the error's class."""
    return failure_in(result.all_events, result.job_def.name)


def failure_in(events: Iterable[dg.DagsterEvent], job: str) -> tuple[str, str]:
    """Return the step that failed first in a run's events, and its root reason.

    Args:
        events: of the run.
        job: what is named when no step failed, with what was said of the whole run.
    """
    told = "the run failed before its first step"
    for event in events:
        if event.is_run_failure:
            told = _of_run(event) or told
        if not event.is_step_failure:
            continue
        error = _reason(event.step_failure_data.error)
        message = error.message.strip() if error is not None else "no reason given"
        kind = f"{error.cls_name}: " if error is not None and error.cls_name else ""
        _, separator, reason = message.partition(kind)
        return str(event.step_key), reason if kind and separator else message
    return job, told


def failure_for_strangers(events: Iterable[dg.DagsterEvent], job: str) -> tuple[str, str]:
    """Return what ``failure_in`` does, but only words that were written for people.

    Of an error that is not one of ours, whose message may quote anything, only the kind is told.
    """
    found = list(events)
    for event in found:
        if event.is_step_failure:
            error = _reason(event.step_failure_data.error)
            if error is None or error.cls_name not in _written():
                return str(event.step_key), error.cls_name or "" if error is not None else ""
            break
        if event.is_run_failure:
            data = event.event_specific_data
            error = _reason(data.error if isinstance(data, JobFailureData) else None)
            if error is not None and error.cls_name not in _written():
                return job, error.cls_name or ""
    return failure_in(found, job)


def _of_run(event: dg.DagsterEvent) -> str:
    """Return what is said of a run that failed as a whole."""
    data = event.event_specific_data
    error = data.error if isinstance(data, JobFailureData) else None
    error = _reason(error)
    return (error.message if error is not None else event.message or "").strip()


def _reason(error: SerializableErrorInfo | None) -> SerializableErrorInfo | None:
    """Return the last of an error's causes that was written for people, else its root."""
    chain = []
    while error is not None:
        chain.append(error)
        error = error.cause
    told = [each for each in chain if each.cls_name in _written()]
    found = told or chain
    return found[-1] if found else None


def _written() -> set[str]:
    return {kind.__name__ for kind in _kinds(DebriefError)}


def _kinds(kind: type[DebriefError]) -> Iterator[type[DebriefError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)
