"""Captures: the ``prompts/`` and ``metadata.json`` that were written when a session began.

A capture is a folder ``.debrief/sessions/<key>/``, its key a plan id or a session id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from pydantic import ValidationError

from debrief.digests import digest_of
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Problem
from debrief.snapshots.model import PromptSnapshot, SessionMetadata

WORKTREES = "/.debrief/worktrees/"
_MAIN = "main.md"


class Capture(Struct, frozen=True, kw_only=True):
    """What one capture folder holds."""

    folder: str
    key: str
    session_id: str
    """Empty when the capture names a plan alone."""
    snapshot: PromptSnapshot | None
    metadata: SessionMetadata | None
    problems: tuple[Problem, ...] = ()


class Captures:
    """The captures at hand, by session and by plan."""

    def __init__(self, captures: Iterable[Capture]) -> None:
        self._by_session: dict[str, Capture] = {}
        self._by_key: dict[str, Capture] = {}
        for capture in sorted(captures, key=lambda capture: capture.folder):
            self._by_key.setdefault(capture.key, capture)
            if capture.session_id:
                self._by_session.setdefault(capture.session_id, capture)

    def of(self, session: SessionHead) -> Capture | None:
        """Return the capture of a session: by its id, else by the plan it worked on."""
        found = self._by_session.get(session.id) or self._by_key.get(session.id)
        if found is None and WORKTREES in session.cwd:
            plan = session.cwd.split(WORKTREES, 1)[1].split("/", 1)[0]
            found = self._by_key.get(plan)
            if found is not None and found.session_id not in ("", session.id):
                return None
        return found

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
                for capture in sorted(self._by_key.values(), key=lambda c: c.folder)
            ]
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what could not be read, over all captures."""
        return tuple(p for capture in self._by_key.values() for p in capture.problems)


def find_captures(folders: Iterable[Path]) -> Captures:
    """Find and read every capture at any depth below ``folders``."""
    found: dict[str, Capture] = {}
    for folder in folders:
        for place in _capture_folders(folder):
            found.setdefault(str(place.resolve()), read_capture(place))
    return Captures(found.values())


def repository_folders(sessions: Iterable[SessionHead]) -> set[Path]:
    """Return the ``.debrief/sessions`` folders of the repositories the sessions worked in."""
    places = set()
    for cwd in {session.cwd.split(WORKTREES, 1)[0] for session in sessions if session.cwd}:
        place = Path(cwd) / ".debrief" / "sessions"
        if place.is_dir():
            places.add(place)
    return places


def read_capture(folder: Path) -> Capture:
    """Read one capture folder; what is missing is None, what is broken a problem."""
    problems: list[Problem] = []
    metadata = None
    path = folder / "metadata.json"
    try:
        metadata = SessionMetadata.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        problems.append(Problem(path=str(path), line=0, reason="is missing"))
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        problems.append(Problem(path=str(path), line=0, reason=f"cannot be read: {reason}"))
    try:
        snapshot = read_prompts(folder / "prompts")
    except (OSError, UnicodeDecodeError) as error:
        snapshot = None
        problems.append(Problem(path=str(folder / "prompts"), line=0, reason=str(error)))
    if snapshot is None and not any("prompts" in p.path for p in problems):
        reason = f"has no {_MAIN}"
        problems.append(Problem(path=str(folder / "prompts"), line=0, reason=reason))
    extra = metadata.model_extra if metadata is not None else None
    return Capture(
        folder=str(folder),
        key=folder.name,
        session_id=str((extra or {}).get("session_id") or ""),
        snapshot=snapshot,
        metadata=metadata,
        problems=tuple(problems),
    )


def read_prompts(folder: Path) -> PromptSnapshot | None:
    """Read a ``prompts/`` folder: ``main.md`` and one file a subagent; None without a main.

    Raises:
        OSError: a file cannot be read.
        UnicodeDecodeError: a file is not UTF-8.
    """
    main = folder / _MAIN
    if not main.is_file():
        return None
    subagents = {
        path.stem: path.read_bytes().decode("utf-8")
        for path in sorted(folder.glob("*.md"))
        if path.name != _MAIN
    }
    return PromptSnapshot(main=main.read_bytes().decode("utf-8"), subagents=subagents)


def _capture_folders(top: Path) -> Iterator[Path]:
    if top.parts[-2:] == (".debrief", "sessions"):
        yield from sorted(path for path in top.iterdir() if path.is_dir())
        return
    for parent, folders, _ in os.walk(top):
        if ".debrief" in folders:
            place = Path(parent, ".debrief", "sessions")
            if place.is_dir():
                yield from sorted(path for path in place.iterdir() if path.is_dir())
        folders[:] = [name for name in folders if name not in (".git", "node_modules", ".debrief")]
