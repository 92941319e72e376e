"""Normalize commands and errors, so that the same failure reads the same in every session.

Paths, numbers, ids and addresses differ from one time to the next and say nothing of what went
wrong, so they become placeholders. Words stay as they are: a name is never made of a guess.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from debrief.markdown import shorten
from debrief.sessions.readers.documents import mend_text
from debrief.signals.excerpts import ANSI, printed_lines
from debrief.signals.shell import raw_commands, unwrapped

_ADDRESS = re.compile(r"\b(?:https?|git|ssh|file)://[^\s'\"<>)]+|\bgit@[^\s'\"]+")
_PATH = re.compile(
    r"(?:(?<=^)|(?<=[\s'\"`(=:\[{,]))(?:[A-Za-z]:\\|~?/|\.{1,2}/)?[\w.@+-]*/[^\s'\"`:,;)\]}]*"
)
_FILE = re.compile(
    r"\b[\w.-]+\.(?:[cm]?[jt]sx?|py|go|rs|rb|java|kt|swift|php|vue|md|json|ya?ml|toml)\b"
)
_ID = re.compile(
    r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4,}){2,}\b", re.I
)
_NUMBER = re.compile(
    r"(?<![A-Za-z_\d])(?<!HTTP )(?<!HTTP/)(?<!code )\d+(?:[.:,]\d+)*(?:ms|s|m|h|[kKMG]i?B?)?\b"
)
_LONG = re.compile(r"(['\"`])[^'\"`\n]{60,}\1")
_SHELL = re.compile(r"^(?:\(eval\)|(?:ba|da|z)?sh): ?(?:line )?(?:<n>: ?)?(?=\w)")
"""What says an error, and where in the command line."""
_SUBJECT = 160
_WORD = re.compile(r"[A-Za-z][A-Za-z_:-]*\Z")
_RUNS = frozenset(["run", "exec", "tool", "x", "dlx"])


def plain_error(text: str) -> str:
    """Return an error without what differs from one time to the next, short.

    >>> plain_error("src/a.ts:12:5: error TS2304: Cannot find name 'x'")
    "error TS2304: Cannot find name 'x'"
    """
    text = ANSI.sub("", text).strip()
    text = _ADDRESS.sub("<address>", text)
    text = _PATH.sub("<path>", text)
    text = _FILE.sub("<file>", text)
    text = _ID.sub("<id>", text)
    text = _NUMBER.sub("<n>", text)
    text = _LONG.sub(r"\1…\1", text)
    text = _SHELL.sub("", text)
    text = re.sub(r"^(?:(?:<path>|<file>)(?::<n>)*|at)[:\s]+(?=\S)", "", text)
    text = re.sub(r"(?:<path>|<file>)(?::<n>)+", "<path>", text)
    text = re.sub(r"^[^\w<'\"`(\[]+", "", re.sub(r"\s+", " ", text))
    return shorten(text.strip(" -–:"), _SUBJECT)


def name_of(words: Sequence[str]) -> str:
    """Return what a simple command is called: its program, and the words that choose what it does.

    >>> name_of(["rtk", "bun", "run", "test"]), name_of(["grep", "-n", "word", "file"])
    ('rtk bun run test', 'grep')
    >>> name_of([".venv/bin/python", "-m", "pytest", "tests"])
    'pytest'
    """
    inner = unwrapped(words)
    if not inner:
        return ""
    around = [word for word in words[: len(words) - len(inner)][:2] if _WORD.match(word)]
    around = [word for word in around if word not in _listed("unsaid")]
    if inner[1:2] == ("-m",) and len(inner) > 2 and is_plain(inner):
        inner = inner[2:]  # a module is a program of its own: ``python -m pytest``
    program = program_of(inner)
    kept = [program]
    if "." not in program and not {program} & (_listed("plain") | _listed("no_subcommand")):
        most = 2 if program not in _listed("two_deep") else 3
        for word in inner[1:]:
            if word in _RUNS and len(kept) == 1:
                most = 3
            if word.startswith("-"):
                continue
            if len(kept) >= most or not _WORD.match(word):
                break
            kept.append(word)
    return " ".join([*around, *kept])


def program_of(words: Sequence[str]) -> str:
    """Return the program of a simple command, without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def is_plain(words: Sequence[str]) -> bool:
    """Return whether a simple command's words are no more than what it works on."""
    return program_of(words) in _listed("plain")


def shown(words: Sequence[str]) -> str:
    """Return a simple command as one would type it, short."""
    return shorten(
        shlex.join(words) if any(" " in word for word in words) else " ".join(words), 200
    )


@lru_cache(maxsize=512)
def parts_of(command: str) -> tuple[tuple[str, ...], ...]:
    """Return the simple commands that a command line is about, as they were typed: what only
    changes the folder, waits or prints a word is left out, unless there is nothing else."""
    all_parts = tuple(words for words in raw_commands(command) if words)
    about = tuple(words for words in all_parts if words[0] not in _listed("setup"))
    return about or all_parts


def culprit(command: str, error: str) -> tuple[str, ...]:
    """Return the part of a command line that an error is of: the one whose program the error
    names, else the only one; else the last, which gives a line its exit status. Empty where any
    of several parts may have ended it (``a && b``)."""
    parts = parts_of(command)
    if not parts:
        return ()
    found = raw_commands(command)
    for words in found:
        program = program_of(words)
        if program and re.search(
            rf"(?:^|[\s:\[(`'\"]){re.escape(program)}(?:$|[\s:\])`'\"])", error
        ):
            return words
    if re.match(r"\(eval\)|(?:zsh|bash|sh)(?::|\[)", error):
        return ("shell",)
    if re.match(r"(?:fatal|hint|remote): ", error):
        return next((words for words in parts if words[0] == "git"), parts[-1])
    names = {"git" if words[0] == "git" else name_of(words) for words in parts}
    return () if "&&" in command and len(names) > 1 else parts[-1]


_BLOCK = re.compile(
    r"(?:\A|\nOutput:\n)\s*(?:\[\s*(?=\{\s*\"type\"\s*:\s*\"text\")|(?=\{\"(?:chunk_id|exit_code|wall_time_seconds|output)\"))"
)


def text_of_blocks(result: str) -> str:
    """Return the text of a result that is JSON: of blocks, as servers of tools return it, or of
    a program's output, as Codex does; another result as it is. It may be cut off.

    >>> text_of_blocks('[{"type":"text","text":"Not found"}]')
    'Not found'
    """
    begun = _BLOCK.search(result[:400])
    if begun is None:
        return result
    text = re.search(r'"(?:text|output)"\s*:\s*"((?:[^"\\]|\\.)*+)', result[begun.end() :])
    if text is None:
        return result
    try:
        return mend_text(json.loads(f'"{text[1]}"'))
    except ValueError:  # cut off within an escape, or as a program broke it
        return text[1]


_DIFF = re.compile(
    r"^(?:Diff in \S|@@ -\d|diff --git ).*\n?"
    r"(?:(?!\s*(?:--- )?(?:FAIL|PASS|SKIP|FAILED|ERROR)\b)"
    r"(?:[ +\-\\@].*|(?:index|new file|deleted file|similarity|rename) .*)?\n)*",
    re.MULTILINE,
)


def without_diffs(text: str) -> str:
    """Return a result without the diffs that it prints: their lines are the code itself."""
    return _DIFF.sub("", text)


_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)
_RAISED = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Warning)\b(?::.*)?$", re.MULTILINE
)


_WARNING = re.compile(r"warning\s*:", re.IGNORECASE)


def is_warning(line: str) -> bool:
    """Return whether a line warns, and does not say why something failed: ``warning: …``,
    ``DeprecationWarning: …``."""
    return _WARNING.search(line[:400]) is not None


def says_why(line: str, command: str = "") -> bool:
    """Return whether an error says more than that something failed, and what was run.

    >>> says_why("Script error"), says_why("error Command failed with exit code 1.")
    (False, False)
    """
    if _ASSERTION.match(line):
        return False  # what was expected is another thing in each test
    words = {word.casefold() for word in _LETTERS.findall(plain_error(line))}
    return bool(words - _listed_in("lines", "empty") - set(_LETTERS.findall(command.casefold())))


_ASSERTION = re.compile(r"\W*Assertion(?:Error|Failed\w*)?\b")
_LETTERS = re.compile(r"(?<!<)[^\W\d_]{2,}(?!>)")


def error_line(result: str) -> str:
    """Return the line of a failed call's result that says what was wrong; empty where none does."""
    text = ANSI.sub("", result)
    if _TRACEBACK.search(text) and (raised := _RAISED.findall(text)):
        last: str = raised[-1]
        return last.strip()
    text = without_diffs(text)
    lines = printed_lines(text[:8_000]) + (
        printed_lines(text[-4_000:]) if len(text) > 8_000 else []
    )
    lines = [line for line in lines if not is_warning(line)]
    for form in (pattern("lines", "strong"), pattern("lines", "weak")):
        for line in lines:
            if form.search(line[:400]):
                return line[:400]
    return ""


@cache
def tables() -> dict[str, Any]:
    """Return what programs and tools print when something goes wrong."""
    text = (resources.files("debrief.friction") / "errors.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def listed(name: str) -> frozenset[str]:
    """Return the commands of a list whose names may be of two words."""
    return frozenset(each.strip() for each in tables()["commands"][name].split(","))


@cache
def _listed(name: str) -> frozenset[str]:
    return _listed_in("commands", name)


@cache
def _listed_in(section: str, name: str) -> frozenset[str]:
    return frozenset(tables()[section][name].split())


@cache
def pattern(section: str, name: str = "forms") -> re.Pattern[str]:
    """Return the patterns of a list as one."""
    return re.compile("|".join(tables()[section][name]), re.IGNORECASE | re.MULTILINE)
