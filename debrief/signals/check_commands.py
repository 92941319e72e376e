"""Recognize checks among a session's commands: tests, linters, builds, runs of the program."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from msgspec import Struct

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, ToolCall
from debrief.signals.check_outcomes import FoundCheck, results_of
from debrief.signals.check_results import clean, read_test_result
from debrief.signals.check_targets import units_of
from debrief.signals.excerpts import first_line, line_at
from debrief.signals.schema import CheckKind
from debrief.signals.shell import (
    Command,
    check_of,
    code_in,
    commands_in,
    dry_check_of,
    is_task,
    pattern,
    placed_commands,
    raw_commands,
    script_of,
    simple_commands,
    tables,
    writes_in,
    writes_in_code,
)

_ASSERTS = re.compile(r"^[ \t]*assert\b", re.MULTILINE)
ANY = "any"


COMMIT = "git commit"
"""The tool's name of what a hook checks before a commit."""
_COMMITTED = re.compile(r"^\[.+ [0-9a-f]{7,40}\]", re.MULTILINE)
_MOST = 40
"""Checks of one call that are read, the last ones."""
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
    ran: int | None = None
    """Tests that ran, skipped ones left out; None where the output has no count."""
    failed: int | None = None
    skipped: int | None = None
    failures: tuple[str, ...] = ()
    """Lines that name what failed."""
    units: tuple[str, ...] = ("",)
    """What it looks at; see ``check_targets``."""
    folder: str = ""
    """That it ran in, as the command changed to it."""
    is_edited_after: bool = False
    """The same call changed a file after it."""


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
    placed = list(placed_commands(call.command))
    found = _checks_of(call, [each for each, _ in placed], changed, known)
    if not found:
        yield from _commit_checks(call, turn, place, failed)
        return
    text = clean(call.printed)
    results = results_of(call, found, failed, text)
    raw = raw_commands(call.command)
    for check, result in zip(found, results, strict=True):
        each, folder = placed[check.at]
        yield CheckRun(
            kind=result[0],
            tool=check.tool,
            languages=languages_of(check.tool),
            passed=result[1].passed,
            place=place,
            evidence=Evidence(turn, call.id, result[1].quote),
            command=call.command,
            exit_code=call.exit_code,
            ran=result[1].ran,
            failed=result[1].failed,
            skipped=result[1].skipped,
            failures=result[1].failures,
            units=(folder,)
            if result[0] == "run"
            else units_of(raw[check.at], each.words, folder, check.tool),
            folder=folder,
            is_edited_after=any(
                write.is_edit and (language_of(write.path) or ", by " in write.path)
                for later, _ in placed[check.at + 1 :]
                for write in writes_in(later)
            ),
        )


def _checks_of(
    call: ToolCall, commands: Sequence[Command], changed: Collection[str], known: Collection[str]
) -> list[FoundCheck]:
    """Return the checks of a call, the same one at the same place once."""
    found = []
    for at, each in enumerate(commands):
        if check := check_of(each.words):
            is_script = script_of(each.words) == check[1] and "-m" not in each.words
            found.append(FoundCheck(at, *check, is_script=is_script))
        elif check := dry_check_of(each.words):
            found.append(FoundCheck(at, *check, is_dry=True))
    if not found:
        found = list(_runs_of(commands, changed, known))
    if not found and commands and call.command.strip() in known and _runs_work(call):
        found = [FoundCheck(len(commands) - 1, "run", shorten(call.command, 60))]
    code = code_in(call.command)
    if not found and commands and _ASSERTS.search(code) and not writes_in_code(code):
        found = [FoundCheck(len(commands) - 1, "run", "an assertion")]
    return found[-_MOST:]


def _runs_work(call: ToolCall) -> bool:
    """Return whether a call runs code, a script or a task, and so may show how the work is."""
    commands = simple_commands(call.command)
    return bool(code_in(call.command)) or any(
        script_of(words) or is_task(words) for words in commands
    )


def _commit_checks(call: ToolCall, turn: int, place: int, failed: bool) -> Iterator[CheckRun]:
    """Yield the check that the hook of a commit is: of one that was refused, or that went well."""
    committing = [at for at, words in enumerate(raw_commands(call.command)) if _is_commit(words)]
    if not committing or call.result is None:
        return
    text = clean(call.printed)
    tests = read_test_result(text, None)
    refused = pattern("outcomes", "refused").search(text)
    is_made = bool(_COMMITTED.search(text))
    if is_made or not (refused or tests.failed or failed):
        passed, quote = True, first_line(text)
    elif refused or tests.failed:
        passed, quote = False, tests.quote if tests.failed else line_at(text, refused)  # type: ignore[arg-type]
    else:
        return
    folder = list(placed_commands(call.command))[committing[-1]][1]
    yield CheckRun(
        kind="lint",
        tool=COMMIT,
        languages=frozenset([ANY]),
        passed=passed,
        place=place,
        evidence=Evidence(turn, call.id, quote),
        command=call.command,
        exit_code=call.exit_code,
        ran=tests.ran if tests.failed else None,
        failed=tests.failed or None,
        skipped=tests.skipped if tests.failed else None,
        units=(folder,),
        folder=folder,
    )


def _is_commit(words: Sequence[str]) -> bool:
    """Return whether a command commits, in a wrapper or bare."""
    plain = [word for word in words[:6] if not word.startswith("-")]
    git = next((at for at, word in enumerate(plain[:2]) if word == "git"), -1)
    return git >= 0 and "commit" in plain[git + 1 : git + 3]


def can_check(call: ToolCall) -> bool:
    """Return whether a command that failed, run again, shows whether the work holds now."""
    commands = [words for words, _ in commands_in(call.command) if words]
    return any(words[0].rpartition("/")[2] not in _NO_CHECK for words in commands)


def _runs_of(
    commands: Sequence[Command], changed: Collection[str], known: Collection[str]
) -> Iterator[FoundCheck]:
    """Yield the commands that run a changed program itself, or a script again."""
    names = {_name(path) for path in changed if language_of(path)}
    for at, command in enumerate(commands):
        script = script_of(command.words)
        if script is not None and (script in known or _name(script) in names):
            yield FoundCheck(at, "run", script, is_dry="--dry-run" in command.words)


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
