"""How a tool call and what came back are shown to a model: by what the call does.

What was read matters less than what was changed, and what a check printed where it failed matters
most. So an edit is shown as a diff, once; a command as it was typed; a file that was read by its
beginning and end; and a check's output around its failures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from debrief.markdown import shorten
from debrief.scoring.diffs import compact_diff
from debrief.scoring.repeats import ShownLines
from debrief.scoring.shortening import around, shortened
from debrief.sessions.model import ToolCall
from debrief.sessions.readers.documents import compact_json
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, edits_of_call
from debrief.sessions.readers.values import without_reminders
from debrief.signals.shell import arguments, commands_in, pattern

Cut = tuple[int, int]
"""Characters of a text's beginning and of its end that are shown."""
ResultKind = Literal["read", "look", "git", "failed", "run", "report", "short"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ENVELOPE = re.compile(
    r"\A(?:(?:Chunk ID|Exit code|Original token count): \w+\n|Wall time:? [\d.]+ seconds\n"
    r"|Process exited with code \d+\n)+(?:Output:\n)?"
)
"""What Codex puts before the output of a command that has ended."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_LOOKS = _set(
    "cat head tail less more nl sed awk ls find fd tree grep rg ag wc stat file du df pwd "
    "echo which cd jq sort uniq cut true test [ printenv env date"
)
"""Programs that only look: what they print is a file or a list, as of a tool that reads."""
_LINE = 160
"""Characters of arguments that stand on one line."""
_GIT_LOOKS = _set("log status branch remote rev-parse ls-files config blame reflog")


class Rooms(Struct, frozen=True, kw_only=True):
    """Characters that each kind of text may take."""

    results: Mapping[ResultKind, int]
    command: Cut
    diff: int
    arguments: Cut
    message: Cut
    closing: Cut
    """Of the words that close a turn."""


FULL = Rooms(
    results={
        "read": 300,
        "look": 400,
        "git": 1_500,
        "failed": 2_500,
        "run": 800,
        "report": 3_000,
        "short": 300,
    },
    command=(900, 300),
    diff=3_000,
    arguments=(400, 100),
    message=(3_000, 1_000),
    closing=(6_000, 2_000),
)
OUTLINE = Rooms(
    results={
        "read": 0,
        "look": 0,
        "git": 200,
        "failed": 400,
        "run": 120,
        "report": 800,
        "short": 120,
    },
    command=(140, 40),
    diff=400,
    arguments=(80, 0),
    message=(160, 0),
    closing=(900, 300),
)
"""Of the middle of a session that is too long to be shown whole."""


def call_shown(
    call: ToolCall, rooms: Rooms, known: ShownLines, turn: int, folder: str = ""
) -> tuple[str, str]:
    """Return the label and the text of a call, without what came back.

    Args:
        call: a command is shown as it was typed, an edit as a diff, all else by its arguments.
        rooms: how much of each is shown.
        known: what was shown of the session before; what is shown now is added to it.
        turn: of the call.
        folder: where the session works: paths below it are shown from there.
    """
    given = arguments(call)
    if call.command:
        behind = " (in the background)" if given.get("run_in_background") is True else ""
        command = known.without_repeats(call.command)
        shown = shortened(command, *rooms.command)
        known.add(shown, turn)
        return f"{call.name}{behind}", shown
    edits = edits_shown(call)
    if edits:
        rows = [
            f"{_from(folder, edit.path)}\n"
            + diff_shown(edit.patch, rooms.diff, known, turn).rstrip()
            for edit in edits
        ]
        return call.name, "\n".join(rows)
    text = _lines(given) or call.input
    if len(folder) > 1:
        text = text.replace(f"{folder.rstrip('/')}/", "")
    if call.action in ("read", "search") and not rooms.results["read"]:
        return f"{call.name} {shorten(text.partition(': ')[2], rooms.arguments[0])}", ""
    shown = shortened(known.without_repeats(text), *rooms.arguments)
    known.add(shown, turn)
    return call.name, shown


def diff_shown(patch: str, room: int, known: ShownLines, turn: int) -> str:
    """Return a diff by its changed lines, without those that were shown before."""
    text = known.without_repeats(compact_diff(patch), is_diff=True)
    shown = compact_diff(text, room)
    known.add(shown, turn, is_diff=True)
    return shown


def edits_shown(call: ToolCall) -> Sequence[FileEdit]:
    """Return what a call did to files; of one that was refused or failed, what it was to do."""
    edits = edits_of_call(call)
    if edits or call.action != "edit":
        return edits
    asked = edit_of_arguments(arguments(call))
    return [asked] if asked and asked.patch else []


def outcome_label(call: ToolCall) -> str:
    """Return how a call ended, in a few words: status, exit status, and lines."""
    if call.result is None:
        return "no result"
    parts: list[str] = [call.status]
    if call.exit_code is not None:
        parts.append(f"exit code {call.exit_code}")
    if call.added or call.removed:
        parts.append(f"+{call.added} -{call.removed} lines")
    return ", ".join(parts)


def result_shown(call: ToolCall, rooms: Rooms, known: ShownLines, turn: int) -> str:
    """Return what is shown of what came back from a call; empty for what says nothing more.

    That is the word of success behind an edit whose diff is shown, and a refusal or an answer,
    which the person's own words are shown of. Arguments as of ``call_shown``.
    """
    if call.result is None or call.status == "rejected":
        return ""
    if call.status == "ok" and (call.action in ("plan", "ask") or edits_of_call(call)):
        return ""
    text = _COLOUR.sub("", without_reminders(call.result)).rstrip()
    if call.exit_code is not None:
        text = _ENVELOPE.sub("", text)
    kind = result_kind(call, text)
    room = rooms.results[kind]
    if not room:
        return ""
    if "diff --git " in text:
        return diff_shown(text, room, known, turn)
    text = known.without_repeats(text)
    if kind in ("failed", "run"):
        shown = around(text, pattern("outcomes", "failed"), room)
    elif kind == "report":
        shown = shortened(text, room * 3 // 4, room // 4)
    else:
        shown = shortened(text, room * 2 // 3, room // 3)
    known.add(shown, turn)
    return shown


def result_kind(call: ToolCall, text: str) -> ResultKind:
    """Return what kind of text came back from a call."""
    if call.action in ("delegate", "ask"):
        return "report"
    if call.action in ("read", "search"):
        return "read"
    if call.action in ("run", "wait"):
        kind = _kind_of_command(call.command)
        return "failed" if kind == "run" and _has_failed(call, text) else kind
    return "short" if call.action in ("edit", "plan") else "look"


def _has_failed(call: ToolCall, text: str) -> bool:
    """Return whether a command failed, as its exit status or what it printed says."""
    failed = call.status == "failed" or bool(call.exit_code)
    return failed or pattern("outcomes", "failed").search(text) is not None


def _kind_of_command(command: str) -> ResultKind:
    commands = [each.words for each in commands_in(command) if each.words]
    programs = {words[0].rpartition("/")[2] for words in commands}
    gits = {words[1] for words in commands if words[0] == "git" and len(words) > 1}
    if gits - _GIT_LOOKS:
        return "git"
    return "look" if programs and programs <= _LOOKS | {"git"} else "run"


def _from(folder: str, path: str) -> str:
    return path.removeprefix(f"{folder.rstrip('/')}/") if folder else path


def _lines(given: Mapping[str, Any]) -> str:
    """Return arguments, their texts as they are and not as JSON: on one line where they fit."""
    rows = [
        f"{name}: {value if isinstance(value, str) else compact_json(value)}"
        for name, value in given.items()
    ]
    one = ", ".join(rows)
    return one if len(one) <= _LINE and "\n" not in one else "\n".join(rows)
