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

from debrief.scoring.shortening import around, shortened
from debrief.sessions.model import ToolCall
from debrief.sessions.readers.documents import compact_json
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, edits_of_call
from debrief.sessions.readers.values import without_reminders
from debrief.signals.check_commands import CheckRun
from debrief.signals.shell import arguments, commands_in, pattern

Cut = tuple[int, int]
"""Characters of a text's beginning and of its end that are shown."""
ResultKind = Literal["read", "look", "git", "check", "failed", "run", "report", "short"]


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
_GIT_LOOKS = _set("log status branch remote rev-parse ls-files config blame reflog")


class Rooms(Struct, frozen=True, kw_only=True):
    """Characters that each kind of text may take."""

    results: Mapping[ResultKind, int]
    command: Cut
    diff: Cut
    arguments: Cut
    message: Cut


FULL = Rooms(
    results={
        "read": 600,
        "look": 700,
        "git": 3_000,
        "check": 1_500,
        "failed": 4_500,
        "run": 1_500,
        "report": 8_000,
        "short": 600,
    },
    command=(2_000, 800),
    diff=(2_600, 1_400),
    arguments=(700, 100),
    message=(9_000, 3_000),
)
OUTLINE = Rooms(
    results={
        "read": 0,
        "look": 0,
        "git": 300,
        "check": 300,
        "failed": 900,
        "run": 150,
        "report": 2_500,
        "short": 200,
    },
    command=(240, 60),
    diff=(320, 120),
    arguments=(200, 0),
    message=(400, 200),
)
"""Of the middle of a session that is too long to be shown whole."""


def call_shown(call: ToolCall, rooms: Rooms, folder: str = "") -> tuple[str, str]:
    """Return the label and the text of a call, without what came back.

    Args:
        call: a command is shown as it was typed, an edit as a diff, all else by its arguments.
        rooms: how much of each is shown.
        folder: where the session works: paths below it are shown from there.
    """
    given = arguments(call)
    if call.command:
        behind = " (in the background)" if given.get("run_in_background") is True else ""
        return f"{call.name}{behind}", shortened(call.command, *rooms.command)
    edits = edits_shown(call)
    if edits:
        rows = [f"{_from(folder, edit.path)}\n{edit.patch}".rstrip() for edit in edits]
        return call.name, "\n".join(shortened(row, *rooms.diff) for row in rows)
    text = _lines(given) or call.input
    if len(folder) > 1:
        text = text.replace(f"{folder.rstrip('/')}/", "")
    return call.name, shortened(text, *rooms.arguments)


def edits_shown(call: ToolCall) -> Sequence[FileEdit]:
    """Return what a call did to files; of one that was refused or failed, what it was to do."""
    edits = edits_of_call(call)
    if edits or call.action != "edit":
        return edits
    asked = edit_of_arguments(arguments(call))
    return [asked] if asked and asked.patch else []


def outcome_label(call: ToolCall, checks: Sequence[CheckRun] = ()) -> str:
    """Return how a call ended, in a few words: status, exit status, lines, and what it checks."""
    if call.result is None:
        return "none"
    parts: list[str] = [call.status]
    if call.exit_code is not None:
        parts.append(f"exit code {call.exit_code}")
    if call.added or call.removed:
        parts.append(f"+{call.added} -{call.removed} lines")
    if checks:
        parts.append(f"check: {', '.join(f'{check.kind} ({check.tool})' for check in checks)}")
    return ", ".join(parts)


def result_shown(call: ToolCall, rooms: Rooms, checks: Sequence[CheckRun] = ()) -> str:
    """Return what is shown of what came back from a call; empty for what says nothing more.

    That is the word of success behind an edit whose diff is shown, and a refusal or an answer,
    which the person's own words are shown of.
    """
    if call.result is None or call.status == "rejected":
        return ""
    if call.status == "ok" and (call.action in ("plan", "ask") or edits_of_call(call)):
        return ""
    text = _COLOUR.sub("", without_reminders(call.result)).rstrip()
    if call.exit_code is not None:
        text = _ENVELOPE.sub("", text)
    kind = result_kind(call, checks)
    room = rooms.results[kind]
    if kind in ("failed", "run", "check"):
        return around(text, pattern("outcomes", "failed"), room)
    if kind == "report":
        return shortened(text, room * 3 // 4, room // 4)
    return shortened(text, room * 2 // 3, room // 3)


def result_kind(call: ToolCall, checks: Sequence[CheckRun] = ()) -> ResultKind:
    """Return what kind of text came back from a call."""
    if call.action in ("delegate", "ask"):
        return "report"
    if call.action in ("read", "search"):
        return "read"
    if call.action in ("run", "wait"):
        if checks:
            return "check" if all(check.passed for check in checks) else "failed"
        kind = _kind_of_command(call.command)
        if kind == "run" and (call.exit_code or call.status == "failed"):
            return "failed"
        return kind
    return "short" if call.action in ("edit", "plan") else "look"


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
    """Return arguments as lines, their texts as they are and not as JSON."""
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else compact_json(value)}"
        for name, value in given.items()
    )
