"""The commands that a session may run: one table, ``allowlist.json``, and nothing outside of it.

The table is data so that recorders in other languages, their buttons and the server read the very
same one. A command is never handed to a shell; that shell characters are refused all the same is
for those who will run a recorded command some day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files

from msgspec import Struct, convert

from debrief.errors import InputError


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The allowlist as ``allowlist.json`` has it."""

    version: int
    program: str
    rule: str
    words: dict[str, str]
    """Regular expressions that read the same in every dialect, each for a whole argument."""
    longest_word: int
    """Characters of an argument or a working directory."""
    most_arguments: int
    validation: tuple[str, ...]
    """Words after which a command validates a change."""
    patterns: tuple[str, ...]


@cache
def table() -> Table:
    """Return the allowlist."""
    text = files("debrief.recorder").joinpath("allowlist.json").read_text(encoding="utf-8")
    return convert(json.loads(text), Table)


def check_command(cmd: str, args: Sequence[str], cwd: str = ".") -> None:
    """Refuse a command that the allowlist does not have.

    Args:
        cmd: the program.
        args: its arguments, as they are handed to it.
        cwd: the folder that it runs in, relative to the repository's top folder.

    Raises:
        InputError: it is not in the allowlist; says what is.
    """
    if problem := command_problem(cmd, args, cwd):
        shown = " ".join([cmd, *args])
        culprit = repr(shown if len(shown) <= 200 else f"{shown[:200]}…")
        allowed = ", ".join(table().patterns)
        raise InputError(culprit, problem, f"Allowed are, after {table().program}: {allowed}.")


def command_problem(cmd: str, args: Sequence[str], cwd: str = ".") -> str:
    """Return why the allowlist does not have a command; empty when it has it."""
    allowed = table()
    if cmd != allowed.program:
        return f"the program is not {allowed.program}"
    if len(args) > allowed.most_arguments:
        return f"over {allowed.most_arguments} arguments"
    if len(cwd) > allowed.longest_word or not _word("folder").fullmatch(cwd):
        return "the working directory is not a plain folder inside of the repository"
    for number, arg in enumerate(args, 1):
        if len(arg) > allowed.longest_word:
            return f"argument {number} is over {allowed.longest_word} characters long"
    if not _pattern_of(tuple(args)):
        return "no pattern of the allowlist has these arguments"
    return ""


def is_validation(cmd: str, args: Sequence[str]) -> bool:
    """Return whether a command of the allowlist lints, tests or builds."""
    pattern = _pattern_of(tuple(args)) if cmd == table().program else ()
    return bool(pattern) and pattern[-1] in table().validation


@lru_cache(maxsize=256)
def _pattern_of(args: tuple[str, ...]) -> tuple[str, ...]:
    return next((pattern for pattern in _patterns() if _matches(pattern, args)), ())


@cache
def _word(name: str) -> re.Pattern[str]:
    return re.compile(table().words[name])


@cache
def _patterns() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pattern.split(" ")) for pattern in table().patterns)


def _matches(pattern: tuple[str, ...], args: Sequence[str]) -> bool:
    if pattern[-1].endswith(">+"):
        if len(args) < len(pattern):
            return False
        last = pattern[-1].removesuffix("+")
        pattern = (*pattern[:-1], *[last] * (len(args) - len(pattern) + 1))
    return len(pattern) == len(args) and all(
        _word(part[1:-1]).fullmatch(arg) is not None if part.startswith("<") else part == arg
        for part, arg in zip(pattern, args, strict=True)
    )
