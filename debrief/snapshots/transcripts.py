"""A coding agent started for a plan, and the transcripts that it wrote, filed with the capture.

The tool keeps its transcripts in the user's home and may delete them after some weeks; the copy
beside the prompts is what the plan's capture is complete with. It is as it was written, secrets
included, and so can be read by its owner alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import FrameType

from msgspec import Struct

from debrief.errors import ConfigurationError, InputError
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.files import walk
from debrief.snapshots.capture import CLAUDE_CODE, DROID, add_session_ids, refuse_link

COMMANDS = {CLAUDE_CODE: "DEBRIEF_CLAUDE_COMMAND", DROID: "DEBRIEF_DROID_COMMAND"}
"""The setting that names a tool's command."""
TRANSCRIPTS = "transcripts"
_COARSE_CLOCK_NS = 50_000_000
"""A file's modification time may be this far behind the clock that processes read."""

Stamps = Mapping[str, tuple[int, int]]
"""Size and modification time (nanoseconds) by path."""


class FoundSession(Struct, frozen=True):
    """A session that a tool wrote down, and the files it is in."""

    id: str
    started: datetime
    model: str | None
    """The model that answered most, in the provider's own words."""
    folder: Path
    """Which the files lie below."""
    files: tuple[Path, ...]


def tool_command(tool: str, setting: str) -> list[str]:
    """Return the program, with its own arguments, that a tool is started with.

    Args:
        tool: one of ``COMMANDS``.
        setting: the command that is configured.

    Raises:
        ConfigurationError: the tool is not known, or its program is not installed.
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


def run_tool(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
    """Run a program in the foreground and return its exit code, 128 + n when signal n ended it.

    What is typed to interrupt it reaches it through the terminal, and does not end this process,
    which still has to file the session; a request to end is passed on.

    Raises:
        ConfigurationError: it cannot be started.
    """
    processes: list[subprocess.Popen[bytes]] = []

    # Functions, so that the program gets its own handling of signals back.
    def ignore(number: int, frame: FrameType | None) -> None:
        return

    def pass_on(number: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(number)

    handlers = {signal.SIGINT: ignore, signal.SIGHUP: ignore, signal.SIGTERM: pass_on}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        processes.append(subprocess.Popen(command, cwd=folder, env={**os.environ, **variables}))
        code = processes[0].wait()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(command[0], f"cannot be started: {reason}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def transcript_folders(tool: str, environ: Mapping[str, str], home: Path) -> list[Path]:
    """Return where a tool keeps its transcripts; ``CLAUDE_CONFIG_DIR`` moves Claude Code's."""
    folders = list(READERS[tool].folders(home))
    moved = environ.get("CLAUDE_CONFIG_DIR")
    if tool == CLAUDE_CODE and moved:
        folders.insert(0, Path(moved).expanduser() / "projects")
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def stamps_since(folders: Iterable[Path], since_ns: int) -> Stamps:
    """Return the files that changed since a moment, in nanoseconds since 1970."""
    stamps: dict[str, tuple[int, int]] = {}
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for path in (os.path.join(parent, name) for name in names):  # noqa: PTH118
                try:
                    status = os.stat(path)  # noqa: PTH116
                except OSError:
                    continue
                if status.st_mtime_ns >= since_ns - _COARSE_CLOCK_NS:
                    stamps[path] = (status.st_size, status.st_mtime_ns)
    return stamps


def sessions_since(
    tool: str,
    folders: Iterable[Path],
    worktree: Path,
    since_ns: int,
    before: Stamps | None = None,
) -> list[FoundSession]:
    """Return the sessions that ``tool`` wrote in ``worktree`` since a moment, by start.

    Args:
        tool: a source of sessions.
        folders: where it keeps its transcripts.
        worktree: the folder the sessions worked in.
        since_ns: in nanoseconds since 1970; transcripts that did not change since are skipped.
        before: ``stamps_since`` at that moment, for files whose modification time is too close
            to it to decide.
    """
    reader = READERS[tool]
    sessions: dict[str, FoundSession] = {}
    for folder in folders:
        projects: dict[Path, set[str]] = {}
        for path, stamp in stamps_since([folder], since_ns).items():
            if (before or {}).get(path) != stamp:
                below = Path(path).relative_to(folder).parts
                project = folder / below[0] if len(below) > 1 else folder
                projects.setdefault(project, set()).add(path)
        for project, changed in projects.items():
            for transcript in reader.find(walk(project)):
                if changed.isdisjoint((transcript.path, *transcript.companions)):
                    continue
                session = _read(tool, transcript, project, worktree)
                if session is not None:
                    sessions.setdefault(session.id, session)
    return sorted(sessions.values(), key=lambda session: (session.started, session.id))


def _read(tool: str, transcript: Transcript, folder: Path, worktree: Path) -> FoundSession | None:
    """Return the session of a transcript; None if it is unreadable or of another worktree."""
    try:
        session = READERS[tool].read(transcript)
    except (InputError, OSError):
        return None
    if not session.cwd or not Path(session.cwd).resolve().is_relative_to(worktree.resolve()):
        return None
    return FoundSession(
        id=session.id,
        started=session.started,
        model=next(iter(session.models), None),
        folder=folder,
        files=tuple(Path(path) for path in (transcript.path, *transcript.companions)),
    )


def add_sessions(capture: Path, sessions: Sequence[FoundSession]) -> tuple[str, ...]:
    """Copy sessions into a capture and name them in its metadata; return all that it names.

    Raises:
        InputError: a path to write to is a symbolic link.
        OSError: the capture cannot be written.
        ValueError: its metadata is no JSON object.
    """
    target = capture / TRANSCRIPTS
    for session in sessions:
        for file in session.files:
            copy = target / file.relative_to(session.folder)
            if file.is_relative_to(target):
                continue
            refuse_link(target, copy)
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            copy.chmod(0o600)
    model = next((session.model for session in sessions if session.model), None)
    return add_session_ids(capture, [session.id for session in sessions], model)
