"""The jobs, why a run failed, and the messages about it.

A message about a failure leaves the house, so it holds what was written for people alone: the
reasons that our own errors give, with secrets taken out. The words of any other error may quote a
transcript; of such a one only its kind is named, and where the rest is to be read.
"""

import logging
from collections.abc import Iterable
from typing import Any

import dagster as dg

from debrief.errors import DebriefError
from debrief.markdown import shorten
from debrief.redaction.redactor import Redactor, key_of
from debrief.settings import load_settings
from resources import WebhookResource

INTERRUPTED = "DagsterExecutionInterruptedError"


def was_interrupted(events: Iterable[dg.DagsterEvent]) -> bool:
    """Return whether somebody stopped the run, so that nothing is wrong with what it did."""
    errors = (event.step_failure_data.error for event in events if event.is_step_failure)
    return any(error is not None and INTERRUPTED in (error.cls_name or "") for error in errors)


def failure_in(
    events: Iterable[dg.DagsterEvent], job: str, *, for_strangers: bool = False
) -> tuple[str, str]:
    """Return the step that failed first in a run's events, and its root reason.

    Args:
        events: of the run.
        job: is named when no step failed, with the reason of the whole run.
        for_strangers: only words that were written for people. Of an error that is not one of
            ours, whose message may quote anything, only the kind is named.
    """
    step, error, reason = job, None, "the run failed before its first step"
    for event in events:
        if event.is_step_failure:
            step, error = str(event.step_key), _cause(event.step_failure_data.error)
            reason = "no reason given"
            break
        if event.is_run_failure:
            error = _cause(getattr(event.event_specific_data, "error", None))
            reason = (event.message or "").strip() or reason
    if error is None:
        return step, reason
    kind, message = error.cls_name or "", error.message.strip()
    if for_strangers and kind not in _own_errors():
        return step, kind
    return step, message.removeprefix(f"{_own_errors().get(kind, kind)}: ")


def _cause(error: Any) -> Any:
    """Return the last of an error's causes that was written for people, else its root."""
    chain = []
    while error is not None:
        chain.append(error)
        error = error.cause
    own = [each for each in chain if each.cls_name in _own_errors()]
    return (own or chain or [None])[-1]


def _own_errors(kind: type[DebriefError] = DebriefError) -> dict[str, str]:
    """Return what Python writes before the words of each of our errors, by its name."""
    found = {kind.__name__: f"{kind.__module__}.{kind.__qualname__}"}
    for below in kind.__subclasses__():
        found |= _own_errors(below)
    return found


_LONGEST_REASON = 500
_FAILURES = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}


@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.RUNNING,
    # A command's run names no code location.
    monitor_all_code_locations=True,
    description="Sends which step of a run failed and why; nothing when somebody stopped the run.",
)
def failed_runs(
    context: dg.RunFailureSensorContext, webhook: WebhookResource
) -> dg.SkipReason | None:
    """Send why a run failed."""
    run = context.dagster_run
    records = context.instance.all_logs(run.run_id, of_type=_FAILURES)
    events = [record.dagster_event for record in records if record.dagster_event is not None]
    if was_interrupted(events):
        return dg.SkipReason("Somebody stopped it.")
    step, why = failure_in(events, run.job_name, for_strangers=True)
    webhook.send(context.log, f"Debrief: {step} failed: {_short(why)}", run.run_id)
    return None


def _short(text: str) -> str:
    """Return a reason in one line; secrets go first, for half of one would not be recognised."""
    return shorten(Redactor(key_of(load_settings())).redact(text).text, _LONGEST_REASON)


ON_REQUEST = dg.AssetSelection.assets("prompt_candidates")
"""Costs many model calls: made when it is named, never because of what it follows."""
OF_PAIRS = dg.AssetSelection.assets("training_sets")
IN_WHOLE_GRAPH = dg.AssetSelection.all() - OF_PAIRS - ON_REQUEST

whole_graph = dg.define_asset_job(
    "whole_graph",
    selection=IN_WHOLE_GRAPH,
    description=(
        "From transcripts to rubrics and reports, over a range of weeks; what has not changed is "
        "not done again. Training sets follow in a run of their own: their partitions, the pairs "
        "of task and fingerprint, are known only once sessions were judged."
    ),
)
training_sets_job = dg.define_asset_job(
    "training_sets_job",
    selection=OF_PAIRS,
    description="Write the training sets of observed pairs of task and fingerprint.",
)
candidates_job = dg.define_asset_job(
    "candidates_job",
    selection=ON_REQUEST,
    description="Propose better prompts from the training sets of pairs; asks a language model.",
)
JOBS = (whole_graph, training_sets_job, candidates_job)


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags of a run over every partition from ``first`` to ``last``."""
    return {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
    }


@dg.logger(None, "Prints nothing: for commands that show progress themselves.")
def quiet_logger(_: dg.InitLoggerContext) -> logging.Logger:
    """Return a logger that nothing passes."""
    return logging.Logger("debrief.quiet", logging.CRITICAL + 1)
