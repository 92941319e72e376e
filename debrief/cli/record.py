"""``debrief record``: the life of a recorded session, in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from debrief.cli.console import console
from debrief.cli.record_lines import (
    MOST_LINES,
    print_changes,
    print_missing,
    ran_line,
    told_of,
)
from debrief.errors import InputError
from debrief.recorder.paths import readable
from debrief.recorder.state import RecorderHome, StopOptions
from debrief.settings import Settings, load_settings

if TYPE_CHECKING:
    from debrief.recorder.client import RecorderClient
    from debrief.recorder.contracts import Contents, Record
    from debrief.redaction import Redactor

_TIMED_OUT = 124


def start_session(
    folder: Path,
    *,
    task: str,
    prompt: str | None,
    prompt_file: Path | None,
    system: str | None,
    system_file: Path | None,
    contents: Contents,
    ignore: Sequence[str],
) -> None:
    """Start a session and say what comes next."""
    from debrief.recorder.preflight import preflight_check
    from debrief.recorder.session import NewSession, start

    settings = load_settings()
    words = _text("prompt", prompt, prompt_file)
    started = start(
        RecorderHome(settings.home),
        folder,
        NewSession(
            task_id=task,
            prompt=_asked() if words is None else words,
            system=_text("system", system, system_file),
            contents=contents,
            ignore=(*settings.recorder_ignore, *ignore),
        ),
    )
    out = console()
    out.print(
        f"Recording {started.worktree} for task {started.task_id}, from "
        f"{started.base_ref[:12]} on.",
        soft_wrap=True,
    )
    out.print("Edit as usual; record checks with: debrief record run -- pnpm test")
    out.print("End with: debrief record stop")
    if error := preflight_check(settings, started.task_id):
        console(stderr=True).print(f"debrief: {error}", style="yellow", soft_wrap=True)


def run_command(folder: Path, command: Sequence[str], time_limit: float) -> int:
    """Run a command of the allowlist with its output shown; return the exit code to end with."""
    from debrief.recorder.session import run

    home = RecorderHome(load_settings().home)
    end = run(home, folder, command, show=_show, time_limit=time_limit)
    said = console(stderr=True)
    if end.exit_code is None:
        said.print(f"debrief: recorded as {end.ending.strip('()')}", style="red", soft_wrap=True)
        return _TIMED_OUT
    if end.exit_code:
        said.print(f"debrief: recorded with exit code {end.exit_code}", style="yellow")
    return end.exit_code


def show_session(folder: Path) -> None:
    """Print what a session has so far, and what its record would lack."""
    from debrief.cli.serve import ready_rule
    from debrief.recorder.checks import readiness
    from debrief.recorder.session import session_of, utc_now
    from debrief.recorder.stopping import record_so_far

    settings = load_settings()
    home = RecorderHome(settings.home)
    session = session_of(home, folder)
    started = session.folder.started()
    out = console()
    out.print(
        f"{started.worktree}: task {started.task_id}, since {started.started_at:%F %T} UTC, from "
        f"{started.base_ref[:12]}" + (f" on {started.branch}" if started.branch else ""),
        soft_wrap=True,
    )
    busy = home.is_busy(session.worktree)
    if session.folder.record() is not None:
        out.print(
            "Its record is made, and was not sent or written. Go on with: debrief record stop"
        )
        return
    commands = session.folder.commands()
    for command in commands:
        running = busy and not command.is_over and command is commands[-1]
        out.print(f"  {ran_line(command, running=running)}", soft_wrap=True)
    if not commands:
        out.print("  no command was run")
    record = record_so_far(session, _redactor(settings), utc_now())
    print_changes(record.meta)
    rule = ready_rule(settings.ready_rule)
    print_missing(readiness(record, rule))


def show_all() -> None:
    """Print every session of this machine, and the records that wait."""
    home = RecorderHome(load_settings().home)
    out = console()
    unsent = home.unsent()
    made = {session.path for session in unsent}
    opened = [session for session in home.opened() if session.path not in made]
    for kind, sessions in (("under way", opened), ("waits to be sent", unsent)):
        for session in sessions:
            try:
                known = session.started()
            except InputError as error:
                out.print(f"{kind}: {error}", soft_wrap=True)
                continue
            out.print(
                f"{known.id} {kind}: task {known.task_id}, {known.worktree}, since "
                f"{known.started_at:%F %T} UTC",
                soft_wrap=True,
            )
    if not opened and not unsent:
        out.print("No session is under way, and no record waits.")


def stop_session(
    folder: Path,
    *,
    local: Path | None,
    summary: str | None,
    ignore: Sequence[str],
    create_task: str | None,
    ready: bool,
    keep: bool,
) -> None:
    """Stop a session: its record to a file, or to the server."""
    from debrief.cli.serve import ready_rule
    from debrief.recorder.stopping import StopRequest, stop

    settings = load_settings()
    home = RecorderHome(settings.home)
    rule = ready_rule(settings.ready_rule)
    request = StopRequest(
        summary=summary,
        ignore=tuple(ignore),
        options=StopOptions(create_task=create_task, ready=ready, keep=keep),
    )
    redactor = _redactor(settings)
    if local is not None:
        done = stop(home, folder, local.absolute(), redactor=redactor, rule=rule, request=request)
    else:
        with _server(settings) as server:
            done = stop(home, folder, server, redactor=redactor, rule=rule, request=request)
    meta = done.record.meta
    out = console()
    if done.made_before:
        out.print("The record was made by an earlier stop, and is as it was then.")
    print_changes(meta)
    where = f"written to {local}" if local is not None else f"sent, {told_of(done.receipt)}"
    if keep and local is None:
        where += f", kept as {home.path / 'kept' / f'{meta.session_id}.json'}"
    out.print(f"Record {meta.session_id}: {done.size:,} bytes, {where}", soft_wrap=True)
    missing = done.receipt.not_ready if done.receipt is not None else done.not_ready
    print_missing(missing)


def upload_waiting(create_task: str | None) -> int:
    """Send the records that wait; 1 when one still does."""
    from debrief.recorder.outbox import send_waiting

    settings = load_settings()
    home = RecorderHome(settings.home)
    out, errors = console(), console(stderr=True)
    if not home.unsent():
        out.print("No record waits.")
        return 0
    with _server(settings) as server:
        for sent in send_waiting(home, server, create_task):
            if sent.receipt is not None:
                out.print(f"{sent.session_id}: sent, {told_of(sent.receipt)}")
            else:
                errors.print(f"{sent.session_id}: {sent.error}", style="red", soft_wrap=True)
    left = len(home.unsent())
    if left:
        wait = "waits" if left == 1 else "wait"
        errors.print(
            f"debrief: {left} still {wait}. Again with: debrief record upload", style="red"
        )
    return 1 if left else 0


def discard_session(folder: Path, session_id: str | None, *, yes: bool) -> None:
    """Forget a session, after asking on a terminal."""
    import typer

    from debrief.recorder.outbox import forget
    from debrief.recorder.session import discard

    home = RecorderHome(load_settings().home)
    if not yes and sys.stdin.isatty():
        typer.confirm("Forget what was recorded? Your files stay as they are.", abort=True)
    if session_id is None:
        discard(home, folder)
    elif not forget(home, session_id):
        raise InputError(session_id, "is no session here", "See: debrief record status --all")
    console().print("Forgotten. Your files are as they were.")


def apply_record(file: Path, folder: Path) -> None:
    """Apply a record to a checkout of its baseline, and see that its tree came out."""
    from debrief.recorder.verification import replay

    record = read_record(file)
    changed = replay(record, folder)
    out = console()
    for path in changed[:MOST_LINES]:
        out.print(f"  {readable(path)}", soft_wrap=True)
    if len(changed) > MOST_LINES:
        out.print(f"  and {len(changed) - MOST_LINES:,} more")
    paths = "1 path" if len(changed) == 1 else f"{len(changed):,} paths"
    tree = record.meta.final_tree
    out.print(f"{paths} changed; the tree is {tree}, as recorded.", soft_wrap=True)


def check_record(file: Path, folder: Path) -> int:
    """Print what is wrong with a record; 1 if anything is."""
    from debrief.cli.serve import ready_rule
    from debrief.recorder.checks import problems_of, readiness
    from debrief.recorder.verification import rebuilds

    settings = load_settings()
    record = read_record(file)
    meta = record.meta
    out, errors = console(), console(stderr=True)
    out.print(
        f"Record {meta.session_id} of task {meta.task_id}, {readable(meta.repo_name)}",
        soft_wrap=True,
    )
    print_changes(meta)
    problems = problems_of(record)
    if not problems and meta.contents == "full":
        told = rebuilds(record, folder, _redactor(settings))
        if told is None:
            out.print(
                f"Not rebuilt: no repository here has its baseline {meta.base_ref}.",
                soft_wrap=True,
            )
        else:
            problems += told
            if not told:
                out.print(f"It rebuilds its tree, {meta.final_tree}.", soft_wrap=True)
    for problem in problems:
        errors.print(f"debrief: {problem}", style="red", soft_wrap=True)
    if not problems:
        print_missing(readiness(record, ready_rule(settings.ready_rule)))
    return 1 if problems else 0


def write_schemas_to(folder: Path) -> None:
    """Write the JSON Schemas."""
    from debrief.recorder.json_schemas import write_schemas

    for path in write_schemas(folder):
        console().print(str(path), soft_wrap=True)


def read_record(file: Path) -> Record:
    """Return the record in a file.

    Raises:
        InputError: it cannot be read, or holds no record.
    """
    from debrief.recorder.encoding import decode_record

    try:
        return decode_record(file.read_bytes(), str(file))
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror}") from error


def _server(settings: Settings) -> RecorderClient:
    from debrief.recorder.client import client_of

    def report(line: str) -> None:
        console(stderr=True).print(f"debrief: {line}", style="yellow", soft_wrap=True)

    server = client_of(settings, "write", report=report)
    if server.is_exposed:
        warn_of_exposure(server.url)
    return server


def warn_of_exposure(url: str) -> None:
    """Say that an address is of another machine, and not encrypted."""
    console(stderr=True).print(
        f"debrief: {url}: whoever is on the way can read the token and the records. Use https.",
        style="yellow",
        soft_wrap=True,
    )


def _redactor(settings: Settings) -> Redactor:
    from debrief.redaction.redactor import Redactor, key_of

    return Redactor(key_of(settings))


def _text(name: str, given: str | None, file: Path | None) -> str | None:
    if given is not None and file is not None:
        raise InputError(f"--{name} and --{name}-file", "are both given", "Give one of them.")
    if file is None:
        return given
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode()
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(str(file), "is not UTF-8 text") from error


def _asked() -> str:
    if not sys.stdin.isatty():
        raise InputError("--prompt", "is missing", "Give it, or --prompt-file FILE.")
    import typer

    words: str = typer.prompt("What is to be done?")
    return words


def _show(piece: bytes) -> None:
    """Show output as it comes; where nobody reads it any more, it is recorded all the same."""
    with suppress(BrokenPipeError, ValueError):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
