"""What a shell command does to files, as far as its words say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from posixpath import basename, join
from typing import Literal

from msgspec import Struct

from debrief.markdown import shorten
from debrief.signals.shell import Command, files_by_code, place_below, placed_commands, writes_in
from debrief.signals.workplace import CACHES, SCRATCH

_BUILT = re.compile(r"(?:^|/)(?:build|dist|out|target|coverage|tmp|temp|bin|obj|site)/?$")
"""Folders that a build makes: to remove one changes nothing of the work."""
_BY_NAME = (
    *("go get", "go mod tidy", "go generate", "go fmt", "gofmt -w", "goimports -w", "cargo add"),
    *("cargo remove", "cargo fmt", "cargo fix", "npm install", "npm uninstall", "npm i", "npm pkg"),
    *("pnpm add", "pnpm remove", "yarn add", "yarn remove", "bun add", "bun remove", "uv add"),
    *("uv remove", "poetry add", "poetry remove", "bundle add", "composer require", "dotnet add"),
    *("ruff format", "ruff --fix", "black", "isort", "prettier --write", "eslint --fix"),
    *("biome --write", "terraform fmt", "golangci-lint --fix", "git apply", "git am", "patch"),
    *("apply_patch",),
)
"""Commands that change files of the work and name none."""
_PACKAGES = frozenset(["npm install", "npm i"])
"""Those of them that do so only with a name behind them."""
_LOOKS = re.compile(r"^(?:--?check\b.*|--diff|--dry-run|-n|-l|--list.*)$")
_IN_PLACE = frozenset(["sed", "perl", "gsed", "ruby"])
FILE = re.compile(r"\.[\w-]+$|(?:^|/)[A-Z][\w-]*$")
"""A name that is a file's, by its extension or as ``LICENSE`` is."""
_DOWNLOADS = {"curl": ("-o", "--output"), "wget": ("-O", "--output-document")}
EffectKind = Literal["write", "create", "delete", "move", "restore", "stash", "unstash", "command"]
_EffectFields = tuple[EffectKind, str, str]


class Effect(Struct, frozen=True):
    """What a simple command does to a file, or to files that it does not name."""

    kind: EffectKind
    path: str
    """Of ``command``, the command itself, short."""
    source: str = ""
    """Of ``move``, the former path."""
    folder: str = ""
    """Where the files are that it does not name; empty for the session's folder."""


def effects_of(command: str, folder: str = "", *, failed: bool = False) -> Iterator[Effect]:
    """Yield what a shell command does to files, in order, as far as its words say.

    Args:
        command: as it was typed.
        folder: that it runs in, where that is not the session's.
        failed: it did not end well, so that its last part failed or never ran.

    >>> [effect.kind for effect in effects_of("git mv a.py b.py && rm c.py")]
    ['move', 'delete']
    """
    placed = list(placed_commands(command, folder))
    for each, at in placed[:-1] if failed else placed:
        if at.startswith("$") and _is_temporary(at, command):
            continue
        place = "" if at.startswith("$") else at
        for kind, path, source in _effects(each):
            if kind == "command":
                line = shorten(" ".join(each.words), 60)
                yield Effect(kind, line, folder=place_below(place, path) if path else place)
            else:
                if kind == "write" and _is_whole(path, each, command):
                    kind = "create"
                source = source and place_below(place, source)
                yield Effect(kind, place_below(place, path), source, place)
    last = placed[-1][1] if placed else folder
    for path in () if failed and len(placed) == 1 else files_by_code(command):
        if path:
            yield Effect("write", place_below(last, path), folder=last)
        else:
            yield Effect("command", shorten(command, 60), folder=last)


def _is_whole(path: str, each: Command, command: str) -> bool:
    """Return whether a simple command writes the whole of a file, and does not add to it."""
    if each.words[:1] == ("cp",):
        return True
    return path in each.targets and not re.search(rf">>[ \t]*['\"]?{re.escape(path)}", command)


def _is_temporary(path: str, command: str) -> bool:
    """Return whether a path begins with a variable that a command sets to a folder for scratch."""
    name = re.match(r"\$\{?(\w+)", path)
    made = name and re.search(rf"\b{name[1]}=[\"']?(?:\$\(mktemp|/tmp/)", command)
    return bool(made)


def _changes_unnamed(words: tuple[str, ...]) -> bool:
    """Return whether a simple command changes files of the work that it does not name."""
    line = f"{' '.join(words)} "
    if any(_LOOKS.match(word) for word in words[1:]):
        return False
    for name in _BY_NAME:
        program, _, option = name.partition(" ")
        has = line.startswith(f"{name} ") or (
            option.startswith("-") and line.startswith(f"{program} ") and f" {option} " in line
        )
        if has and (name not in _PACKAGES or len(line.split()) > len(name.split())):
            return True
    return False


def _effects(command: Command) -> Iterator[_EffectFields]:
    """Yield the effects of a simple command, with paths as they are written."""
    words, targets = command
    program = basename(words[0]) if words else ""
    plain = [word for word in words[1:] if not word.startswith("-")]
    if words and _changes_unnamed(words):
        yield "command", "", ""
    elif program == "find" and "-exec" in words:
        inner = Command(words[words.index("-exec") + 1 :])
        if any(kind in ("write", "command") for kind, _, _ in _effects(inner)):
            yield "command", "", ""
    elif program == "mv" or words[:2] == ("git", "mv"):
        yield from _moves(plain[1:] if program == "git" else plain)
    elif program == "cp" and len(plain) > 1:
        if any(word.startswith("-") and {"r", "R", "a"} & set(word) for word in words[1:]):
            yield "command", plain[-1], ""
        else:
            yield from (("write", _inside(plain, path), "") for path in plain[:-1])
    elif program == "rm" or words[:2] == ("git", "rm"):
        yield from _removals(plain[1:] if program == "git" else plain)
    elif program in ("curl", "wget"):
        named = (words[n + 1] for n, word in enumerate(words[:-1]) if word in _DOWNLOADS[program])
        yield from (("create", path, "") for path in named if path != "-")
    elif program == "git" and plain:
        yield from _of_git(words, plain)
    else:
        for write in writes_in(command):
            if not write.is_edit:
                continue
            is_unnamed = " " in write.path or any(sign in write.path for sign in "*{$`?")
            if is_unnamed:
                if program in _IN_PLACE:
                    yield "command", "", ""
            else:
                yield "write", write.path, ""
        return
    if not (program == "git" and plain[:1] in (["diff"], ["log"], ["show"], ["status"])):
        written = (write.path for write in writes_in(Command(words[:1], targets)) if write.is_edit)
        yield from (("write", path, "") for path in written if "$" not in path)


def _moves(plain: Sequence[str]) -> Iterator[_EffectFields]:
    for source in plain[:-1]:
        if any(sign in source for sign in "*{$?") or not FILE.search(source):
            yield "command", plain[-1], ""
        else:
            yield "move", _inside(plain, source), source


def _inside(plain: Sequence[str], source: str) -> str:
    """Return where a file goes that is moved or copied, to a name or into a folder."""
    to = plain[-1]
    is_folder = (
        len(plain) > 2
        or to.endswith(("/", "."))
        or (not FILE.search(to) and bool(FILE.search(source)))
    )
    return join(to, basename(source)) if is_folder else to


def _removals(plain: Sequence[str]) -> Iterator[_EffectFields]:
    for path in plain:
        if CACHES.search(path) or _BUILT.search(path) or SCRATCH.match(path) or path[:1] == "$":
            continue
        if path.endswith("/") or any(sign in path for sign in "*{?") or not FILE.search(path):
            yield "command", path, ""
        else:
            yield "delete", path, ""


def _of_git(words: Sequence[str], plain: Sequence[str]) -> Iterator[_EffectFields]:
    action, rest = plain[0], plain[1:]
    if action in ("checkout", "restore"):
        if action == "restore" and "--staged" in words and "--worktree" not in words:
            return
        if any(word.startswith(("-s", "--source")) for word in words[2:]):
            yield "command", "", ""  # it takes another version
            return
        after = [*words[words.index("--") + 1 :]] if "--" in words else rest
        is_ref = action == "checkout" and bool(rest) and rest[0] not in ("HEAD", *after)
        if action == "checkout" and "--" not in words:
            after = [
                word for word in rest if word == "." or ("." in basename(word) and len(rest) == 1)
            ]
        if is_ref and after:
            yield "command", "", ""  # it takes another version
        else:
            yield from (("restore", path, "") for path in after)
    elif action == "reset" and "--hard" in words and (not rest or rest == ["HEAD"]):
        yield "restore", ".", ""
    elif action == "stash":
        if not rest or rest[0] in ("push", "save"):
            yield "stash", "", ""
        elif rest[0] in ("pop", "apply"):
            yield "unstash", "", ""
