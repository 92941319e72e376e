"""Read captures: the prompts, metadata and plan written when a session began.

A capture is a folder ``.debrief/sessions/<key>/``, its key a plan id or a session id. That of a
plan has the transcripts of its sessions as well: the tool keeps them in the user's home and may
delete them after some weeks. They are as they were written, secrets included, and so can be read
by their owner alone.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from debrief.errors import InputError
from debrief.files import make_private
from debrief.keys import digest_of
from debrief.sessions.model import Problem, Session, SessionHead
from debrief.sessions.readers import READERS
from debrief.sessions.readers.files import walk
from debrief.sessions.scanning import origins_of, shared_path
from debrief.snapshots.capture import (
    HOME,
    MAIN,
    METADATA,
    PLAN,
    PROMPTS,
    SESSIONS,
    add_session_ids,
    find_repository,
    read_text,
    refuse_link,
    session_ids_of,
)
from debrief.snapshots.model import PromptSnapshot, SessionMetadata

TRANSCRIPTS = "transcripts"
_COARSE_CLOCK_NS = 10_000_000
"""A file's modification time may be this far behind the clock that processes read."""

_WORKTREE = re.compile(r"(.*?)/\.(?:debrief|weft|lw_coder)/worktrees/([^/]+)")
_CWD = re.compile(r'"cwd" ?: ?"(/[^"\\]+)"')
_BEGINNING = 1 << 16
"""Bytes of a transcript in which its working folder is looked for."""
_SKIPPED = (".git", "node_modules", HOME)
_LAST = datetime.max.replace(tzinfo=UTC)


class Capture(Struct, frozen=True, kw_only=True):
    """What one capture folder holds."""

    folder: str
    key: str
    session_ids: tuple[str, ...] = ()
    """Empty when the capture names a plan alone."""
    snapshot: PromptSnapshot | None
    metadata: SessionMetadata | None
    plan: str | None = None
    """The text of ``plan.md``; None where there is none."""
    problems: tuple[Problem, ...] = ()

    @property
    def recorded_at(self) -> datetime | None:
        """When the session began, with a time zone; None where the metadata does not tell."""
        moment = self.metadata.recorded_at if self.metadata is not None else None
        return moment and moment.replace(tzinfo=moment.tzinfo or UTC)


class FoundSession(Struct, frozen=True):
    """A session that a tool wrote down, and the files it is in."""

    id: str
    started: datetime
    model: str | None
    """The model that answered most, in the provider's own words."""
    folder: Path
    """Which the files lie below."""
    files: tuple[Path, ...]


class Captures:
    """The captures at hand, by session and by plan.

    Of several that name one session the earliest counts: a session that was resumed began with
    the prompts of its first run.
    """

    def __init__(self, captures: Iterable[Capture]) -> None:
        self._all = sorted(
            captures, key=lambda capture: (capture.recorded_at or _LAST, capture.folder)
        )
        self._by_session: dict[str, Capture] = {}
        self._by_key: dict[str, list[Capture]] = {}
        for capture in self._all:
            self._by_key.setdefault(capture.key, []).append(capture)
            for session_id in capture.session_ids:
                self._by_session.setdefault(session_id, capture)

    def of(self, session: Session | SessionHead) -> Capture | None:
        """Return the capture of a session: by its id, else by the plan it worked on."""
        if session.id in self._by_session:
            return self._by_session[session.id]
        if session.id in self._by_key:
            return self._by_key[session.id][0]
        worktree = _WORKTREE.match(session.cwd)
        if worktree is None:
            return None
        named = [
            capture for capture in self._by_key.get(worktree[2], ()) if not capture.session_ids
        ]
        top = f"{worktree[1]}/{HOME}/"
        own = [capture for capture in named if capture.folder.startswith(top)]
        return own[0] if own else named[0] if len(named) == 1 else None

    def joined(self, other: Captures) -> Captures:
        """Return these captures and others, each once."""
        both = (*other._all, *self._all)
        return Captures({capture.folder: capture for capture in both}.values())

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
    captures: dict[str, Capture] = {}
    for path in (path for folder in folders for path in _capture_folders(folder)):
        resolved = str(path.resolve())
        if resolved not in captures:
            capture = read_capture(path)
            captures[resolved] = replace(capture, folder=shared_path(capture.folder, origins))
    return Captures(captures.values())


def captures_beside(folders: Iterable[Path]) -> list[Path]:
    """Return the capture folders of the sessions whose transcripts are below ``folders``.

    They are among the transcripts, or in the repositories that the sessions worked in, as far as
    a transcript's beginning names one that is on this machine.
    """
    tops = set(folders)
    working_folders: set[str] = set()
    for path in (path for folder in tops for path in folder.rglob("*.json*") if path.is_file()):
        with path.open("rb") as file:
            working_folders |= set(_CWD.findall(file.read(_BEGINNING).decode(errors="replace")))
    tops |= _homes(working_folders)
    return sorted({path for top in tops for path in _capture_folders(top)})


def repository_folders(sessions: Iterable[Session | SessionHead]) -> set[Path]:
    """Return the ``.debrief/sessions`` folders of the repositories the sessions worked in."""
    return _homes({session.cwd for session in sessions})


def _homes(working_folders: set[str]) -> set[Path]:
    roots: set[Path] = set()
    for cwd in working_folders:
        if Path(cwd).is_absolute():
            repository = find_repository(Path(cwd))
            roots |= {Path(cwd), repository_of(cwd) or Path(cwd)}
            roots |= {repository.root} if repository else set()
    homes = (root / HOME / SESSIONS for root in roots)
    return {home for home in homes if home.is_dir()}


def repository_of(cwd: str) -> Path | None:
    """Return the repository whose worktree for a plan ``cwd`` is or was; None when it is none."""
    worktree = _WORKTREE.match(cwd)
    return Path(worktree[1]) if worktree is not None and worktree[1] else None


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
        plan=_plan(folder / PLAN, problems),
        problems=tuple(problems),
    )


def read_prompts(folder: Path) -> PromptSnapshot | None:
    """Read a ``prompts/`` folder: ``main.md`` and one file a subagent; None without a main.

    Symbolic links in it are skipped: they lead to what was never captured.

    Raises:
        InputError: a file cannot be read, or it or its name is not UTF-8.
    """
    paths = sorted(path for path in folder.glob("*.md") if path.is_file() and not path.is_symlink())
    texts = {path.stem: read_text(path) for path in paths}
    main = texts.pop(MAIN.removesuffix(".md"), None)
    return PromptSnapshot(main=main, subagents=texts) if main is not None else None


def _metadata(path: Path, problems: list[Problem]) -> SessionMetadata | None:
    try:
        return SessionMetadata.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        reason = "is missing"
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = ": ".join(map(str, ("cannot be read", *first["loc"], first["msg"])))
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    problems.append(Problem(path=str(path), line=0, reason=reason))
    return None


def _snapshot(folder: Path, problems: list[Problem]) -> PromptSnapshot | None:
    path, reason = str(folder), f"has no {MAIN}"
    try:
        if folder.is_symlink():
            reason = "is a symbolic link, and was not followed"
        elif snapshot := read_prompts(folder):
            return snapshot
    except InputError as error:
        path, reason = error.culprit, error.reason
    problems.append(Problem(path=path, line=0, reason=reason))
    return None


def _plan(path: Path, problems: list[Problem]) -> str | None:
    if not path.is_file() or path.is_symlink():
        return None
    try:
        return read_text(path)
    except InputError as error:
        problems.append(Problem(path=error.culprit, line=0, reason=error.reason))
        return None


def _capture_folders(top: Path) -> Iterator[Path]:
    homes = [top]
    if top.parts[-2:] != (HOME, SESSIONS):
        homes = []
        for parent, folders, _ in os.walk(top):
            if HOME in folders:
                homes.append(Path(parent, HOME, SESSIONS))
            folders[:] = [name for name in folders if name not in _SKIPPED]
    for home in filter(Path.is_dir, homes):
        for path in sorted(home.iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield path


def transcript_folders(tool: str, environ: Mapping[str, str], home: Path) -> list[Path]:
    """Return where a tool keeps its transcripts, as far as that is there."""
    folders = dict.fromkeys(READERS[tool].folders(home, environ))
    return [folder for folder in folders if folder.is_dir()]


def sessions_since(
    tool: str, folders: Iterable[Path], worktree: Path, since_ns: int
) -> list[FoundSession]:
    """Return the sessions that ``tool`` wrote in ``worktree`` since a moment, by start.

    Args:
        tool: a source of sessions.
        folders: where it keeps its transcripts.
        worktree: the folder the sessions worked in.
        since_ns: in nanoseconds since 1970; transcripts that did not change since are skipped.
    """
    reader = READERS[tool]
    sessions: dict[str, FoundSession] = {}
    for top in folders:
        changed = set(_changed_since(top, since_ns))
        for folder in {top / Path(*path.relative_to(top).parts[:-1][:1]) for path in changed}:
            for transcript in reader.find(walk(folder)):
                files = tuple(map(Path, (transcript.path, *transcript.companions)))
                if changed.isdisjoint(files):
                    continue
                with suppress(InputError, OSError):
                    session = reader.read(transcript)
                    cwd = Path(session.cwd).resolve()
                    if session.cwd and cwd.is_relative_to(worktree.resolve()):
                        model = next(iter(session.models), None)
                        found = FoundSession(session.id, session.started, model, folder, files)
                        sessions.setdefault(session.id, found)
    return sorted(sessions.values(), key=lambda session: (session.started, session.id))


def _changed_since(folder: Path, since_ns: int) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with suppress(OSError):
                if path.stat().st_mtime_ns >= since_ns - _COARSE_CLOCK_NS:
                    yield path


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
            make_private(copy.parent)
            shutil.copyfile(file, copy)
            copy.chmod(0o600)
    model = next((session.model for session in sessions if session.model), None)
    return add_session_ids(capture, [session.id for session in sessions], model)
