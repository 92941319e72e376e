"""Find secrets in the output of commands that print secrets, such as ``gh auth token``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from debrief.redaction.plausibility import class_of, is_given, is_harmless_name, is_random, kind_of
from debrief.redaction.spans import SecretSpan
from debrief.redaction.strings import strings_in

_LONGEST_COMMAND = 4_000
_MOST_LINES = 200
_START = (
    r"(?:[|;&(\n`]|s(?<=\bs)udo|t(?<=\bt)hen|d(?<=\bd)o|sh -l?c|s(?<=\bs)sh [\w.@-]{1,60})"
    r"[ \t]{0,8}[\"']?(?:[^\W\d]{1,40}=\S{0,80}[ ])?(?:\S{0,60}/)?"
)
"""Where a simple command begins, up to its program's name. Each way begins with a letter or a sign
of its own, in small letters, and a line with its break: Python then skips what begins none."""
_NAME = re.compile(r"[A-Za-z_][\w\-]{2,}")
_OUTPUT = re.compile(r"\A(?:[^\n]{0,120}\n){0,8}?Output:\n")
"""What some programs write before the output of a command."""
_WORD = re.compile(r"""["']?([^\s"']{6,4096})["']?\s*\Z""")
_PAIR = re.compile(
    r"""^\s*["']?([\w.\- ]{1,64}?)["']?(?:\s*[:=]\s*|\s{2,}|\t)["']?([^\s"']{6,4096})["',]*\s*$"""
)


@cache
def _commands() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = tomllib.loads((files(__package__) / "commands.toml").read_text("utf-8"))
    prints, shows = (
        re.compile(rf"{_START}(?:{'|'.join(table[name])})(?!\w)") for name in ("prints", "shows")
    )
    return prints, shows


def command_in(arguments: str) -> str:
    """Return the shell command among the arguments of any tool's call; empty when there is none.

    Args:
        arguments: JSON text.
    """
    if not _FIELD.search(arguments):
        return ""
    try:
        leaves = strings_in(arguments)
    except (ValueError, RecursionError):
        return ""
    return " ".join(leaf for leaf, name, way in leaves if name in _FIELDS)


_FIELDS = ("command", "cmd", "commands", "script")
_FIELD = re.compile(f'"(?:{"|".join(_FIELDS)})"')


def kind_printed(command: str) -> str:
    """Return the kind of secret that a shell command prints; empty when it prints none."""
    prints, shows = _commands()
    command = f"\n{command[:_LONGEST_COMMAND]}"
    small = _small(command)
    if prints.search(small):
        return next(map(kind_of, filter(class_of, _NAME.findall(command))), "secret")
    shown = shows.search(small)
    names = filter(class_of, _NAME.findall(command, shown.start())) if shown else ()
    return next(map(kind_of, names), "")


def _small(text: str) -> str:
    """Return a text with its ASCII letters small: every sign stays in its place."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def printed(command: str, result: str) -> Iterator[SecretSpan]:
    """Yield the secrets in the result of a shell command that prints secrets."""
    kind = kind_printed(command)
    if not kind:
        return
    head = _OUTPUT.match(result)
    at = head.end() if head else 0
    body = result[at:]
    if body.lstrip()[:1] in ("{", "["):
        yield from _in_json(result, at, kind)
        return
    lines = body.splitlines(keepends=True)[:_MOST_LINES]
    is_short = sum(map(bool, map(str.strip, lines))) <= 3
    prints_all = _commands()[0].search(_small(f"\n{command[:_LONGEST_COMMAND]}")) is not None
    for line in lines:
        for begin, end in _values(line, is_first=is_short, is_all=prints_all):
            if line[begin:end] not in command:
                is_short = False
                yield SecretSpan(at + begin, at + end, kind)
        at += len(line)


def _values(line: str, *, is_first: bool, is_all: bool) -> Iterator[tuple[int, int]]:
    """Yield where values are on a line: the first one alone, those of pairs, random ones."""
    word = _WORD.match(line) if is_first else None
    if word:
        if is_given(word[1]):
            yield word.span(1)
    elif is_all:
        pair = _PAIR.match(line)
        if pair and not is_harmless_name(pair[1]) and is_given(pair[2]):
            yield pair.span(2)
        elif not pair:
            for each in re.finditer(r"[^\s\"',]{20,4096}", line):
                if is_random(each[0]):
                    yield each.span()


def _in_json(text: str, at: int, kind: str) -> Iterator[SecretSpan]:
    try:
        leaves = strings_in(text[at:])
    except (ValueError, RecursionError):
        return
    for leaf, _, way in leaves:
        last = way.rpartition(".")[2].lower()
        is_value = last in ("value", "secretstring", "secret") or "data." in way
        if is_value and is_given(leaf) and (begin := text.find(leaf, at)) >= 0:
            yield SecretSpan(begin, begin + len(leaf), kind)
