"""Recognise checks among a session's commands (tests, linters, builds), and what they look at.

A check counts for a change only if it could have failed because of it: it ran after the last edit
of what it looks at. A type check of another language, a linter for behaviour and 1,319 green tests
for a README do not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal

from msgspec import Struct

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, ToolCall
from debrief.signals.excerpts import ANSI, line_at
from debrief.signals.shell import (
    Command,
    check_of,
    code_in,
    commands_in,
    pattern,
    script_of,
    tables,
)

CheckKind = Literal["test", "lint", "types", "build", "run"]
"""``run``: a changed program itself, or code with assertions, was run."""
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\\n")
_PIPE = re.compile(r"(?<!\|)\|(?![|&])")
_ASSERTS = re.compile(r"^[ \t]*assert\b", re.MULTILINE)
_PRINTED = 6_000
"""Characters of a check's output, from its end, that are read."""
_QUOTE = 120
ANY = "any"
_CONFIG = frozenset(["toml", "yaml", "yml", "json", "jsonc", "ini", "cfg", "lock", "tf", "xml"])


_NO_CHECK = frozenset(
    [
        "cd",
        "ls",
        "cat",
        "head",
        "tail",
        "sed",
        "awk",
        "find",
        "grep",
        "rg",
        "wc",
        "echo",
        "which",
        "git",
        "gh",
        "mkdir",
        "rm",
        "cp",
        "mv",
        "touch",
        "chmod",
        "sleep",
        "export",
        "source",
    ]
)
"""Programs that look, move and publish: run again, they show nothing of the work."""


class CheckRun(Struct, frozen=True, kw_only=True):
    """A check that ran, and how it ended."""

    kind: CheckKind
    tool: str
    languages: frozenset[str]
    """That it looks at; ``any`` where its name does not say."""
    passed: bool | None
    """None when nothing tells."""
    place: int
    """The call's position in the session."""
    evidence: Evidence
    command: str = ""
    """Of the call: other checks may be in it."""
    exit_code: int | None = None
    """Of the call, where it is known."""

    @property
    def shown(self) -> str:
        """Return which check it was, where, and how it ended."""
        outcome = {True: "passed", False: "failed", None: "outcome not known"}[self.passed]
        where = self.evidence
        return f"turn {where.turn}: {self.kind} ({self.tool}) {outcome}: {where.quote}"

    def covers(self, path: str) -> bool:
        """Return whether the check could fail because of a change of that file."""
        language = language_of(path)
        if self.kind == "run":
            return True
        if language:
            return self.kind != "lint" and not self.languages.isdisjoint((ANY, language))
        return self.kind == "lint" and ANY in self.languages and _extension(path) in _CONFIG


def checks_in(
    call: ToolCall,
    *,
    turn: int,
    place: int,
    failed: bool,
    changed: Collection[str],
    known: Collection[str],
) -> Iterator[CheckRun]:
    """Yield the checks that a call of a shell ran.

    Args:
        call: with its command.
        turn: that it belongs to.
        place: its position in the session.
        failed: the call reported an error.
        changed: files changed so far: to run one of them is a check of it.
        known: commands that failed before the last edit, and scripts that ran: to run one again is
            a check of what was changed since.
    """
    commands = [command for command in commands_in(call.command) if command.words]
    checks: dict[tuple[str, ...], tuple[CheckKind, str]] = {
        command.words: check for command in commands if (check := check_of(command.words))
    }
    if not checks and call.command.strip() in known:
        checks = {(): ("run", shorten(call.command, 60))}
    if not checks:
        checks = dict(_runs_of(commands, changed, known))
    if not checks and _ASSERTS.search(code_in(call.command)):
        checks[()] = "run", "an assertion"
    last = bool(commands) and (commands[-1].words in checks or () in checks)
    certain = _status_counts(call.command, last)
    for kind, tool in dict.fromkeys(checks.values()):
        passed, quote = _result_of(call, failed, certain)
        yield CheckRun(
            kind=kind,
            tool=tool,
            languages=languages_of(tool),
            passed=passed,
            place=place,
            evidence=Evidence(turn, call.id, quote),
            command=call.command,
            exit_code=call.exit_code,
        )


def can_check(call: ToolCall) -> bool:
    """Return whether a command that failed, run again, shows whether the work holds now."""
    commands = [words for words, _ in commands_in(call.command) if words]
    return any(words[0].rpartition("/")[2] not in _NO_CHECK for words in commands)


def _runs_of(
    commands: Sequence[Command], changed: Collection[str], known: Collection[str]
) -> Iterator[tuple[tuple[str, ...], tuple[CheckKind, str]]]:
    """Yield the commands that run a changed program itself, or a script again."""
    names = {_name(path) for path in changed if language_of(path)}
    for command in commands:
        script = script_of(command.words)
        if script is not None and (script in known or _name(script) in names):
            yield command.words, ("run", script)


def last_covering(
    paths: Iterable[str], checks: Sequence[CheckRun], begun: int, edited: int
) -> CheckRun | None:
    """Return the last check with a known outcome that could have failed because of the change.

    One that passed before the last edit says nothing of it; one that failed, and did not run again,
    stands.

    Args:
        paths: files that were changed.
        checks: in order.
        begun: position of the first edit.
        edited: position of the last edit of these files.
    """
    files = list(paths)
    for run in reversed(checks):
        if run.passed is not None and any(map(run.covers, files)):
            return run if run.place >= edited or (run.place > begun and not run.passed) else None
    return None


def language_of(path: str) -> str:
    """Return a file's language; empty for documents, settings and other data."""
    return _languages_by_extension().get(_extension(path), "")


def _extension(path: str) -> str:
    name = _name(path)
    return name.rpartition(".")[2].lower() if "." in name.lstrip(".") else ""


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


@cache
def _languages_by_extension() -> dict[str, str]:
    table = tables()["extensions"]
    return {extension: name for name, listed in table.items() for extension in listed.split()}


@cache
def languages_of(tool: str) -> frozenset[str]:
    """Return the languages that a check looks at."""
    table = tables()["languages"]
    found = [
        name for name, listed in table.items() if tool in {one.strip() for one in listed.split(",")}
    ]
    return frozenset(found or [ANY])


def _status_counts(command: str, last: bool) -> bool:
    """Return whether a command's exit status is that of its checks: no pipe, nothing behind it."""
    bare = _QUOTED.sub("", command).strip()
    return not _is_piped(command) and (last or not re.search(r"[;\n]|\|\|", bare))


def _is_piped(command: str) -> bool:
    """Return whether the exit status is that of a program behind a pipe."""
    bare = _QUOTED.sub("", command)
    return bool(_PIPE.search(bare)) and "pipefail" not in bare


def _result_of(call: ToolCall, failed: bool, certain: bool) -> tuple[bool | None, str]:
    """Return whether a check passed, and the line that tells: the last one that does.

    The status counts where it is the check's own (``certain``) and no line tells.
    """
    text = ANSI.sub("", call.printed[-_PRINTED:]).replace("\\n", "\n")
    if call.result is None:
        return None, ""
    is_over = bool(call.late_result) or call.exit_code is not None
    for kind in ("none",) if is_over else ("none", "running"):
        if untold := pattern("outcomes", kind).search(text):
            return None, line_at(text, untold)
    lines = [line for line in text.split("\n") if line.strip()]
    for line in reversed(lines):
        bad = pattern("outcomes", "failed").search(line)
        if bad or pattern("outcomes", "passed").search(line):
            return not (bad or (failed and certain)), shorten(line.strip(), _QUOTE)
    quote = shorten(lines[-1].strip(), _QUOTE) if lines else ""
    if failed and not _is_piped(call.command):
        return False, quote
    of_script = call.exit_code is None and pattern("outcomes", "script").search(text)
    return (not failed if certain and not of_script else None), quote
