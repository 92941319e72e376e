"""Starting a coding agent in the terminal, and waiting for its end whatever happens."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from debrief.errors import ConfigurationError
from debrief.snapshots.prompts import CLAUDE_CODE, DROID

COMMANDS: Mapping[str, str] = {
    CLAUDE_CODE: "DEBRIEF_CLAUDE_COMMAND",
    DROID: "DEBRIEF_DROID_COMMAND",
}
"""The setting that names a tool's command."""


def tool_command(tool: str, setting: str) -> list[str]:
    """Return the program, with its own arguments, that a tool is started with.

    Args:
        tool: one of ``COMMANDS``.
        setting: the command that is configured.

    Raises:
        ConfigurationError: the tool is not known, or its program is not there.
    """
    if tool not in COMMANDS:
        raise ConfigurationError(f"tool {tool}", "is not known", f"Known: {', '.join(COMMANDS)}.")
    variable = COMMANDS[tool]
    try:
        command = shlex.split(setting)
    except ValueError as error:
        raise ConfigurationError(variable, f"is no command: {error}") from error
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise ConfigurationError(
            command[0] if command else variable,
            f"is not installed, and {tool} was to be started with it",
            f"Install it, or set {variable} to its command.",
        )
    return [str(Path(program).absolute()), *command[1:]]


def start(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
    """Run a program in the foreground and return its exit code, 128 + n when signal n ended it.

    What is typed to interrupt it reaches it through the terminal, and does not end this process,
    which still has to file the session.

    Raises:
        ConfigurationError: it cannot be started.
    """
    with _outliving() as children:
        try:
            process = subprocess.Popen(command, cwd=folder, env={**os.environ, **variables})
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigurationError(command[0], f"cannot be started: {reason}") from error
        children.append(process)
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _outliving() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Leave interruptions to the children that the block starts, and pass on a request to end.

    A program that is started gets its own handling back, as these are functions.
    """
    children: list[subprocess.Popen[bytes]] = []

    def leave_it(number: int, frame: FrameType | None) -> None:
        return

    def pass_on(number: int, frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    handlers = {signal.SIGINT: leave_it, signal.SIGHUP: leave_it, signal.SIGTERM: pass_on}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
