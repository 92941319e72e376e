"""Find the later command that did what a failed one was to do.

It is looked for among the next few calls, and counts only where it surely does the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from debrief.friction.call_sequence import CallMade
from debrief.friction.call_status import has_failed, is_look, went_well
from debrief.friction.normalize import is_plain, name_of, parts_of, shown, tables
from debrief.friction.not_found import not_found_lines

_CLOSE = 4
"""Calls in between that are all about what failed; of more that is not known."""
_KEY_WORDS = re.compile(r"[A-Za-z_][\w.-]{1,}")
_PATH = re.compile(r"\bPATH=(?:\"[^\"]+\"|'[^']+'|[^\s;&|]+)")
"""Folders of programs, as a command line sets them."""


def resolution(words: Sequence[str], rest: Sequence[CallMade]) -> tuple[tuple[CallMade, ...], str]:
    """Return the calls up to the command that did what had failed, and that command.

    It shares at least half of the failed one's words, the program's name counted as one of them,
    does the same with the same program or another runner, and went well. Where the same command
    works once the PATH is set, that setting is part of it. Empty where none is seen.

    Args:
        words: of the simple command that failed.
        rest: the next calls of the same agent.
    """
    sought = _key_words(words)
    if not sought or is_look(words):
        return (), ""
    for number, later in enumerate(rest):
        call = later.call
        if not went_well(call):
            if has_failed(call) and name_of(words) in map(name_of, parts_of(call.command)):
                return (), ""  # what works later mends that failure
            continue
        if "||" in call.command or ("|" in call.command and not_found_lines(call)):
            continue  # which part went well is not known
        for part in parts_of(call.command):
            own = _key_words(part)
            if is_look(part) or not can_stand_for(part, words):
                continue
            if set(tables()["commands"]["passes_by"].split()) & (set(part) - set(words)):
                continue  # what had refused was not asked any more
            common = 2 * len(own & sought)
            if own and common >= len(sought) and common >= len(own):
                until = rest[: number + 1]
                worked = shown(part)
                if part[0] == words[0]:
                    path = _path_set([each.call.command for each in until])
                    worked = f"{path} {worked}" if path else worked
                return tuple(until if number < _CLOSE else [later]), worked
    return (), ""


def _path_set(commands: Sequence[str]) -> str:
    """Return how the last of some command lines that sets the PATH does so; else empty."""
    found = [each[0] for command in commands for each in _PATH.finditer(command)]
    return found[-1] if found else ""


def without_path(command: str) -> tuple[str, str]:
    """Split a command into the setting of the PATH before it, if there is one, and the rest."""
    found = _PATH.match(command)
    return (found[0], command[found.end() :].lstrip()) if found else ("", command)


def is_version_of(other: str, program: str) -> bool:
    """Return whether one program is another of its versions, or the one of a folder: ``python3``
    and ``.venv/bin/python`` of ``python``."""
    name, plain = other.rpartition("/")[2], program.rpartition("/")[2]
    if "/" in program or other == program:
        return False
    return re.fullmatch(rf"{re.escape(plain)}[\d.]*", name) is not None


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
