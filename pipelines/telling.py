"""Word of runs of the whole graph to a webhook: how the week was, or what failed and why.

A message leaves the house, so it holds what was written for people alone: the reasons that our own
errors give, with secrets taken out. The words of any other error may quote a transcript; of such
a one only its kind is told, and where the rest is to be read.
"""

from __future__ import annotations

from logging import Logger

import dagster as dg

from debrief.errors import DebriefError
from debrief.redaction.redactor import Redactor, key_of
from debrief.settings import Settings, load_settings
from debrief.weekly.message import send, webhook_of
from pipelines.failures import INTERRUPTED, failure_for_strangers
from resources.attendance import PARENT_TAG

_LONGEST_REASON = 500
_STEP, _RUN = dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE


def tell(log: Logger, text: str, run_id: str) -> None:
    """Send a message about a run, if there is a webhook; a failure is a warning."""
    settings = load_settings()
    url = webhook_of(settings)
    if not url:
        return
    problem = send(url, f"{text} {where(settings, run_id)}", Redactor(key_of(settings)))
    if problem:
        log.warning(f"no message was sent: {problem}")


def where(settings: Settings, run_id: str) -> str:
    """Return where a run is to be looked at."""
    ui = settings.ui_url.rstrip("/")
    return f"{ui}/runs/{run_id}" if ui else f"(run {run_id})"


@dg.failure_hook
def tell_failure(context: dg.HookContext) -> None:
    """Send word of a step that failed; nothing when somebody stopped it."""
    error = context.op_exception
    if error is not None and type(error).__name__ == INTERRUPTED:
        return
    why = _of_stages(context.instance, context.run_id) or _of_error(error)
    tell(context.log, f"Debrief: {context.op.name} failed: {_short(why)}", context.run_id)


def tell_death(instance: dg.DagsterInstance, run: dg.DagsterRun, log: Logger) -> bool:
    """Send word of a run that failed as a whole, and return whether there was need to.

    No step of it can have told: its process was killed, or did not come so far.
    """
    failures = _failures(instance, run.run_id)
    if any(event.is_step_failure for event in failures):
        return False
    _, why = failure_for_strangers(failures, run.job_name)
    tell(log, f"Debrief: {run.job_name} failed: {_short(why)}", run.run_id)
    return True


def _of_stages(instance: dg.DagsterInstance, run_id: str) -> str:
    """Return why the stages failed that a run launched; empty when none did."""
    wanted = dg.RunsFilter(tags={PARENT_TAG: run_id}, statuses=[dg.DagsterRunStatus.FAILURE])
    reasons: dict[str, None] = {}
    for run in reversed(instance.get_runs(wanted)):
        step, why = failure_for_strangers(_failures(instance, run.run_id), run.job_name)
        reasons[f"{step}: {why}"] = None
    return "; ".join(reasons)


def _of_error(error: BaseException | None) -> str:
    if isinstance(error, DebriefError):
        return str(error)
    return type(error).__name__ if error is not None else "no reason was given"


def _failures(instance: dg.DagsterInstance, run_id: str) -> list[dg.DagsterEvent]:
    records = instance.all_logs(run_id, of_type={_STEP, _RUN})
    return [record.dagster_event for record in records if record.dagster_event is not None]


def _short(text: str) -> str:
    """Return a reason in one line; secrets go first, for half of one would not be known."""
    line = " ".join(Redactor(key_of(load_settings())).redact(text).text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 1]}…"
