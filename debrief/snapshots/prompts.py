"""The prompts in force in a folder, as they lie on its disk.

Only the repository's own prompts are taken, not those in the user's home: what a team compares
must not depend on whose machine it ran on. Standard library alone: a hook that must not slow a
session down reads prompts through here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from debrief.errors import InputError

CLAUDE_CODE, DROID = "claude-code", "droid"
MAIN = "main.md"
MAIN_FILES: Mapping[str, tuple[str, ...]] = {
    CLAUDE_CODE: ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md")
}
OTHER_MAIN_FILES = ("AGENTS.md",)
AGENTS_FOLDER = ".claude/agents"
ACTIVE = ".debrief/prompts/active"
_LARGEST = 4 << 20


class Prompts(NamedTuple):
    """A main prompt and subagents' prompts by name, before they become a snapshot."""

    main: str
    subagents: Mapping[str, str] = {}


def prompts_in(folder: Path, tool: str) -> Prompts | None:
    """Return the prompts that ``tool`` finds in a work tree; None when it finds none.

    Claude Code has a main prompt (``CLAUDE.md``, else ``AGENTS.md``) and subagents
    (``.claude/agents/**/*.md``); every other tool has ``AGENTS.md`` alone.

    Raises:
        InputError: a prompt is not UTF-8, cannot be read, is larger than 4 MB, or is a symbolic
            link that leads out of ``folder``.
    """
    main = next(
        (
            text
            for name in MAIN_FILES.get(tool, OTHER_MAIN_FILES)
            if (text := _text(folder / name, folder)) is not None
        ),
        None,
    )
    subagents = _subagents(folder / AGENTS_FOLDER, folder) if tool == CLAUDE_CODE else {}
    return None if main is None and not subagents else Prompts(main or "", subagents)


def active_prompts(repository: Path, tool: str, model: str | None) -> Prompts | None:
    """Return the prompts that ``.debrief/prompts/active/`` holds for a tool; None without any.

    Looked for in ``<tool>/<model>/`` and then in ``<tool>/``: ``main.md``, and beside it one
    file a subagent for Claude Code.

    Raises:
        InputError: as ``prompts_in`` does.
    """
    top = repository / ACTIVE / tool
    for folder in (*((top / model,) if model else ()), top):
        main = _text(folder / MAIN, repository)
        if main is not None:
            subagents = _subagents(folder, repository, deep=False) if tool == CLAUDE_CODE else {}
            return Prompts(main, subagents)
    return None


def subagent_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the name of each subagent's file: its stem, told apart by its folders where needed.

    ``main`` would be written over the main prompt, so it is called ``main-subagent``.

    Args:
        paths: relative to the folder of subagents, with slashes.

    >>> subagent_names(["reviewer.md", "web/tester.md", "api/tester.md"])["web/tester.md"]
    'web.tester'
    """
    ordered = sorted(paths)
    stems = [PurePosixPath(path).stem for path in ordered]
    names: dict[str, str] = {}
    for path, stem in zip(ordered, stems, strict=True):
        name = stem if stems.count(stem) == 1 else path.removesuffix(".md").replace("/", ".")
        name = "main-subagent" if name == "main" else name
        while name in names.values():
            name += "-2"
        names[path] = name
    return names


def is_text(name: str) -> bool:
    """Return whether a file's name can be stored as text."""
    return shown(name) == name


def shown(name: str) -> str:
    """Return a file's name as text, whatever bytes it holds."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _subagents(top: Path, within: Path, deep: bool = True) -> dict[str, str]:
    if not top.is_dir():
        return {}
    _refuse_outside(top, within)
    found: list[str] = []
    for parent, folders, files in os.walk(top):
        folders[:] = sorted(folders) if deep else []
        place = Path(parent).relative_to(top)
        found += [(place / name).as_posix() for name in files if name.endswith(".md")]
    if not deep:
        found = [name for name in found if name != MAIN]
    for name in found:
        if not is_text(name):
            raise InputError(shown(str(top / name)), "has a name that is not UTF-8", "Rename it.")
    texts = {name: _text(top / path, within) for path, name in subagent_names(found).items()}
    return {name: text for name, text in sorted(texts.items()) if text is not None}


def _text(path: Path, within: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        _refuse_outside(path, within)
        if path.stat().st_size > _LARGEST:
            raise InputError(str(path), "is over 4 MB, which no prompt is")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: {error.reason} at byte {error.start}"
        raise InputError(str(path), reason, "Save it as UTF-8.") from error
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error


def _refuse_outside(path: Path, within: Path) -> None:
    if not path.resolve().is_relative_to(within.resolve()):
        raise InputError(
            str(path),
            "is a symbolic link that leads out of the repository",
            "Put the file itself there.",
        )
