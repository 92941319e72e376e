"""What ``debrief record`` prints of sessions, commands and records, and the option ``--json``.

No name that a file has can give orders to the terminal: all pass through ``readable``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from debrief.cli.shared import console, warn, without_secrets
from debrief.errors import DebriefError, InputError, readable
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.recorder.client import RecorderClient
    from debrief.recorder.contracts import FileChange, Meta, Redactions
    from debrief.recorder.local_session import RanCommand
    from debrief.recorder.state import RecorderHome
    from debrief.recorder.status import SessionStatus
    from debrief.redaction import Redactor
    from debrief.settings import Settings


_KEY = "debrief.record.json"


def _remember(context: typer.Context, is_given: bool) -> bool:
    context.meta[_KEY] = is_given
    return is_given


AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=_remember,
        is_eager=True,
        help="Answer in JSON, for programs; an error as well, on the error output.",
    ),
]


class RecordGroup(TyperGroup):
    """Commands whose errors are JSON where their answers would be."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command that the arguments name."""
        try:
            return super().invoke(ctx)
        except DebriefError as error:
            from debrief.recorder.answers import error_answer

            if not ctx.meta.get(_KEY):
                raise
            line = json_line({"error": error_answer(error)})
            print(without_secrets().redact_json(line).text, file=sys.stderr, flush=True)
            raise typer.Exit(1) from None


def json_line(value: object) -> str:
    """Return whatever msgspec encodes as one line of JSON, in ASCII."""
    import json

    import msgspec

    return json.dumps(msgspec.to_builtins(value))


_MOST_LINES = 30


def settings_and_home() -> tuple[Settings, RecorderHome]:
    """Return this machine's settings, and the recorder's folders."""
    from debrief.recorder.state import RecorderHome
    from debrief.settings import load_settings

    settings = load_settings()
    return settings, RecorderHome(settings.home)


def server_for(scope: Literal["read", "write", "export"]) -> RecorderClient:
    """Return a client of the configured server that warns on the error output.

    Raises:
        ConfigurationError: the server's address or its token is missing or wrong.
    """
    from debrief.recorder.client import client_of
    from debrief.settings import load_settings

    return client_of(load_settings(), scope, report=warn)


def content(file: Path) -> bytes:
    """Return what a file holds; of ``-``, what is typed or piped.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror}") from error


def redactor_of(settings: Settings) -> Redactor:
    """Return what replaces secrets with this machine's key."""
    from debrief.redaction.redactor import Redactor, key_of

    return Redactor(key_of(settings))


def print_sessions(home: RecorderHome) -> None:
    """Print every session of this machine, and the records that wait."""
    out = console()
    unsent = home.unsent()
    opened = [session for session in home.opened() if session not in unsent]
    for kind, sessions in (("under way", opened), ("waits to be sent", unsent)):
        for session in sessions:
            started = session.started
            since = f"{started.worktree}, since {started.started_at:%F %T} UTC"
            out.print(f"{started.id} {kind}: task {started.task_id}, {since}")
    if not opened and not unsent:
        out.print("No session is under way, and no record waits.")


def command_line(command: RanCommand, *, running: bool) -> str:
    """Return how a command went."""
    line = " ".join((command.cmd, *command.args))
    line += "" if command.cwd == "." else f" in {readable(command.cwd)}"
    if running:
        return f"{line}: is running"
    if command.exit_code is None:
        return f"{line}: {command.ending.strip('()')}"
    return f"{line}: exit code {command.exit_code}, {command.duration_ms / 1000:.1f} s"


def print_changes(made: Meta | SessionStatus, changed: Iterable[FileChange]) -> None:
    """Print what was changed, what is left out, and what there is to be warned of."""
    out = console()
    changes = []
    for change in changed:
        is_of_mode = change.kind == "update" and not (change.added or change.removed)
        numbers = "mode" if is_of_mode else f"+{change.added} -{change.removed}"
        changes.append(f"{change.kind} {readable(change.path)} ({numbers})")
    print_first(changes or ["nothing was changed"])
    skipped = (f"left out {readable(s.path)}: {readable(s.reason)}" for s in made.skipped)
    print_first(skipped, "more left out")
    for warning in made.warnings:
        out.print(f"  warning: {readable(warning)}", style="yellow")


def print_redactions(redactions: Redactions) -> None:
    """Print which secrets were replaced in a record."""
    if redactions.count:
        secrets, kinds = counted(redactions.count, "secret"), ", ".join(redactions.kinds)
        console().print(f"  {secrets} replaced ({readable(kinds)})")


def print_first(lines: Iterable[str], rest: str = "more") -> None:
    """Print the first lines, and how many others there are."""
    listed = list(lines)
    if others := listed[_MOST_LINES:]:
        listed[_MOST_LINES:] = [f"and {len(others):,} {rest}"]
    for line in listed:
        console().print(f"  {line}")


def print_missing(reasons: Sequence[str]) -> None:
    """Print what a record lacks before a model may be trained on it."""
    out = console()
    if not reasons:
        out.print("Ready to train on: nothing is missing.")
    for reason in reasons:
        out.print(f"Not ready: {reason}")
