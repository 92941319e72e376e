"""The ``debrief`` command: all commands that need no orchestrator, put together.

A module holds a group of commands, and imports what takes time inside the command's own function.
"""

from __future__ import annotations

from typing import Annotated

import typer

from debrief.cli import (
    advice,
    ask,
    capture,
    criteria,
    database,
    eval,
    execute,
    export,
    leaderboard,
    outcomes,
    record,
    score,
    serve,
    show,
    sources,
    tasks,
    team,
    training,
    view,
)
from debrief.cli.recorder_app import show_version
from debrief.cli.shared import ErrorReportingGroup

app = typer.Typer(
    name="debrief",
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help=(
        "Reads the coding-agent sessions you already have: what each came to and why, what goes "
        "wrong again and again, and training data without secrets.\n\n"
        "Start with **debrief** alone: it shows your own sessions in a browser, without a key. "
        "**debrief demo** does it all with sample sessions."
    ),
)

SESSIONS = "Sessions, scores, training sets"
CAPTURE = "Capture and recording"
TEAM = "A team's instance"


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print and exit."),
    ] = False,
) -> None:
    """Take the options that come before a command."""


for panel, commands in {
    SESSIONS: (
        sources.sources,
        view.view,
        score.score,
        show.show,
        advice.advice,
        ask.ask,
        leaderboard.leaderboard,
        outcomes.outcomes,
        execute.execute,
        export.export,
        tasks.tasks,
        training.train,
    ),
    CAPTURE: (capture.code, capture.migrate),
    TEAM: (team.push, serve.serve),
}.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.command("eval", rich_help_panel=SESSIONS)(eval.evaluate)
app.command("judge", rich_help_panel=SESSIONS, help="The same as **eval**.")(eval.evaluate)
for panel, groups in {
    SESSIONS: {
        "judges": criteria.judges_app,
        "rubrics": criteria.rubrics_app,
        "skill": score.skill_app,
    },
    CAPTURE: {"hooks": capture.hooks_app, "record": record.app},
    TEAM: {
        "cache": team.cache_app,
        "database": database.database_app,
        "tokens": database.tokens_app,
    },
}.items():
    for name, group in groups.items():
        app.add_typer(group, name=name, rich_help_panel=panel)
