"""What commands have in common: options, and output for people."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, TypeVar, cast

import typer
from typer.core import TyperGroup

from debrief.errors import (
    CONTROLS,
    ConfigurationError,
    DebriefError,
    InputError,
    readable,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from debrief.redaction.redactor import Redactor

Chosen = TypeVar("Chosen")


class ErrorReportingGroup(TyperGroup):
    """Commands that end with one line and exit code 1 on an error that a person can act on."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command that the arguments name."""
        try:
            return super().invoke(ctx)
        except DebriefError as error:
            # Paths that were typed may hold secrets as well as those that were found.
            message = without_secrets().redact(str(error)).text
            console(stderr=True).print(f"debrief: {message}", style="red")
            raise typer.Exit(1) from None
        except _UsageError as error:
            raise _plainly(error) from None
        except Exception as error:
            said = _disk_problem(error)
            if not said:
                raise
            console(stderr=True).print(f"debrief: {said}", style="red")
            raise typer.Exit(1) from None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before a command."""
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            raise _plainly(error) from None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the own options."""
        return _plain_flags(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a name; its help shows flags without a type."""
        found = super().get_command(ctx, cmd_name)
        for command in (found, *getattr(found, "commands", {}).values()):
            if command is not None:
                _plain_flags(command.get_params(ctx))
        return found


_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""What is raised for arguments that do not fit a command; Typer shows its class to nobody."""


def _plainly(error: Any) -> Exception:
    """Say in one line what is wrong with the arguments; return what ends the command.

    A group of commands without a command shows its help, as before.
    """
    if type(error).__name__ == "NoArgsIsHelpError":
        return cast(Exception, error)
    message = without_secrets().redact(error.format_message()).text
    stop = "" if message.endswith(("?", ".")) else "."
    usage = f" {error.ctx.command_path} --help says more." if error.ctx else ""
    console(stderr=True).print(f"debrief: {message}{stop}{usage}", style="red")
    return typer.Exit(error.exit_code)


def _plain_flags(options: list[Any]) -> list[Any]:
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


_NAMES = "name other folders: DEBRIEF_HOME, DEBRIEF_LAKE."
_OF_THE_DISK = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), f"Make it writable, or {_NAMES}"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), f"Make room, or {_NAMES}"),
    errno.ENOTDIR: f"A file is where a folder is needed: {_NAMES}",
}
"""What to do about an error of the disk."""
_FULL = ("database or disk is full", "disk I/O error")
"""What SQLite says where no more can be written."""


def _disk_problem(error: BaseException | None) -> str:
    """Return what is wrong with the disk and what to do; empty for any other error.

    Args:
        error: Looked at with all that led to it, as libraries wrap what the system said.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
            if error.filename:
                name = readable(os.fsdecode(error.filename))
                return f"{name}: {error.strerror}. {_OF_THE_DISK[error.errno]}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return f"the disk: {error.strerror}. {_OF_THE_DISK[error.errno]}"
        if isinstance(error, sqlite3.OperationalError) and str(error) in _FULL:
            return (
                f"a database of the lake or of DEBRIEF_HOME: {error}. {_OF_THE_DISK[errno.ENOSPC]}"
            )
        error = error.__cause__ or error.__context__
    return ""


def console(stderr: bool = False, file: TextIO | None = None) -> Console:
    """Return a console that prints what it is given: no guessed markup, numbers or line ends.

    Characters that a terminal would obey are shown instead.

    Args:
        stderr: print to the error output.
        file: print there instead.
    """
    from debrief.cli.plain_console import PlainConsole

    return PlainConsole(stderr=stderr, file=file, highlight=False, markup=False, soft_wrap=True)


def without_secrets() -> Redactor:
    """Return a redactor for what is only shown: its key is not kept."""
    from debrief.redaction.redactor import Redactor

    return Redactor(os.urandom(32))


def exactly(text: str) -> str:
    """Return a stranger's words on one line with nothing left out: what a person agrees to.

    >>> exactly("pytest 'a\\nb'")
    "pytest 'a\\\\nb'"
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def warn(message: str) -> None:
    """Print a warning to the error output."""
    console(stderr=True).print(f"debrief: {message}", style="yellow")


def print_json(value: object) -> None:
    """Print whatever msgspec encodes as indented JSON."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value)).decode()
    print(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_unwrapped(out: Console, table: Table) -> None:
    """Print a table without cutting a cell short, however narrow the terminal is."""
    needed = out.measure(table, options=out.options.update(max_width=1_000)).maximum
    usual, out.width = out.width, max(needed, out.width)
    out.print(table)
    out.width = usual


def check_models(no_model: bool, model: str) -> None:
    """Raise when a command is to ask a model and none.

    Raises:
        ConfigurationError: both are given.
    """
    if no_model and model:
        raise ConfigurationError(
            "--no-model and --model", "exclude each other", "Give one of them."
        )


def checked_limit(limit: float | None) -> float | None:
    """Return what ``--max-cost`` says.

    Raises:
        InputError: it is no amount of money.
    """
    if limit is not None and not 0 <= limit < float("inf"):
        raise InputError(f"--max-cost {limit:g}", "is no limit", "Give a number from 0 up.")
    return limit


def check_no_file(lake: str) -> None:
    """Raise when a file is named as a lake.

    Raises:
        InputError: it is.
    """
    if lake and "://" not in lake and Path(lake).expanduser().is_file():
        raise InputError(f"--lake {lake}", "is a file, and a lake is a folder", "Name a folder.")


def existing_lake(url: str) -> str:
    """Return the lake that an option names, for commands that only read one.

    Raises:
        InputError: it is a folder of this machine, and is not there.
    """
    check_no_file(url)
    if url and "://" not in url and not Path(url).expanduser().is_dir():
        raise InputError(f"--lake {url}", "is no folder", "debrief run --lake makes one.")
    return url


def chosen(option: str, given: str, known: Mapping[str, Chosen]) -> Chosen:
    """Return what an option's value stands for.

    Raises:
        InputError: it is not known.
    """
    if given not in known:
        raise InputError(option, f"{given!r} is not known", f"Known: {', '.join(known)}.")
    return known[given]


def cost_text(cost_usd: float | None) -> str:
    """Return what calls cost, for people."""
    return "at an unknown price" if cost_usd is None else f"for about ${cost_usd:.4f}"


Repo = Annotated[
    Path, typer.Option("--repo", help="A folder inside the repository; the current one if none.")
]
User = Annotated[
    bool, typer.Option("--user", help="Your own settings, for every repository, instead.")
]
Local = Annotated[bool, typer.Option("--local", help="The default, once an option.", hidden=True)]
LakeUrl = Annotated[
    str,
    typer.Option(
        "--lake",
        help="The lake: a folder or an fsspec URL. Default: DEBRIEF_LAKE, else ~/.debrief/lake.",
    ),
]
Sessions = Annotated[
    list[str] | None,
    typer.Option(
        "--sessions",
        help="A folder with transcripts, or a URL of an object store (s3://…); may be given "
        "more than once. Default: the usual folders of this machine's user.",
    ),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="FIELD=VALUE",
        help="Only sessions that match: FIELD=VALUE[,VALUE], * and ? as in file names; all of "
        "several must hold. Fields: tool, model, task, repository, source, fingerprint, session.",
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="The LiteLLM model that answers for everything, such as "
        "openrouter/x-ai/grok-4.1-fast, or a program that is logged in: claude-code, codex, "
        "gemini-cli, with /NAME for one of its models. Default: what judges' files and "
        "DEBRIEF_MODEL name.",
    ),
]
ScoreTarget = Annotated[
    Literal["session", "trace"] | None,
    typer.Option(
        "--score-target",
        help="What scores are written on in Langfuse: the session, or its first trace. Default: "
        "DEBRIEF_SCORE_TARGET, else session.",
    ),
]
Database = Annotated[
    str,
    typer.Option(
        "--database", help="A Postgres address; DATABASE_URL if none, else the embedded one."
    ),
]
NoModel = Annotated[bool, typer.Option("--no-model", help="Ask no model, so nothing is reviewed.")]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", metavar="USD", help="No new call once so many dollars are spent."),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Agree to whatever asking a model costs; do not ask."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done and what it would cost, no more.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
