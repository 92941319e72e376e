"""``debrief record``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.commands.options import Repo
from debrief.cli.console import told

app = typer.Typer(
    no_args_is_help=True,
    help="Record what you change yourself: a session with a task, a prompt, your changes exactly "
    "as git has them, and the commands that you ran. Start on a clean worktree, edit, stop.",
)

Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="GLOB",
        help="Leave these paths out, in the syntax of gitignore; may be given more than once.",
    ),
]
CreateTask = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Make the task on the server if it is not there, so named."),
]
RecordFile = Annotated[Path, typer.Argument(metavar="FILE", help="A record's file.")]


@app.command("start")
@told
def record_start(
    task: Annotated[str, typer.Option(help="The task's id, such as rsc-convert.")],
    prompt: Annotated[str | None, typer.Option(help="What is to be done, in words.")] = None,
    prompt_file: Annotated[
        Path | None, typer.Option(help="The same, from a file; - for standard input.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="A system prompt.")] = None,
    system_file: Annotated[Path | None, typer.Option(help="The same, from a file.")] = None,
    no_contents: Annotated[
        bool, typer.Option("--no-contents", help="Never record what is in files or printed.")
    ] = False,
    ignore: Ignore = None,
    repo: Repo = Path(),
) -> None:
    """Start a session in a worktree in which nothing is changed yet.

    The last commit is its baseline. Without **--prompt** you are asked for one. Your repository,
    its index and its stash are never touched; the session is kept in **~/.debrief/recorder**.
    Where **DEBRIEF_RECORDER_URL** is set, you are told at once what would keep the record from
    that server, such as a task that it does not have.
    """
    from debrief.cli.record import start_session

    start_session(
        repo,
        task=task,
        prompt=prompt,
        prompt_file=prompt_file,
        system=system,
        system_file=system_file,
        contents="none" if no_contents else "full",
        ignore=ignore or (),
    )


@app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@told
def record_run(
    command: Annotated[list[str], typer.Argument(metavar="-- pnpm …", help="The command.")],
    time_limit: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Seconds until it is ended.")
    ] = 600,
    repo: Repo = Path(),
) -> None:
    """Run a command and record it with what it prints: **debrief record run -- pnpm test**.

    Allowed are pnpm's lint, test, build, install, add and remove. Ends with the command's own
    exit code, and with 124 when it was ended at its time limit.
    """
    from debrief.cli.record import run_command

    raise typer.Exit(run_command(repo, command, time_limit))


@app.command("status")
@told
def record_status(
    repo: Repo = Path(),
    everywhere: Annotated[
        bool, typer.Option("--all", help="All sessions of this machine, and records that wait.")
    ] = False,
) -> None:
    """Tell what changed so far, which commands ran, and what a ready record still lacks."""
    from debrief.cli.record import show_all, show_session

    if everywhere:
        show_all()
    else:
        show_session(repo)


@app.command("stop")
@told
def record_stop(
    local: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the record there; send nothing.")
    ] = None,
    summary: Annotated[
        str | None, typer.Option(help="Closing words, instead of those made from the facts.")
    ] = None,
    ignore: Ignore = None,
    create_task: CreateTask = None,
    ready: Annotated[
        bool, typer.Option("--ready", help="Mark it ready for training, if nothing is missing.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the record's file after it was sent.")
    ] = False,
    repo: Repo = Path(),
) -> None:
    """Make the record, verify that it rebuilds your changes, and send it.

    It goes to **DEBRIEF_RECORDER_URL** with **DEBRIEF_RECORDER_TOKEN**. Secrets are replaced
    before. A record that cannot be sent waits for **debrief record upload**; stopping again after
    a crash sends the same bytes, which the server has once.
    """
    from debrief.cli.record import stop_session

    stop_session(
        repo,
        local=local,
        summary=summary,
        ignore=ignore or (),
        create_task=create_task,
        ready=ready,
        keep=keep,
    )


@app.command("upload")
@told
def record_upload(create_task: CreateTask = None) -> None:
    """Send the records that wait; exit code 1 if one still does."""
    from debrief.cli.record import upload_waiting

    raise typer.Exit(upload_waiting(create_task))


@app.command("discard")
@told
def record_discard(
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Another session, or a record that waits."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    repo: Repo = Path(),
) -> None:
    """Forget the session. Your files stay as they are."""
    from debrief.cli.record import discard_session

    discard_session(repo, session, yes=yes)


@app.command("apply")
@told
def record_apply(
    file: RecordFile,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The top of a clean checkout of its baseline.")
    ] = Path(),
) -> None:
    """Apply a record's changes to a folder: all of them, verified, or none."""
    from debrief.cli.record import apply_record

    apply_record(file, to)


@app.command("check")
@told
def record_check(file: RecordFile, repo: Repo = Path()) -> None:
    """Tell what is wrong with a record, what it lacks to be ready, and if it rebuilds its tree.

    The last needs a repository that has its baseline. Exit code 1 if anything is wrong.
    """
    from debrief.cli.record import check_record

    raise typer.Exit(check_record(file, repo))


@app.command("schemas")
@told
def record_schemas(
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A folder, made if need be.")],
) -> None:
    """Write the JSON Schemas of records, tools and the service's bodies, for other languages."""
    from debrief.cli.record import write_schemas_to

    write_schemas_to(to)
