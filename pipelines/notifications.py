"""Messages to the webhook about runs that failed.

A message leaves the house, so it holds what was written for people alone: the reasons that our own
errors give, with secrets taken out. The words of any other error may quote a transcript; of such
a one only its kind is named, and where the rest is to be read.
"""

from __future__ import annotations

import dagster as dg

from debrief.errors import DebriefError
from debrief.markdown import shorten
from debrief.redaction.redactor import Redactor, key_of
from debrief.settings import load_settings
from pipelines.failures import INTERRUPTED, failure_for_strangers
from resources.webhook import WebhookResource

_LONGEST_REASON = 500
_FAILURES = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}


@dg.failure_hook(required_resource_keys={"webhook"})
def send_failure(context: dg.HookContext) -> None:
    """Send which step failed and why; nothing when somebody stopped it."""
    error = context.op_exception
    if error is not None and type(error).__name__ == INTERRUPTED:
        return
    why = str(error) if isinstance(error, DebriefError) else type(error).__name__
    webhook: WebhookResource = context.resources.webhook
    webhook.send(context.log, f"Debrief: {context.op.name} failed: {_short(why)}", context.run_id)


@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Sends a message about a run that was killed, or failed before its first step; of steps "
        "that failed, the run itself does."
    ),
)
def killed_runs(context: dg.RunFailureSensorContext, webhook: WebhookResource) -> dg.SkipReason:
    """Send why a run failed that could not send it itself."""
    run = context.dagster_run
    records = context.instance.all_logs(run.run_id, of_type=_FAILURES)
    events = [record.dagster_event for record in records if record.dagster_event is not None]
    if run.job_name not in ("whole_graph", "training_sets_job") or any(
        event.is_step_failure for event in events
    ):
        return dg.SkipReason("Not of the graph, or the run has sent it.")
    _, why = failure_for_strangers(events, run.job_name)
    webhook.send(context.log, f"Debrief: {run.job_name} failed: {_short(why)}", run.run_id)
    return dg.SkipReason("Sent.")


def _short(text: str) -> str:
    """Return a reason in one line; secrets go first, for half of one would not be recognised."""
    return shorten(Redactor(key_of(load_settings())).redact(text).text, _LONGEST_REASON)
