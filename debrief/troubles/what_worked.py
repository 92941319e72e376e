"""What did it in the end: the command that then went well, or that mended what a check had found.

It is looked for among the next few calls, and counts only where it surely does the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from debrief.sessions.model import ToolCall
from debrief.signals.shell import folder_of
from debrief.troubles.absent import absent_lines
from debrief.troubles.failed_calls import answers, check_behind_a_pipe, has_failed, went_well
from debrief.troubles.naming import is_plain, listed, name_of, parts_of, pattern, shown, tables
from debrief.troubles.steps import CallMade

_CLOSE = 4
"""Calls in between that are all about what failed; of more that is not known."""
_KEY_WORDS = re.compile(r"[A-Za-z_][\w.-]{1,}")
_TO_ROOT = 'cd "$(git rev-parse --show-toplevel)"'


def until_it_passed(
    words: Sequence[str], rest: Sequence[CallMade]
) -> tuple[tuple[CallMade, ...], str]:
    """Return the steps up to the next run of the same check; and the command that mended what it
    had found, where the check then passed and nothing else was done."""
    name = name_of(words)
    for number, later in enumerate(rest):
        if later.call.action != "run" or name not in map(name_of, parts_of(later.call.command)):
            continue
        between = rest[:number]
        if has_failed(later.call) or check_behind_a_pipe(later.call):
            return tuple(between), ""
        only = between[0].call if len(between) == 1 else None
        is_deed = only is not None and only.action == "run" and only.status == "ok"
        part = parts_of(only.command)[-1:] if is_deed and only is not None else ()
        is_mend = part and pattern("mends").search(" ".join(part[0]))
        by = shown(part[0]) if is_mend else ""
        return tuple(rest[: number + 1]), by
    return (), ""


def what_worked(words: Sequence[str], rest: Sequence[CallMade]) -> tuple[tuple[CallMade, ...], str]:
    """Return the steps up to the command that did what had failed, and that command.

    It shares at least half of the failed one's words, the program's name counted as one of them,
    does the same with the same program or another runner, and went well; empty where none is seen.
    """
    sought = _key_words(words)
    if not sought or is_look_or_help(words):
        return (), ""
    for number, later in enumerate(rest):
        call = later.call
        if not went_well(call):
            if call.action == "run" and name_of(words) in map(name_of, parts_of(call.command)):
                return (), ""  # what works later mends that failure
            continue
        if "||" in call.command or ("|" in call.command and absent_lines(call)):
            continue  # which part went well is not known
        for part in parts_of(call.command):
            own = _key_words(part)
            if is_look_or_help(part) or not can_stand_for(part, words):
                continue
            if not _passes_by().isdisjoint(set(part) - set(words)):
                continue  # what had refused was not asked any more
            common = 2 * len(own & sought)
            if own and common >= len(sought) and common >= len(own):
                by = "" if _does_less(part, words) else shown(part)
                by = part[0] if is_version_of(part[0], words[0]) else by
                return tuple(rest[: number + 1] if number < _CLOSE else [later]), by
    return (), ""


def is_version_of(other: str, program: str) -> bool:
    """Return whether one program is another of its versions, or the one of a folder: ``python3``
    and ``.venv/bin/python`` of ``python``."""
    name, plain = other.rpartition("/")[2], program.rpartition("/")[2]
    if "/" in program or other == program:
        return False
    return re.fullmatch(rf"{re.escape(plain)}[\d.]*", name) is not None


def _does_less(part: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the same command only left out some of what it was to work on."""
    left_out = set(words) - set(part)
    return (
        part[0] == words[0]
        and set(part) < set(words)
        and not any(word.startswith("-") for word in left_out)
    )


@cache
def _passes_by() -> frozenset[str]:
    return frozenset(tables()["commands"]["passes_by"].split())


def is_look_or_help(words: Sequence[str]) -> bool:
    """Return whether a command only asks what there is: it looks, or prints a help or a version."""
    known = answers() | listed("looks")
    return not known.isdisjoint({words[0], " ".join(words[:2])}) or not {
        "--help",
        "-h",
        "help",
        "--version",
    }.isdisjoint(words[1:])


def can_stand_for(other: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether another command may do what one failed to do: the same thing by the same
    program, or the same by another runner of tasks, put before it or taken away."""
    if is_version_of(other[0], words[0]):
        return other[1:] == words[1:]
    program, failed = other[0].rpartition("/")[2], words[0].rpartition("/")[2]
    if "ssh" in (program, failed):
        return False  # what it is to do is one word, for another machine
    if program == failed:
        return name_of(other) == name_of(words) and not is_plain(words)
    if is_plain(words):
        return False  # its words are what it works on, and not what it does
    runners = set(tables()["commands"]["runners"].split())
    return (failed in runners or failed in other) and (program in runners or program in words)


def _key_words(words: Sequence[str]) -> frozenset[str]:
    return frozenset(
        word.rpartition("/")[2] for word in words if _KEY_WORDS.match(word) or "/" in word
    )


def in_another_folder(step: CallMade, words: Sequence[str], until: Sequence[CallMade]) -> str:
    """Return the command with the folder that it then worked in, nothing having been changed;
    empty where it did not change to one."""
    folder = folder_of(until[-1].call.command)
    if not folder or folder == folder_of(step.call.command) or ".." in folder:
        return ""
    if not all(_is_mere_look(later.call) for later in until[:-1]):
        return ""  # something else may have mended it
    if folder.rstrip("/") == step.folder.rstrip("/"):
        return f"{_TO_ROOT} && {shown(words)}"
    below = step.below(folder)
    return f"cd {below} && {shown(words)}" if not below.startswith(("/", "~", "$")) else ""


def _is_mere_look(call: ToolCall) -> bool:
    parts = parts_of(call.command) if call.action == "run" else ()
    return call.action in ("read", "search") or (bool(parts) and all(map(is_look_or_help, parts)))
