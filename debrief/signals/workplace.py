"""Which files are the work of a session: no scratch, no caches, no notes of the agent's own."""

from __future__ import annotations

import re
from posixpath import normpath

from debrief.sessions.model import Session, ToolCall, calls_of
from debrief.signals.shell import arguments, placed_commands

SCRATCH = re.compile(r"^(?:/private)?/(?:tmp|var/folders|var/tmp|dev)/")
_IN_SCRATCH = re.compile(r"(?<![\w/])(?:/private)?/(?:tmp|var/tmp)/[\w./@+-]*[\w@+-]")
_HIDDEN = re.compile(
    r"(?:^|/)\.(?:claude|codex|cursor|gemini|factory)/(?:plans|projects|todos|memor\w+|tmp)/"
)
"""Where coding agents keep plans and notes of their own."""
CACHES = re.compile(
    r"(?:^|/)(?:__pycache__|node_modules|\.venv|\.?[a-z]+[_-]cache|\.tox|\.next|\.git|\.DS_Store)"
    r"(?:/|$)|\.py[co]$|\.egg-info/?$|(?:^|/)\.?coverage(?:\.out)?$"
)
"""What programs leave behind, and no version control keeps."""


class Workplace:
    """Tells a session's files of the work from scratch files and the agent's own notes.

    A folder for scratch is work where something is committed in it, unless its repository is begun
    for a trial, or where the person names it.
    """

    def __init__(self, session: Session) -> None:
        self.folder = session.cwd.rstrip("/")
        named = [
            found[0]
            for turn in session.turns
            for text in (turn.prompt, *(deed.text for deed in turn.interventions))
            for found in _IN_SCRATCH.finditer(text)
        ]
        runs = [
            (words[:2], f"{folder.rstrip('/')}/")
            for call in calls_of(session)
            if "git" in call.command and call.status == "ok"
            for (words, _), folder in placed_commands(call.command, folder_of_call(call))
        ]
        begun = {folder for words, folder in runs if words == ("git", "init")}
        committed = {folder for words, folder in runs if words == ("git", "commit")} - begun
        committed = {folder for folder in committed if SCRATCH.match(folder)}
        self._also = tuple(dict.fromkeys(f"{path.rstrip('/')}/" for path in (*named, *committed)))

    def holds(self, path: str) -> bool:
        """Return whether a file is one of the work: it is no scratch file, no cache, no agent's own
        note, and its name is not one that only the shell knows."""
        if _HIDDEN.search(path) or path.startswith("$") or path == "-" or CACHES.search(path):
            return False
        inside = f"{path.rstrip('/')}/"
        return not SCRATCH.match(inside) or inside.startswith(
            (f"{self.folder or '//'}/", *self._also)
        )

    def shorten(self, path: str) -> str:
        """Return a path relative to the session's folder where it is below it."""
        path = path.replace("\\", "/")
        whole = normpath(path)
        if self.folder and whole == self.folder:
            return "."
        return whole.removeprefix(f"{self.folder}/") if self.folder else whole


def is_work(path: str, cwd: str) -> bool:
    """Return whether a file belongs to the work in a folder, by its path alone."""
    inside = f"{path.rstrip('/')}/"
    is_own = bool(cwd) and inside.startswith(f"{cwd.rstrip('/')}/")
    return not (
        _HIDDEN.search(path) or path.startswith("$") or (SCRATCH.match(inside) and not is_own)
    )


def folder_of_call(call: ToolCall) -> str:
    """Return the folder that a call of a shell names as its own; empty for the session's."""
    given = arguments(call)
    named = (given.get(name) for name in ("workdir", "dir_path", "working_directory"))
    return next((folder for folder in named if isinstance(folder, str)), "")
