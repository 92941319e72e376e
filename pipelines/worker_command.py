"""The command that starts a worker."""

from __future__ import annotations

from typing import Annotated

import typer

from debrief.cli.app import TEAM, app


@app.command(rich_help_panel=TEAM)
def worker(
    name: Annotated[str, typer.Option(help="Of the worker, in logs. Default: its queue.")] = "",
) -> None:
    """Take runs from the queue and carry them out, on as many machines as you start it on.

    Needs DEBRIEF_BROKER, DAGSTER_DATABASE_URL, DEBRIEF_LAKE and DEBRIEF_REDACTION_KEY, the same
    everywhere; the processes that launch runs need DEBRIEF_LAUNCH=queue too. SIGTERM or Ctrl-C
    ends it after the run under way.
    """
    from debrief.settings import load_settings
    from pipelines.worker import work

    work(load_settings(), name=name)
