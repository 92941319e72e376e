"""Captures: the ``prompts/`` and ``metadata.json`` that were written when a session began.

A capture is a folder ``.debrief/sessions/<key>/``, its key a plan id or a session id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from debrief.digests import digest_of
from debrief.sessions.heads import SessionHead
from debrief.sessions.mirroring import origins_of
from debrief.sessions.model import Problem
from debrief.sessions.scanning import told_path
from debrief.snapshots.model import PromptSnapshot, SessionMetadata
from debrief.snapshots.prompts import MAIN, is_text, shown
from debrief.snapshots.repositories import HOME, find_repository
from debrief.snapshots.writing import METADATA, PROMPTS, session_ids_of

_WORKTREE = re.compile(r"(.*?)/\.(?:debrief|weft|lw_coder)/worktrees/([^/]+)")
_CWD = re.compile(r'"cwd" ?: ?"(/[^"\\]+)"')
_BEGINNING = 1 << 16
"""Bytes of a transcript in which its working folder is looked for."""
_PASSED_OVER = (".git", "node_modules", HOME)
_LAST = datetime.max.replace(tzinfo=UTC)


class Capture(Struct, frozen=True, kw_only=True):
    """What one capture folder holds."""

    folder: str
    key: str
    session_ids: tuple[str, ...] = ()
    """Empty when the capture names a plan alone."""
    snapshot: PromptSnapshot | None
    metadata: SessionMetadata | None
    problems: tuple[Problem, ...] = ()


class Captures:
    """The captures at hand, by session and by plan.

    Of several that name one session the earliest counts: a session that was resumed began with
    the prompts of its first run.
    """

    def __init__(self, captures: Iterable[Capture]) -> None:
        self._all = sorted(captures, key=_moment)
        self._by_session: dict[str, Capture] = {}
        self._by_key: dict[str, list[Capture]] = {}
        for capture in self._all:
            self._by_key.setdefault(capture.key, []).append(capture)
            for session_id in capture.session_ids:
                self._by_session.setdefault(session_id, capture)

    def of(self, session: SessionHead) -> Capture | None:
        """Return the capture of a session: by its id, else by the plan it worked on."""
        found = self._by_session.get(session.id)
        if found is None:
            found = next(iter(self._by_key.get(session.id, ())), None)
        return found or self._of_plan(session)

    def _of_plan(self, session: SessionHead) -> Capture | None:
        place = _WORKTREE.match(session.cwd)
        if place is None:
            return None
        named = [each for each in self._by_key.get(place[2], ()) if not each.session_ids]
        top = f"{place[1]}/{HOME}/"
        own = [each for each in named if each.folder.startswith(top)]
        return own[0] if own else named[0] if len(named) == 1 else None

    @property
    def digest(self) -> str:
        """Return a digest of all that the captures say."""
        return digest_of(
            [
                (
                    capture.folder,
                    capture.snapshot and capture.snapshot.model_dump(),
                    capture.metadata and capture.metadata.model_dump(mode="json"),
                )
                for capture in sorted(self._all, key=lambda capture: capture.folder)
            ]
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what could not be read, over all captures."""
        return tuple(problem for capture in self._all for problem in capture.problems)


def find_captures(folders: Iterable[Path]) -> Captures:
    """Find and read every capture at any depth below ``folders``.

    One that was brought from an object store is known by its address there, on every machine.
    """
    folders = list(folders)
    origins = origins_of(folders)
    found: dict[str, Capture] = {}
    for folder in folders:
        for place in _capture_folders(folder):
            resolved = str(place.resolve())
            if resolved not in found:
                capture = read_capture(place)
                found[resolved] = replace(capture, folder=told_path(capture.folder, origins))
    return Captures(found.values())


def captures_beside(folders: Iterable[Path]) -> list[Path]:
    """Return the capture folders of the sessions whose transcripts are below ``folders``.

    They are among the transcripts, or in the repositories that the sessions worked in, as far as
    a transcript's beginning names one that is on this machine.
    """
    folders = list(folders)
    places = {place for folder in folders for place in _capture_folders(folder)}
    begun = (path for folder in folders for path in folder.rglob("*.json*") if path.is_file())
    for root in _homes({cwd for path in begun for cwd in _working_folders(path)}):
        places |= set(_capture_folders(root))
    return sorted(places)


def _working_folders(transcript: Path) -> set[str]:
    with transcript.open("rb") as file:
        begin = file.read(_BEGINNING).decode(errors="replace")
    return set(_CWD.findall(begin))


def repository_folders(sessions: Iterable[SessionHead]) -> set[Path]:
    """Return the ``.debrief/sessions`` folders of the repositories the sessions worked in."""
    return _homes(session.cwd for session in sessions)


def _homes(working_folders: Iterable[str]) -> set[Path]:
    places = set()
    for cwd in {cwd for cwd in working_folders if Path(cwd).is_absolute()}:
        folder = Path(cwd)
        repository = find_repository(folder) if folder.is_dir() else None
        for root in {folder, repository_of(cwd), repository.root if repository else None}:
            place = root / HOME / "sessions" if root else None
            if place is not None and place.is_dir():
                places.add(place)
    return places


def repository_of(cwd: str) -> Path | None:
    """Return the repository whose worktree for a plan ``cwd`` is or was; None when it is none."""
    place = _WORKTREE.match(cwd)
    return Path(place[1]) if place is not None and place[1] else None


def read_capture(folder: Path) -> Capture:
    """Read one capture folder; what is missing is None, what is broken a problem."""
    problems: list[Problem] = []
    metadata = _metadata(folder / METADATA, problems)
    extra = metadata.model_extra if metadata is not None else None
    return Capture(
        folder=str(folder),
        key=folder.name,
        session_ids=session_ids_of(extra or {}),
        snapshot=_snapshot(folder / PROMPTS, problems),
        metadata=metadata,
        problems=tuple(problems),
    )


def read_prompts(folder: Path) -> PromptSnapshot | None:
    """Read a ``prompts/`` folder: ``main.md`` and one file a subagent; None without a main.

    Symbolic links in it are passed over: they lead to what was never captured.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file or its name is not UTF-8; the message names it.
    """
    paths = sorted(path for path in folder.glob("*.md") if path.is_file() and not path.is_symlink())
    texts = {path.name: _text(path) for path in paths}
    if MAIN not in texts:
        return None
    main = texts.pop(MAIN)
    subagents = {name.removesuffix(".md"): text for name, text in texts.items()}
    return PromptSnapshot(main=main, subagents=subagents)


def _metadata(path: Path, problems: list[Problem]) -> SessionMetadata | None:
    try:
        return SessionMetadata.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        problems.append(_problem(path, "is missing"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{where}: {first['msg']}" if where else first["msg"]
        problems.append(_problem(path, f"cannot be read: {reason}"))
    except OSError as error:
        problems.append(_problem(path, f"cannot be read: {error.strerror}"))
    return None


def _snapshot(folder: Path, problems: list[Problem]) -> PromptSnapshot | None:
    if folder.is_symlink():
        problems.append(_problem(folder, "is a symbolic link, and was not followed"))
        return None
    try:
        snapshot = read_prompts(folder)
    except OSError as error:
        where = Path(error.filename or folder)
        problems.append(_problem(where, f"cannot be read: {error.strerror}"))
        return None
    except ValueError as error:
        problems.append(_problem(folder, str(error)))
        return None
    if snapshot is None:
        problems.append(_problem(folder, f"has no {MAIN}"))
    return snapshot


def _text(path: Path) -> str:
    if not is_text(path.name):
        raise ValueError(f"{shown(path.name)} has a name that is not UTF-8")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: {error.reason} at byte {error.start}"
        raise ValueError(f"{path.name} {reason}") from error


def _problem(path: Path, reason: str) -> Problem:
    return Problem(path=str(path), line=0, reason=reason)


def _moment(capture: Capture) -> tuple[datetime, str]:
    told = capture.metadata.recorded_at if capture.metadata is not None else None
    if told is None:
        return _LAST, capture.folder
    return told.replace(tzinfo=UTC) if told.tzinfo is None else told, capture.folder


def _capture_folders(top: Path) -> Iterator[Path]:
    if top.parts[-2:] == (HOME, "sessions"):
        yield from _captures_in(top)
        return
    for parent, folders, _ in os.walk(top):
        if HOME in folders:
            yield from _captures_in(Path(parent, HOME, "sessions"))
        folders[:] = [name for name in folders if name not in _PASSED_OVER]


def _captures_in(place: Path) -> list[Path]:
    if not place.is_dir():
        return []
    return sorted(
        path
        for path in place.iterdir()
        if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
    )
