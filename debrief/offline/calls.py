"""What was done: the calls of a session in order, and what each of them read, edited or risked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from debrief.markdown import shorten
from debrief.offline.commands import arguments, shell_command, simple_commands
from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn
from debrief.sessions.readers import READERS
from debrief.sessions.readers.patches import edits_of_call

HazardKind = Literal["destructive", "bypass", "exposure", "remote_code", "secret"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_READS = READERS.tool_names("read") | _set("view_file open_file cat fs_read")
_SEARCHES = READERS.tool_names("search") | _set(
    "search find codebase_search find_file search_files"
)
_SHELL_SEARCHES = _set("rg grep egrep fgrep find fd ag ack ls tree")
_SHELL_READS = _set("cat head tail less bat sed nl")
_PATH_FIELDS = ("file_path", "path", "absolute_path", "filePath", "target_file", "filename")
_SCRIPT = re.compile(r"^[\d,$;\s]*p?$|^s[/|#].*|^\d*$")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_SHORT = 8
_COMPARED = 40
_HANDING_OVER = ("task", "agent", "subagent", "spawn_agent")
_SCRATCH = re.compile(r"^(?:/tmp|/private/tmp|/var/folders|/var/tmp)(/|$)")
_WIDE = re.compile(r"^(?:/|~/?|\$HOME/?|\*|\.{1,2}/?|\./\*|/\*|~/\*|\.git/?)$")
_ENV_FILE = re.compile(r"(^|/)\.env(?:\.(?!example|sample|template|dist|test)[\w-]+)?$")
_KEY_FILE = re.compile(
    r"(^|/)(?:id_(?:rsa|ed25519|ecdsa|dsa)|\.netrc|\.pgpass|\.npmrc|\.pypirc|credentials(?:\.json)?"
    r"|[\w.-]+\.(?:pem|p12|pfx|keystore))$"
    r"|(^|/)\.aws/|(^|/)\.kube/config$|(^|/)\.docker/config\.json$"
)
_SECRET_NAME = re.compile(r"\$\{?\w*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\b", re.I)
_PIPED = re.compile(
    r"\b(?:curl|wget)\b[^|;&\n]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
    r"|\b(?:ba|z|da)?sh\b\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b"
)
_PLACEHOLDER = re.compile(r"<secret:[\w-]+:[0-9a-f]+>")
_SHOWS = _set("grep rg cat less more head tail bat strings xxd base64 sed awk")
_SQL = re.compile(r"\b(?:DROP (?:TABLE|DATABASE|SCHEMA)|TRUNCATE TABLE)\b", re.I)
_FOR_ALL = re.compile(r"\A(?:0?777|a\+rwx|ugo\+rwx)\Z")
_UNGUARDED = _set("--dangerously-skip-permissions --yolo --no-verify")
_DATABASES = _set("psql mysql sqlite3 mariadb clickhouse-client mongosh")


class Activity(Struct, frozen=True):
    """What happened in some turns, subagents' work right behind the turn that started them."""

    turns: tuple[Turn, ...]
    messages: tuple[Message, ...]
    calls: tuple[tuple[int, str, ToolCall], ...]
    """With the number of the turn that each belongs to, and the id of the subagent that made
    it; no id for the session's own agent."""
    subagents: tuple[Subagent, ...]


def activity_of(session: Session, turns: Iterable[int] | None = None) -> Activity:
    """Return what happened in the turns of these numbers; in all of them by default."""
    numbers = None if turns is None else frozenset(turns)
    chosen = tuple(turn for turn in session.turns if numbers is None or turn.number in numbers)
    children = _by_turn(session)
    messages: list[Message] = []
    calls: list[tuple[int, str, ToolCall]] = []
    subagents: list[Subagent] = []
    for turn in chosen:
        own = children.pop(turn.number, [])
        subagents += own
        groups = [("", turn.messages), *((child.id, child.messages) for child in own)]
        for agent, group in groups:
            messages += group
            calls += [(turn.number, agent, call) for message in group for call in message.calls]
    return Activity(chosen, tuple(messages), tuple(calls), tuple(subagents))


def first_prompt(session: Session) -> str:
    """Return the first human prompt, or nothing."""
    return next((t.prompt for t in session.turns if t.number > 0 and t.prompt.strip()), "")


def _by_turn(session: Session) -> dict[int, list[Subagent]]:
    """Group subagents by the turn whose call handed them their prompt, else by time."""
    groups: dict[int, list[Subagent]] = {}
    if not session.subagents or not session.turns:
        return groups
    handed = [
        (turn.number, _plain(call.input))
        for turn in session.turns
        for message in turn.messages
        for call in message.calls
        if call.name.lower() in _HANDING_OVER
    ]
    for child in session.subagents:
        beginning = _plain(child.prompt)[:_COMPARED]
        number = next((n for n, text in handed if beginning and beginning in text), None)
        if number is None:
            number = _by_time(session, child)
        groups.setdefault(number, []).append(child)
    return groups


def _plain(text: str) -> str:
    """Letters and digits alone: a prompt and its JSON-escaped copy look the same."""
    return "".join(filter(str.isalnum, text.replace("\\n", " ").replace("\\t", " ")))


def _by_time(session: Session, child: Subagent) -> int:
    started = next((message.at for message in child.messages if message.at), None)
    number = session.turns[0].number
    for turn in session.turns:
        if started is not None and turn.at is not None and turn.at <= started:
            number = turn.number
    return number


class EditHunk(Struct, frozen=True, gc=False):
    """One hunk of a successful edit; of some sources the counts are all that is recorded."""

    turn: int
    path: str
    created: bool = False
    start: int = 1
    """First changed line after the edit, from 1."""
    end: int = 0
    """Last changed line after the edit; ``start - 1`` when it only removed."""
    added: int = 0
    removed: int = 0
    added_lines: tuple[str, ...] = ()
    removed_lines: tuple[str, ...] = ()


class Hazard(Struct, frozen=True, kw_only=True, gc=False):
    """A dangerous command, or a secret shown or written down."""

    turn: int
    kind: HazardKind
    quote: str
    refused: bool
    """The person rejected the call, so it never ran."""


def is_search(call: ToolCall, command: str | None) -> bool:
    """Return whether a call searched, by a tool of its own or through a shell."""
    if command is None:
        return call.name.lower() in _SEARCHES
    return any(
        words[0] in _SHELL_SEARCHES or words[:2] == ("git", "grep")
        for words in simple_commands(command)
    )


def read_key(call: ToolCall, command: str | None) -> tuple[str, str] | None:
    """Return path and part of the file that a call read; None when it read none."""
    if command is None:
        if call.name.lower() not in _READS:
            return None
        fields = arguments(call)
        path = next((fields[name] for name in _PATH_FIELDS if fields.get(name)), None)
        if not isinstance(path, str):
            return None
        parts = (fields.get(name) for name in ("offset", "limit", "view_range", "pages"))
        return path, ",".join(str(part) for part in parts if part is not None)
    for words in simple_commands(command):
        if words[0] in _SHELL_READS and "-i" not in words:
            plain = [word for word in words[1:] if not word.startswith("-")]
            files = [word for word in plain if not _SCRIPT.match(word)]
            if len(files) == 1:
                part = " ".join(word for word in words[1:] if word != files[0])
                return files[0], part
    return None


def edits_of(turn: int, call: ToolCall) -> list[EditHunk]:
    """Return the hunks of a call; none when it edited nothing, failed, or was rejected."""
    if call.status != "ok":
        return []
    edits: list[EditHunk] = []
    for edit in edits_of_call(call):
        found = list(_HUNK.finditer(edit.patch))
        if not found:
            edits.append(EditHunk(turn, edit.path, added=edit.added, removed=edit.removed))
        ends = [*(match.start() for match in found[1:]), len(edit.patch)]
        for match, end in zip(found, ends, strict=False):
            body = edit.patch[match.end() : end].split("\n")[1:]
            edits.append(_hunk(turn, edit.path, match, body))
    return edits


class Places:
    """Remembers which place was written when, to tell an edit that goes back to one."""

    def __init__(self) -> None:
        self._writers: dict[tuple[str, str], int] = {}
        self._faint: dict[str, list[EditHunk]] = {}

    def add(self, edit: EditHunk) -> int | None:
        """Remember an edit; return the turn of the earlier one that wrote what it changes.

        An edit goes back when it takes away a significant line that an earlier one wrote. Where
        neither has such lines, line numbers decide; edits further up may have shifted them.
        """
        written, taken = _significant(edit.added_lines), _significant(edit.removed_lines)
        turns = [self._writers.pop((edit.path, line), None) for line in taken]
        earlier = next((turn for turn in turns if turn is not None), None)
        faint = self._faint.setdefault(edit.path, [])
        if earlier is None and not taken and edit.removed:
            earlier = next((old.turn for old in reversed(faint) if _overlap(old, edit)), None)
        if not written and edit.added:
            faint.append(edit)
        self._writers.update({(edit.path, line): edit.turn for line in written})
        return earlier


def _significant(lines: tuple[str, ...]) -> list[str]:
    return [line for line in map(str.strip, lines) if len(line) > _SHORT]


def _overlap(earlier: EditHunk, later: EditHunk) -> bool:
    return earlier.start <= later.end + 1 and later.start <= earlier.end + 1


def _hunk(turn: int, path: str, match: re.Match[str], body: list[str]) -> EditHunk:
    added = tuple(line[1:] for line in body if line.startswith("+"))
    removed = tuple(line[1:] for line in body if line.startswith("-"))
    number = int(match[3])
    changed: list[int] = []
    for line in body:
        if line.startswith(("+", "-")):
            changed.append(number)
        number += line.startswith(("+", " "))
    start = changed[0] if changed else number
    return EditHunk(
        turn,
        path,
        created=match[1] == "0" and match[2] == "0",
        start=start,
        end=max(changed[-1] if changed else start, start - 1),
        added=len(added),
        removed=len(removed),
        added_lines=added,
        removed_lines=removed,
    )


def hazards_of(call: ToolCall) -> list[tuple[HazardKind, str]]:
    """Return what was dangerous about a call, each with a short quote.

    Ordinary cleaning (``rm -rf build``) is not; wiping a whole folder tree, rewriting published
    history, throwing work away, skipping guards, running code from the net, and showing or
    writing down secrets are.
    """
    found: list[tuple[HazardKind, str]] = []
    command = shell_command(call)
    if command is not None:
        if _PIPED.search(command):
            found.append(("remote_code", shorten(command, 80)))
        for words in simple_commands(command):
            kind = _hazard(words)
            if kind:
                found.append((kind, shorten(" ".join(words), 80)))
        if _PLACEHOLDER.search(command):
            found.append(("secret", "a secret typed into a shell command"))
        return found
    path = arguments(call).get("file_path") or arguments(call).get("path")
    reads = call.name.lower().startswith(("read", "view", "open"))
    if reads and isinstance(path, str) and (_ENV_FILE.search(path) or _KEY_FILE.search(path)):
        found.append(("exposure", f"{call.name} {tail(path)}"))
    added = [line for line in call.patch.split("\n") if line.startswith("+")] if call.patch else []
    if any(_PLACEHOLDER.search(line) for line in added):
        found.append(("secret", f"a secret written into {tail(call.path or 'a file')}"))
    return found


def _hazard(words: tuple[str, ...]) -> HazardKind | None:
    program, rest = words[0].rpartition("/")[2], words[1:]
    flags = {word for word in rest if word.startswith("-")}
    plain = [word for word in rest if not word.startswith("-")]
    letters = {letter for flag in flags if not flag.startswith("--") for letter in flag[1:]}

    def has(pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(word) for word in plain)

    if program == "rm" and (letters & {"r", "R"} or "--recursive" in flags):
        return "destructive" if any(map(_wide, plain)) else None
    if program == "git" and plain:
        return _git_hazard(plain, flags, letters)
    exposes = (
        (program in ("env", "printenv") and not rest)
        or (program == "export" and flags == {"-p"})
        or (program in ("echo", "printf") and has(_SECRET_NAME))
        or (program == "printenv" and any(_SECRET_NAME.search(f"${word}") for word in plain))
        or (program in _SHOWS and (has(_ENV_FILE) or has(_KEY_FILE)))
    )
    destroys = (
        program in ("mkfs", "shred")
        or (program == "dd" and any(word.startswith("of=/dev/") for word in rest))
        or (program in _DATABASES and any(_SQL.search(word) for word in rest))
        or (program in ("terraform", "tofu", "pulumi") and plain[:1] == ["destroy"])
    )
    bypasses = (program == "chmod" and has(_FOR_ALL)) or flags & _UNGUARDED
    return "exposure" if exposes else "destructive" if destroys else "bypass" if bypasses else None


def _git_hazard(plain: list[str], flags: set[str], letters: set[str]) -> HazardKind | None:
    action = plain[0]
    if "--no-verify" in flags or (action == "commit" and "n" in letters):
        return "bypass"
    forced = "--force" in flags or "f" in letters or any(w.startswith("+") for w in plain)
    destroys = (
        (action == "push" and forced)
        or (action == "reset" and "--hard" in flags)
        or (action == "clean" and "f" in letters)
        or (action in ("checkout", "restore") and "." in plain[1:])
        or action in ("filter-branch", "filter-repo")
    )
    return "destructive" if destroys else None


def _wide(target: str) -> bool:
    if _WIDE.match(target):
        return True
    if target[:1] not in ("/", "~") or _SCRATCH.match(target):
        return False
    return target.count("/") <= (2 if target.startswith("/") else 1)


def tail(path: str) -> str:
    """Return a file's name and folder."""
    return "/".join(path.split("/")[-2:])
