"""Write a capture: the prompts and circumstances of a session at its start.

It is the folder ``.debrief/sessions/<key>/`` of the session's repository, its key a plan id or
a session id, and holds ``prompts/``, ``metadata.json`` and, if ``debrief code`` wrote it, the
plan (``plan.md``). Only the repository's own prompts are
taken, not those in the user's home: what a team compares must not depend on whose machine it ran
on. Which files a program gives its model, and where, was seen in the requests that it sent in a
repository with all of them. Standard library alone, and no git program: a hook that must not slow
a session down writes captures through here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, TypeGuard

from debrief.errors import InputError
from debrief.files import atomic, write_folder
from debrief.snapshots.fingerprint import compute_prompt_fingerprint

Place = Literal["system", "message"]
"""A part of the system prompt, or before the words of the first prompt."""


class PromptFiles(NamedTuple):
    """The prompt files of one program."""

    names: tuple[str, ...]
    """Relative to the work tree, in the program's order."""
    place: Place
    are_joined: bool = False
    """The program reads all that there are; else the first."""

    def text(self, texts: Mapping[str, str]) -> str | None:
        """Return the main prompt, given the texts of the files that exist; None for none.

        Equal texts, as of a link from one name to the other, stand once.
        """
        found = list(dict.fromkeys(texts[name] for name in self.names if name in texts))
        if not found:
            return None
        if not self.are_joined or len(found) == 1:
            return found[0]
        return "\n\n".join(text.strip("\n") for text in found) + "\n"


_GITHUB = ".github/copilot-instructions.md"
_OF = {
    "claude-code": PromptFiles(("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"), "message"),
    "cline": PromptFiles(("AGENTS.md",), "system"),
    "codex": PromptFiles(("AGENTS.override.md", "AGENTS.md"), "message"),
    "copilot-cli": PromptFiles(
        (_GITHUB, "AGENTS.md", "CLAUDE.md", "GEMINI.md"), "system", are_joined=True
    ),
    "copilot-vscode": PromptFiles((_GITHUB, "AGENTS.md"), "system", are_joined=True),
    "cursor": PromptFiles(("AGENTS.md",), "system"),
    "droid": PromptFiles(("CLAUDE.md", "AGENTS.md"), "message", are_joined=True),
    "gemini-cli": PromptFiles(("GEMINI.md",), "message"),
    "kimi-code": PromptFiles(("AGENTS.md",), "system"),
    "opencode": PromptFiles(("AGENTS.md", "CLAUDE.md"), "system"),
    "pi": PromptFiles(("AGENTS.md", "CLAUDE.md"), "system"),
    "qwen-code": PromptFiles(("QWEN.md", "AGENTS.md"), "system", are_joined=True),
}
_UNKNOWN = PromptFiles((), "system")


def prompt_files(tool: str) -> PromptFiles:
    """Return the prompt files of a program, by a session's ``tool``; none for an unknown one."""
    return _OF.get(tool, _UNKNOWN)


HOME = ".debrief"
SESSIONS, PROMPTS, METADATA, MAIN = "sessions", "prompts", "metadata.json", "main.md"
PLAN = "plan.md"
CLAUDE_CODE, DROID = "claude-code", "droid"
AGENTS_FOLDER = ".claude/agents"
_EXCLUDED = (
    "# Debrief: captures and worktrees stay out; judges, plans and prompts may be committed.",
    *(f"/{HOME}/*", f"!/{HOME}/judges/", f"!/{HOME}/plans/", f"!/{HOME}/prompts/"),
    "/.claude/settings.local.json",
)
_KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,127}\Z")
_LARGEST = 4 << 20


class RepositoryPaths(NamedTuple):
    """A git repository as one of its work trees shows it."""

    top: Path
    """The work tree's own folder."""
    root: Path
    """The main work tree, where ``.debrief/`` is; ``top`` unless that is a linked one."""
    git: Path
    """The folder that all work trees share: ``<root>/.git`` as a rule."""


class Prompts(NamedTuple):
    """A main prompt and subagents' prompts by name, before they become a snapshot."""

    main: str
    subagents: Mapping[str, str] = {}


def find_repository(folder: Path) -> RepositoryPaths | None:
    """Return the repository that ``folder`` lies in; None where there is none."""
    folder = folder.resolve()
    if not folder.is_dir():
        return None
    for top in (folder, *folder.parents):
        git = top / ".git"
        if git.is_dir() and (git / "HEAD").is_file():
            return RepositoryPaths(top, top, git)
        if git.is_file():
            return _linked_worktree(top, git)
    return None


def _linked_worktree(top: Path, pointer: Path) -> RepositoryPaths | None:
    with suppress(OSError, UnicodeDecodeError):
        own = (top / pointer.read_text("utf-8").strip().removeprefix("gitdir:").strip()).resolve()
        shared = own / "commondir"
        common = (own / shared.read_text("utf-8").strip()).resolve() if shared.is_file() else own
        return RepositoryPaths(top, common.parent if common.name == ".git" else top, common)
    return None


def keep_out_of_history(repository: RepositoryPaths) -> None:
    """Have git ignore ``.debrief/`` but for what a team writes.

    Written to the repository's own ``info/exclude``, which is not tracked.

    Raises:
        OSError: the file cannot be written.
    """
    path = repository.git / "info" / "exclude"
    text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    if set(_EXCLUDED) <= set(text.splitlines()):
        return
    path.parent.mkdir(exist_ok=True)
    start = "" if text.endswith("\n") or not text else "\n"
    with path.open("ab") as file:
        file.write((start + "\n".join(_EXCLUDED) + "\n").encode())


def prompts_in(folder: Path, tool: str) -> Prompts | None:
    """Return the prompts that ``tool`` finds in a work tree; None when it finds none.

    The main prompt is of the files that the tool reads; Claude Code has subagents too
    (``.claude/agents/**/*.md``).

    Raises:
        InputError: a prompt is not UTF-8, cannot be read, is larger than 4 MB, or is a symbolic
            link that leads out of ``folder``.
    """
    files = prompt_files(tool)
    texts = {name: _text(folder / name, folder) for name in files.names}
    main = files.text({name: text for name, text in texts.items() if text is not None})
    subagents = _subagents(folder / AGENTS_FOLDER, folder) if tool == CLAUDE_CODE else {}
    return None if main is None and not subagents else Prompts(main or "", subagents)


def active_prompts(repository: Path, tool: str, model: str | None) -> Prompts | None:
    """Return the prompts that ``.debrief/prompts/active/`` holds for a tool; None without any.

    Looked for in ``<tool>/<model>/`` and then in ``<tool>/``: ``main.md``, and beside it one
    file a subagent for Claude Code.

    Raises:
        InputError: as ``prompts_in`` does.
    """
    top = repository / HOME / "prompts" / "active" / tool
    for folder in (*((top / model,) if model else ()), top):
        main = _text(folder / MAIN, repository)
        if main is not None:
            subagents = _subagents(folder, repository, deep=False) if tool == CLAUDE_CODE else {}
            return Prompts(main, subagents)
    return None


def subagent_names(paths: Iterable[str]) -> dict[str, str]:
    """Return a name for each subagent's file: its stem, with its folders where stems are equal.

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
    found = top.rglob("*.md") if deep else (path for path in top.glob("*.md") if path.name != MAIN)
    paths = [str(path.relative_to(top)) for path in found]
    texts = {name: _text(top / path, within) for path, name in subagent_names(paths).items()}
    return {name: text for name, text in sorted(texts.items()) if text is not None}


def _text(path: Path, within: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        _refuse_outside(path, within)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    if size > _LARGEST:
        raise InputError(str(path), "is over 4 MB, which no prompt is")
    return read_text(path)


def read_text(path: Path) -> str:
    """Return a file's text.

    Raises:
        InputError: it or its name is not UTF-8, or it cannot be read.
    """
    if not is_text(path.name):
        raise InputError(shown(str(path)), "has a name that is not UTF-8", "Rename it.")
    try:
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


def is_key(text: object) -> TypeGuard[str]:
    """Return whether ``text`` can name a capture's folder: a plan id or a session id."""
    return isinstance(text, str) and _KEY.match(text) is not None


def metadata_of(
    tool: str, model: str | None, recorded_at: float, prompts: Prompts | None
) -> dict[str, Any]:
    """Return what ``metadata.json`` says when a session begins, ``recorded_at`` seconds after
    1970."""
    return {
        "tool": tool,
        "model": model,
        "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(recorded_at)),
        "prompt_fingerprint": compute_prompt_fingerprint(prompts) if prompts else None,
    }


def write_capture(
    folder: Path, prompts: Prompts | None, metadata: Mapping[str, Any], plan: str | None = None
) -> None:
    """Write what is known of a session at its start to a folder that is not there yet.

    Args:
        folder: ``…/.debrief/sessions/<key>``.
        prompts: None when they could not be read; there is no ``prompts/`` then.
        metadata: the content of ``metadata.json``.
        plan: the content of ``plan.md``; None where the session has none.

    Raises:
        InputError: the folder or one above it in ``.debrief`` is a symbolic link.
        OSError: it cannot be written, or a folder with files is there.
    """
    refuse_link(folder.parent.parent, folder.parent, folder)
    files = {METADATA: metadata_bytes(metadata)}
    if plan is not None:
        files[PLAN] = plan.encode()
    if prompts is not None:
        files[f"{PROMPTS}/{MAIN}"] = prompts.main.encode()
        files |= {f"{PROMPTS}/{name}.md": text.encode() for name, text in prompts.subagents.items()}
    write_folder(folder, files)


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return ``metadata.json`` as it is.

    Raises:
        ValueError: it is no JSON object.
        OSError: it cannot be read.
    """
    value = json.loads((folder / METADATA).read_bytes())
    if not isinstance(value, dict):
        raise ValueError(f"{folder / METADATA} holds no JSON object")
    return value


def add_session_ids(folder: Path, ids: Iterable[str], model: str | None) -> tuple[str, ...]:
    """Add sessions to a capture, the first one stays the first; return all that it names.

    The model is set where the capture has none yet; every other key of ``metadata.json`` is kept.

    Raises:
        InputError: it is a symbolic link.
        ValueError: it is no JSON object.
        OSError: it cannot be read or written.
    """
    metadata = read_metadata(folder)
    before = session_ids_of(metadata)
    after = tuple(dict.fromkeys((*before, *ids)))
    changes: dict[str, Any] = {"model": model} if model and not metadata.get("model") else {}
    if after != before:
        changes["session_id"] = after[0]
    if after != before and len(after) > 1:
        changes["session_ids"] = list(after)
    if changes:
        refuse_link(folder, folder / METADATA)
        with atomic(folder / METADATA) as file:
            file.write(metadata_bytes({**metadata, **changes}))
    return after


def session_ids_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sessions that ``metadata.json`` names, in order: usually one."""
    several = metadata.get("session_ids")
    named = [metadata.get("session_id"), *(several if isinstance(several, list) else ())]
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))


def refuse_link(*paths: Path) -> None:
    """Refuse to write through a symbolic link, which may lead anywhere.

    Raises:
        InputError: one of ``paths`` is a link.
    """
    for path in paths:
        if path.is_symlink():
            reason = "is a symbolic link, which nothing is written through"
            raise InputError(str(path), reason, "Remove the link.")


def metadata_bytes(value: Mapping[str, Any]) -> bytes:
    """Return metadata as it is written to ``metadata.json``."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
