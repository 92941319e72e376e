"""Filing a session under its plan: which transcripts a tool wrote, and a copy of them.

The tool keeps its transcripts in the user's home and may delete them after some weeks; the copy
beside the prompts is what the plan's capture is complete with. It is as it was written, secrets
included, and so can be read by its owner alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Reader, Transcript
from debrief.sessions.readers.files import walk
from debrief.snapshots.prompts import CLAUDE_CODE
from debrief.snapshots.writing import add_metadata, read_metadata, refuse_link, session_ids_of

TRANSCRIPTS = "transcripts"
_COARSE_CLOCK_NS = 50_000_000
"""A file's time of change may lie this far behind the clock that processes read."""


class FoundSession(Struct, frozen=True):
    """A session that a tool wrote down, and the files it is in."""

    id: str
    started: datetime
    model: str | None
    """The model that answered most, in the provider's own words."""
    folder: Path
    """Which the files lie below."""
    files: tuple[Path, ...]


def transcript_folders(tool: str, environ: Mapping[str, str], home: Path) -> list[Path]:
    """Return where a tool keeps its transcripts, ``CLAUDE_CONFIG_DIR`` minded."""
    folders = list(READERS[tool].folders(home))
    moved = environ.get("CLAUDE_CONFIG_DIR")
    if tool == CLAUDE_CODE and moved:
        folders.insert(0, Path(moved).expanduser() / "projects")
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


Stamps = Mapping[str, tuple[int, int]]
"""Size and time of change (nanoseconds) by path."""


def recent_stamps(folders: Iterable[Path], since_ns: int) -> Stamps:
    """Return the files that changed since a moment: what ``sessions_since`` is to pass over."""
    stamps = [_stamps(folder, since_ns - _COARSE_CLOCK_NS) for folder in folders]
    return {path: stamp for each in stamps for path, stamp in each.items()}


def sessions_since(
    tool: str,
    folders: Iterable[Path],
    worktree: Path,
    since_ns: int,
    known: Stamps | None = None,
) -> list[FoundSession]:
    """Return the sessions that ``tool`` wrote in ``worktree`` since a moment, by start.

    Args:
        tool: a source of sessions.
        folders: where it keeps its transcripts.
        worktree: the folder the sessions worked in.
        since_ns: in nanoseconds since 1970; transcripts that did not change since are passed
            over.
        known: files as they were at that moment, as far as their time of change is too close to
            it to tell.
    """
    reader = READERS[tool]
    found: dict[str, FoundSession] = {}
    for folder in folders:
        for project, changed in _changed(folder, since_ns, known or {}).items():
            for transcript in reader.find(walk(project)):
                if changed.isdisjoint((transcript.path, *transcript.companions)):
                    continue
                session = _read(reader, transcript)
                if session is not None and _is_in(session.cwd, worktree):
                    found.setdefault(session.id, _found(session, transcript, project))
    return sorted(found.values(), key=lambda session: (session.started, session.id))


def file_sessions(capture: Path, sessions: Iterable[FoundSession]) -> tuple[str, ...]:
    """Copy sessions into a capture and name them in its metadata; return all that it names.

    Raises:
        InputError: a place to write to is a symbolic link.
        OSError: the capture cannot be written.
        ValueError: its metadata is no JSON object.
    """
    sessions = list(sessions)
    metadata = read_metadata(capture)
    for session in sessions:
        _copy(session, capture / TRANSCRIPTS)
    ids = tuple(dict.fromkeys((*session_ids_of(metadata), *(each.id for each in sessions))))
    changes: dict[str, object] = {"session_id": ids[0]} if ids else {}
    if len(ids) > 1:
        changes["session_ids"] = list(ids)
    model = next((each.model for each in sessions if each.model), None)
    if model and not metadata.get("model"):
        changes["model"] = model
    if changes:
        add_metadata(capture, changes)
    return ids


def _changed(folder: Path, since_ns: int, known: Stamps) -> dict[Path, set[str]]:
    """Return the files that changed, by the folder of the project that they belong to."""
    found: dict[Path, set[str]] = {}
    for path, stamp in _stamps(folder, since_ns - _COARSE_CLOCK_NS).items():
        if known.get(path) != stamp:
            below = Path(path).relative_to(folder).parts
            project = folder / below[0] if len(below) > 1 else folder
            found.setdefault(project, set()).add(path)
    return found


def _stamps(folder: Path, since_ns: int) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            try:
                status = path.stat()
            except OSError:
                continue
            if status.st_mtime_ns >= since_ns:
                found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def _read(reader: Reader, transcript: Transcript) -> Session | None:
    try:
        return reader.read(transcript)
    except (InputError, OSError):
        return None


def _is_in(cwd: str, worktree: Path) -> bool:
    return bool(cwd) and Path(cwd).resolve().is_relative_to(worktree.resolve())


def _found(session: Session, transcript: Transcript, folder: Path) -> FoundSession:
    return FoundSession(
        id=session.id,
        started=session.started,
        model=next(iter(session.models), None),
        folder=folder,
        files=tuple(Path(path) for path in (transcript.path, *transcript.companions)),
    )


def _copy(session: FoundSession, place: Path) -> None:
    for file in _outside_of(session.files, place):
        copy = place / file.relative_to(session.folder)
        refuse_link(place)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_link(copy)
        shutil.copyfile(file, copy)
        copy.chmod(0o600)


def _outside_of(files: Iterable[Path], place: Path) -> Iterator[Path]:
    return (file for file in files if not file.is_relative_to(place))
