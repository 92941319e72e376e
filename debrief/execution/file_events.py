"""Read the reads, edits and commands of a session as events on files, as far as they are known.

Edit tools say what they did, in one of a few notations; reads say what a file held then. A shell
command says at best which file it changed, and nothing of how: a formatter, ``sed -i`` and
``git checkout`` leave files whose text the transcript does not hold.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from debrief.sessions.model import Session, ToolCall, messages_of
from debrief.sessions.readers.edit_arguments import NEW, OLD, PATHS, WHOLE
from debrief.sessions.readers.patches import edits_of_call
from debrief.sessions.readers.values import decoded_arguments, first_string, mappings
from debrief.signals.shell import placed_commands, writes_of

_EVERYWHERE = ("replace_all", "replaceAll")
_PART_OF = ("offset", "limit", "pages", "view_range", "start_line", "end_line")
_BEGIN = "*** Begin Patch"
_SECTION = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.*\S)[ \t]*$", re.MULTILINE)
_MOVE = re.compile(r"\A\*\*\* Move to: (.*\S)[ \t]*\n")
_NUMBERED = re.compile(r" *(\d+)(?:→|\t)(.*)")
_CUT = ("... [truncated]", "[line truncated]")
_MOST_READ = 2000
"""Lines after which a read ends without a word."""

_GIT_CHANGES = re.compile(
    r"(?:apply|am|checkout|restore|revert|cherry-pick|merge|rebase|stash|pull|reset|switch|clean)$"
)
_PUTS = ("checkout", "switch", "stash", "pull")
_FORMATTERS = re.compile(
    r"(?:black|isort|autopep8|yapf|prettier|eslint|biome|dprint|gofmt|gofumpt|goimports|rustfmt"
    r"|golangci-lint|clang-format|pre-commit|lint-staged|rubocop)$"
)
_FORMATS = re.compile(r"(?:^|[:_-])(?:fmt|format|fix|codegen|generate)(?:$|[:_-])")
_TASKS = re.compile(r"(?:npm|pnpm|yarn|bun|make|just|mise|task|cargo|go|deno|hatch|rye|ruff|uv)$")
_LOOKS = frozenset({"--check", "--diff", "-l", "-d", "--list", "--dry-run"})


class _Event(Struct, frozen=True, kw_only=True):
    at: datetime | None = None
    """When, as far as the transcript says."""


class Saw(_Event, frozen=True):
    """A read of a file."""

    path: str
    first: int
    """Number of the first line, from 1."""
    lines: tuple[str, ...]
    whole: bool
    """It is the whole file."""


class Wrote(_Event, frozen=True):
    """The whole text of a file, written."""

    path: str
    text: str


class Replaced(_Event, frozen=True):
    """Stretches of a file replaced, one after the other."""

    path: str
    parts: tuple[tuple[str, str, bool], ...]
    """The old text, the new one, and whether it was replaced everywhere."""
    patch: str = ""
    """The hunks that the tool reported; some tools write tabs as blanks in them."""


class Patched(_Event, frozen=True):
    """Hunks that say at which line they stand."""

    path: str
    patch: str


class Sought(_Event, frozen=True):
    """Hunks without line numbers: each stands at the first place that fits, behind the one before.

    So Codex reads its own notation.
    """

    path: str
    hunks: tuple[tuple[str, tuple[str, ...]], ...]
    """A line that comes before, or nothing, and the lines with their marks."""


class Moved(_Event, frozen=True):
    """A file or folder under another name."""

    path: str
    to: str
    sure: bool = True


class Removed(_Event, frozen=True):
    """A file taken away, or a folder, or all that a pattern names."""

    path: str
    sure: bool = True


class Touched(_Event, frozen=True):
    """A command changed the file, and what it holds now is not known."""

    path: str


class Shaken(_Event, frozen=True):
    """A command may have changed any file."""

    command: str
    keeps_commits: bool = False
    """It only put other versions in place, as ``git checkout`` does: what was committed before is
    still the session's work."""


FileEvent = Saw | Wrote | Replaced | Patched | Sought | Moved | Removed | Touched | Shaken


def calls_in_order(session: Session) -> list[tuple[datetime, ToolCall]]:
    """Return a session's own calls by their time, its subagents' among them.

    What a fork has from its original is not among them: it was done before the fork began.
    """
    inherited = {
        message.id
        for turn in session.turns
        if turn.origin == "inherited"
        for message in turn.messages
    }
    latest, timed = session.started, list[tuple[datetime, ToolCall]]()
    for message in messages_of(session):
        for call in message.calls if message.id not in inherited else ():
            latest = call.at or message.at or latest
            timed.append((latest, call))
    return sorted(timed, key=lambda each: each[0])


def file_events(session: Session) -> Iterator[FileEvent]:
    """Yield what a session's calls did to files, by time, its subagents' among its own.

    Paths are absolute where a call or the session says enough for that. A person who goes back to
    before a turn may have taken its edits back, or not.
    """
    rewound = {
        call.id
        for turn in session.turns
        if turn.rewound
        for message in turn.messages
        for call in message.calls
    }
    for at, call in calls_in_order(session):
        for event in _events_of(call):
            placed = _placed(replace(event, at=at), session.cwd)
            yield placed
            if call.id in rewound and not isinstance(placed, Saw | Shaken):
                yield Touched(placed.path, at=at)


def _placed(event: FileEvent, cwd: str) -> FileEvent:
    if isinstance(event, Shaken):
        return event
    names = {"path": event.path} | ({"to": event.to} if isinstance(event, Moved) else {})
    return replace(event, **{name: absolute(path, cwd) for name, path in names.items()})


def absolute(path: str, folder: str) -> str:
    """Return a path below ``folder`` where it is a relative one, with slashes alone."""
    path, folder = path.replace("\\", "/"), folder.replace("\\", "/")
    whole = path.startswith(("/", "~")) or re.match(r"[A-Za-z]:/", path)
    return posixpath.normpath(path if whole or not folder else posixpath.join(folder, path))


def _events_of(call: ToolCall) -> Iterator[FileEvent]:
    if call.action == "run" and call.command and _BEGIN not in call.command:
        yield from _of_command(call)
    elif call.status == "unanswered" and call.action == "edit":
        yield from (Touched(path) for path in call.paths)
    elif call.status != "ok":
        return
    elif call.action == "read":
        yield from _of_read(call)
    elif call.path or call.action == "edit":
        yield from _of_edit(call)


def _of_read(call: ToolCall) -> Iterator[Saw]:
    given = decoded_arguments(call.input)
    path = next(iter(call.paths), "")
    if not path or not call.result:
        return
    numbered = list(_numbered_lines(call.result))
    if numbered:
        lines = tuple(text for _, text in numbered)
        part = any(given.get(name) is not None for name in _PART_OF)
        is_cut = len(lines) >= _MOST_READ or any(line.endswith(_CUT) for line in lines)
        yield Saw(path, numbered[0][0], lines, not part and not is_cut and numbered[0][0] == 1)


def _numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that numbers them, up to the first that is not the next one."""
    due = 0
    for line in text.split("\n"):
        found = _NUMBERED.fullmatch(line)
        if found is None or (due and int(found[1]) != due):
            return
        due = int(found[1]) + 1
        yield due - 1, found[2]


def _of_edit(call: ToolCall) -> Iterator[FileEvent]:
    given = decoded_arguments(call.input)
    if patch := _patch_in(given) or _patch_in({"": call.command}):
        yield from _of_patch(patch)
        return
    if operations := mappings(given.get("operations")) or mappings(given.get("ops")):
        yield from map(_of_operation, operations)
        return
    path = next(iter(call.paths), "") or call.path or ""
    content = next((given[name] for name in WHOLE if isinstance(given.get(name), str)), None)
    if path and content is not None:
        yield Wrote(path, content)
        return
    parts = mappings(given.get("edits")) or [given]
    everywhere = any(given.get(name) is True for name in _EVERYWHERE)
    replaced = [
        (first_string(part, *OLD), first_string(part, *NEW), everywhere or _is_everywhere(part))
        for part in parts
        if any(isinstance(part.get(name), str) for name in OLD + NEW)
    ]
    files = {first_string(part, *PATHS) or path for part in parts}
    if path and replaced and files == {path}:
        if len(replaced) == 1 and not replaced[0][0]:
            yield Wrote(path, replaced[0][1])
        else:
            yield Replaced(path, tuple(replaced), "" if call.estimated else call.patch)
        return
    for edit in edits_of_call(call):
        if edit.estimated or not edit.patch:
            yield Touched(edit.path)
        else:
            yield Patched(edit.path, edit.patch)


def _is_everywhere(part: Mapping[str, Any]) -> bool:
    return any(part.get(name) is True for name in _EVERYWHERE)


def _patch_in(given: Mapping[str, Any]) -> str:
    texts = (value for value in given.values() if isinstance(value, str) and _BEGIN in value)
    return next(texts, "")


def _of_operation(operation: Mapping[str, Any]) -> FileEvent:
    path, diff = first_string(dict(operation), "path"), first_string(dict(operation), "diff")
    kind = operation.get("type")
    if kind == "create_file":
        return Wrote(path, diff)
    return Removed(path) if kind == "delete_file" else Patched(path, diff)


def _of_patch(text: str) -> Iterator[FileEvent]:
    """Yield what a ``*** Begin Patch`` text does."""
    body = text[text.index(_BEGIN) :].partition("\n*** End Patch")[0]
    _, *sections = _SECTION.split(body)
    for kind, path, rest in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        part = rest.removeprefix("\n")
        if kind == "Delete":
            yield Removed(path)
        elif kind == "Add":
            lines = (line[1:] for line in part.split("\n") if line.startswith("+"))
            yield Wrote(path, "".join(f"{line}\n" for line in lines))
        else:
            move = _MOVE.match(part)
            yield Sought(path, tuple(_sought(part[move.end() :] if move else part)))
            if move:
                yield Moved(path, move[1])


def _sought(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    before, lines = "", list[str]()
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("@@"):
            if lines:
                yield before, tuple(lines)
            before, lines = line[2:].removeprefix(" "), []
        elif not line.startswith("*** "):
            lines.append(line or " ")
    if lines:
        yield before, tuple(lines)


def _of_command(call: ToolCall) -> Iterator[FileEvent]:
    gone = set[str]()
    for (words, _), folder in placed_commands(call.command):
        for event in _of_words(words, folder):
            yield event
            if isinstance(event, Removed):
                gone.add(event.path)
    for write in writes_of(call.command):
        is_elsewhere = write.path.startswith(("git ", "$")) and "/" in write.path
        if write.is_edit and write.path not in gone and not is_elsewhere:
            yield Shaken(write.path) if _is_pattern(write.path) else Touched(write.path)


def _is_pattern(path: str) -> bool:
    return any(sign in path for sign in " *?$[{`") or path in ("patch", "apply_patch")


def _of_words(words: tuple[str, ...], folder: str) -> Iterator[FileEvent]:
    if not words:
        return
    program = words[0].rpartition("/")[2]
    plain = [word for word in words[1:] if not word.startswith("-")]
    verb, named = program, plain
    if program == "git" and plain[:1] in (["mv"], ["rm"]):
        verb, named = plain[0], plain[1:]
    paths = [posixpath.join(folder, each) for each in named if "$" not in each]
    if verb == "mv" and len(paths) == 2:
        yield Moved(paths[0], paths[1], sure=False)
    elif verb == "rm" and "--cached" not in words:
        yield from (Removed(path, sure=False) for path in paths)
    elif program == "git" and plain and _GIT_CHANGES.match(plain[0]):
        if not _leaves_files(words, plain):
            yield Shaken(" ".join(words[:3]), plain[0] in _PUTS)
    elif _is_formatter(program, words, plain):
        files = [word for word in plain if re.search(r"[^/]\.\w+$", word)]
        if files and not any(map(_is_pattern, files)):
            yield from (Touched(posixpath.join(folder, file)) for file in files)
        else:
            yield Shaken(" ".join(words[:3]))


def _leaves_files(words: tuple[str, ...], plain: list[str]) -> bool:
    """Return whether a git command that may change files changes none."""
    options = set(words)
    if plain[0] in ("checkout", "switch"):
        return bool(options & {"-b", "-c", "-B", "-C"}) and len(plain) <= 2
    if plain[0] == "reset":
        return not options & {"--hard", "--merge", "--keep"}
    if plain[0] == "stash":
        return plain[1:2] in (["list"], ["show"])
    return plain[0] == "restore" and "--staged" in options and "--worktree" not in options


def _is_formatter(program: str, words: tuple[str, ...], plain: list[str]) -> bool:
    if set(words) & _LOOKS:
        return False
    if _FORMATTERS.match(program):
        needs = {"prettier": "--write", "biome": "--write", "eslint": "--fix", "gofmt": "-w"}
        needed = needs.get(program, "--fix" if program == "golangci-lint" else "")
        return not needed or any(word.startswith(needed) for word in words)
    return bool(_TASKS.match(program)) and (
        any(_FORMATS.search(word) for word in plain[:2]) or "--fix" in words
    )
