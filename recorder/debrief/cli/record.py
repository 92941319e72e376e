"""``debrief record``: the life of a recorded session, in the terminal.

No name that a file has can give orders to the terminal: all pass through ``readable``.
"""

from __future__ import annotations

import codecs
import sys
from contextlib import nullcontext, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.record_files import record_apply, record_check, record_commands, record_schemas
from debrief.cli.record_output import (
    AsJson,
    RecordGroup,
    command_line,
    content,
    json_line,
    print_changes,
    print_missing,
    print_redactions,
    print_sessions,
    redactor_of,
    server_for,
    settings_and_home,
)
from debrief.cli.record_server import (
    CreateTask,
    record_export,
    record_history,
    record_mark,
    record_upload,
    tasks_app,
)
from debrief.cli.serve import ready_rule
from debrief.cli.shared import Repo, console, print_json, warn
from debrief.errors import InputError

if TYPE_CHECKING:
    from debrief.recorder.contracts import CommandRules

app = typer.Typer(
    cls=RecordGroup,
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
_TIMED_OUT = 124


@app.command("start")
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
    as_json: AsJson = False,
) -> None:
    """Start a session in a worktree in which nothing is changed yet.

    The last commit is its baseline. Without **--prompt** you are asked for one. Your repository,
    its index and its stash are never touched; the session is kept in **~/.debrief/recorder**.
    Where **DEBRIEF_RECORDER_URL** is set, you see at once what would keep the record from that
    server, such as a task that it does not have.
    """
    from debrief.recorder.answers import error_answer, session_answer
    from debrief.recorder.local_session import NewSession
    from debrief.recorder.session import session_of, start
    from debrief.recorder.stopping import preflight_check

    settings, home = settings_and_home()
    words = _text("prompt", prompt, prompt_file)
    if words is None:
        if not sys.stdin.isatty():
            error = InputError("--prompt", "is missing", "Give it, or --prompt-file FILE.")
            raise error.known_as("prompt-missing")
        words = str(typer.prompt("What is to be done?"))
    started = start(
        home,
        repo,
        NewSession(
            task_id=task,
            prompt=words,
            system=_text("system", system, system_file),
            contents="none" if no_contents else "full",
            ignore=(*settings.recorder_ignore, *(ignore or ())),
        ),
    )
    problem = preflight_check(settings, started.task_id)
    if as_json:
        session = session_answer(session_of(home, repo), ready_rule(settings.ready_rule))
        print_json({"session": session, "warning": problem and error_answer(problem)})
        return
    out = console()
    out.print(
        f"Recording {started.worktree} for task {started.task_id}, from {started.base_ref[:12]} on."
    )
    out.print("Edit as usual; record checks with: debrief record run -- pnpm test")
    out.print("End with: debrief record stop")
    if problem:
        warn(str(problem))


@app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def record_run(
    command: Annotated[list[str], typer.Argument(metavar="-- pnpm …", help="The command.")],
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.1, max=86_400, help="Seconds until it is ended; 600 if none is said."),
    ] = None,
    repo: Repo = Path(),
    as_json: AsJson = False,
) -> None:
    """Run a command and record it with what it prints: **debrief record run -- pnpm test**.

    Allowed are pnpm's lint, test, build, install, add and remove, and what the repository adds in
    **.debrief/recorder.toml** (**debrief record commands**), once you have agreed to it. Ends with
    the command's own exit code, and with 124 when it was ended at its time limit. With **--json**
    it prints lines, **{"output": …}** as it comes and **{"command": …}** at the end, and its own
    exit code is 0.
    """
    from debrief.recorder.answers import command_answer, rules_here
    from debrief.recorder.session import run, session_of

    _, home = settings_and_home()
    if as_json:
        show = partial(_show_json, codecs.getincrementaldecoder("utf-8")("replace"))
        run(home, repo, command, show=show, time_limit=time_limit)
        ran = session_of(home, repo).commands()[-1]
        answer = command_answer(ran, rules_here(home, repo))
        print(json_line({"command": answer}), flush=True)
        return
    end = run(home, repo, command, show=_show, time_limit=time_limit, agrees=_agrees)
    if end.exit_code is None:
        recorded = f"debrief: recorded as {end.ending.strip('()')}"
        console(stderr=True).print(recorded, style="red")
        raise typer.Exit(_TIMED_OUT)
    if end.exit_code:
        warn(f"recorded with exit code {end.exit_code}")
    raise typer.Exit(end.exit_code)


@app.command("status")
def record_status(
    repo: Repo = Path(),
    everywhere: Annotated[
        bool, typer.Option("--all", help="All sessions of this machine, and records that wait.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what changed so far, which commands ran, and what a ready record still lacks.

    Secrets are looked for, and the round trip is verified, when the session is stopped.
    """
    from debrief.recorder.answers import status_answer
    from debrief.recorder.session import session_of
    from debrief.recorder.status import status_of

    settings, home = settings_and_home()
    rule = ready_rule(settings.ready_rule)
    if as_json:
        print_json(status_answer(home, repo, rule, settings.recorder_ignore))
        return
    if everywhere:
        print_sessions(home)
        return
    session = session_of(home, repo)
    started = session.started
    out = console()
    out.print(
        f"{started.worktree}: task {started.task_id}, since {started.started_at:%F %T} UTC, from "
        f"{started.base_ref[:12]}" + (f" on {started.branch}" if started.branch else "")
    )
    busy = home.is_busy(session.worktree)
    if session.record() is not None:
        out.print(
            "Its record is made, and was not sent or written. Go on with: debrief record stop"
        )
        return
    commands = session.commands()
    for command in commands:
        running = busy and not command.is_over and command is commands[-1]
        out.print(f"  {command_line(command, running=running)}")
    if not commands:
        out.print("  no command was run")
    status = status_of(session, rule)
    print_changes(status, status.changes)
    print_missing(status.not_ready)


@app.command("stop")
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
    accept_skipped: Annotated[
        bool,
        typer.Option(
            "--accept-skipped",
            help="You saw what could not be recorded, and the record is whole without it.",
        ),
    ] = False,
    repo: Repo = Path(),
    as_json: AsJson = False,
) -> None:
    """Make the record, verify that it rebuilds your changes, and send it.

    It goes to **DEBRIEF_RECORDER_URL** with **DEBRIEF_RECORDER_TOKEN**. Secrets are replaced
    before. A record that cannot be sent waits for **debrief record upload**; stopping again after
    a crash sends the same bytes, which the server has once.
    """
    from debrief.recorder.answers import plain
    from debrief.recorder.local_session import StopOptions
    from debrief.recorder.messages import changes_of
    from debrief.recorder.stopping import stop

    settings, home = settings_and_home()
    rule = ready_rule(settings.ready_rule)
    options = StopOptions(
        summary=summary,
        ignore=tuple(ignore or ()),
        create_task=create_task,
        ready=ready,
        keep=keep,
        accept_skipped=accept_skipped,
    )
    redactor = redactor_of(settings)
    with nullcontext(local.absolute()) if local else server_for("write") as target:
        done = stop(home, repo, target, redactor=redactor, rule=rule, options=options)
    meta, changes = done.record.meta, changes_of(done.record)
    if as_json:
        answer = {
            "sessionId": str(meta.session_id),
            "sent": done.receipt is not None,
            "file": None if local is None else str(local.absolute()),
            "status": done.receipt.status if done.receipt is not None else "",
            "notReady": done.not_ready,
            "size": done.size,
            "meta": {**plain(meta), "changes": [plain(change) for change in changes]},
        }
        print_json(answer)
        return
    out = console()
    if done.made_before:
        out.print("The record was made by an earlier stop, and is as it was then.")
    print_changes(meta, changes)
    print_redactions(meta.redactions)
    where = f"written to {local}"
    if local is None:
        where = f"sent, stored{f' as {done.receipt.status}' if done.receipt else ''}"
        if keep:
            where += f", kept as {home.kept_file(str(meta.session_id))}"
    out.print(f"Record {meta.session_id}: {done.size:,} bytes, {where}")
    print_missing(done.not_ready)


@app.command("discard")
def record_discard(
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Another session, or a record that waits."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    repo: Repo = Path(),
    as_json: AsJson = False,
) -> None:
    """Forget the session. Your files stay as they are."""
    from debrief.recorder.session import discard
    from debrief.recorder.stopping import forget

    _, home = settings_and_home()
    if not (yes or as_json) and sys.stdin.isatty():
        typer.confirm("Forget what was recorded? Your files stay as they are.", abort=True)
    if session is None:
        discard(home, repo)
    elif not forget(home, session):
        error = InputError(session, "is no session here", "See: debrief record status --all")
        raise error.known_as("no-session")
    if as_json:
        print_json({"discarded": True})
        return
    console().print("Forgotten. Your files are as they were.")


app.command("upload")(record_upload)
app.command("commands")(record_commands)
app.command("apply")(record_apply)
app.command("check")(record_check)
app.command("schemas")(record_schemas)
app.command("history")(record_history)
app.command("mark")(record_mark)
app.command("export")(record_export)
app.add_typer(tasks_app, name="tasks")


def _text(name: str, given: str | None, file: Path | None) -> str | None:
    if given is not None and file is not None:
        raise InputError(f"--{name} and --{name}-file", "are both given", "Give one of them.")
    if file is None:
        return given
    try:
        return content(file).decode()
    except UnicodeDecodeError as error:
        raise InputError(str(file), "is not UTF-8 text") from error


def _agrees(rules: CommandRules) -> bool:
    """Ask once about a repository's own commands; without a terminal nobody agrees."""
    if not sys.stdin.isatty():
        return False
    errors = console(stderr=True)
    errors.print("This repository lets the recorder run, beside pnpm:")
    for rule in rules.commands:
        errors.print(f"  {' '.join((rule.program, *rule.arguments))}")
    with redirect_stdout(sys.stderr):  # the last space of a question goes to stdout otherwise
        return typer.confirm("Do you agree to that?", err=True)


def _show(piece: bytes) -> None:
    """Show output as it comes; where nobody reads it any more, it is recorded all the same."""
    with suppress(BrokenPipeError, ValueError):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _show_json(decoder: codecs.IncrementalDecoder, piece: bytes) -> None:
    """Show output as JSON lines; a character that two pieces share comes with the second."""
    with suppress(BrokenPipeError):
        print(json_line({"output": decoder.decode(piece)}), flush=True)
