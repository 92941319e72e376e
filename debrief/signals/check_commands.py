"""Recognise checks among a session's commands (tests, linters, builds), and what they look at.

A check counts for a change only if it could have failed because of it: it ran after the last edit
of what it looks at. A type check of another language, a linter for behaviour and 1,319 green tests
for a README do not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, ToolCall
from debrief.signals.check_results import (
    CheckResult,
    clean,
    read_other_result,
    read_test_result,
)
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
    joints_in,
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
_CONFIG = frozenset(["toml", "yaml", "yml", "json", "jsonc", "ini", "cfg", "lock", "tf", "xml"])


COMMIT = "git commit"
"""The tool's name of what a hook checks before a commit."""
_COMMITTED = re.compile(r"^\[.+ [0-9a-f]{7,40}\]", re.MULTILINE)
_READ: frozenset[CheckKind] = frozenset(["lint", "types"])
"""Checks that read code and run nothing."""
_TASK = re.compile(r"\[([\w:-]+)\] ")
_MOST = 40
"""Checks of one call that are read, the last ones."""
_STRICT = re.compile(r"\bset -[a-z]*e")
_STATUS = re.compile(r"\$\?|\$\{PIPESTATUS\[0\]\}|\$\{pipestatus\[1\]\}")
_HARMLESS = frozenset(["echo", "printf", "true", "date", "cat", "ls", "tail", "head"])
"""Programs that hardly ever fail behind a check."""
_CUTS = frozenset(["tail", "head", "tee", "cat", "less", "more"])
"""Programs that pass on what they are given, or a part of it by its place alone."""
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
    placed = list(placed_commands(call.command))
    found = _checks_of(call, [each for each, _ in placed], changed, known)
    if not found:
        yield from _commit_checks(call, turn, place, failed)
        return
    text = clean(call.printed)
    results = _results_of(call, found, failed, text)
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


class _Found(NamedTuple):
    """A check in a call: the command's position in it, and what it is."""

    at: int
    kind: CheckKind
    tool: str
    is_dry: bool = False
    is_script: bool = False
    """A program of the session's own, which its name alone makes a check."""


def _checks_of(
    call: ToolCall, commands: Sequence[Command], changed: Collection[str], known: Collection[str]
) -> list[_Found]:
    """Return the checks of a call, the same one at the same place once."""
    found = []
    for at, each in enumerate(commands):
        if check := check_of(each.words):
            is_script = script_of(each.words) == check[1] and "-m" not in each.words
            found.append(_Found(at, *check, is_script=is_script))
        elif check := dry_check_of(each.words):
            found.append(_Found(at, *check, is_dry=True))
    if not found:
        found = list(_runs_of(commands, changed, known))
    if not found and commands and call.command.strip() in known and _runs_work(call):
        found = [_Found(len(commands) - 1, "run", shorten(call.command, 60))]
    code = code_in(call.command)
    if not found and commands and _ASSERTS.search(code) and not writes_in_code(code):
        found = [_Found(len(commands) - 1, "run", "an assertion")]
    return found[-_MOST:]


def _runs_work(call: ToolCall) -> bool:
    """Return whether a call runs code, a script or a task, and so may show how the work is."""
    commands = simple_commands(call.command)
    return bool(code_in(call.command)) or any(
        script_of(words) or is_task(words) for words in commands
    )


def _results_of(
    call: ToolCall, found: Sequence[_Found], failed: bool, text: str
) -> list[tuple[CheckKind, CheckResult]]:
    """Return the kind and the result of each check of a call.

    Where a chain of several failed and none of them is seen to, each of them failed.
    """
    if untold := _untold(call, text):
        return [(check.kind, untold) for check in found]
    commands, joints = commands_in(call.command), joints_in(call.command)
    is_known = not _is_of_script(call) and not _is_stopped(call, failed, text)
    tasks = [check.tool.rpartition(" ")[2] for check in found]
    parts = [_part(commands, check.at, text) for check in found]
    results: list[tuple[CheckKind, CheckResult]] = []
    is_chain = failed and len({check.at for check in found}) > 1
    for check, task, part in zip(found, tasks, parts, strict=True):
        if check.is_dry:
            results.append((check.kind, CheckResult(quote="dry run")))
            continue
        status = own_status(call.command, check.at, call.printed, not failed if is_known else None)
        status = None if is_chain and status is False else status
        behind = _behind(commands, joints, check.at)
        beside = [
            each.kind
            for each, its in zip(found, parts, strict=True)
            if its == part and each is not check
        ]
        own = _own_lines(part, task, tasks)
        results.append(_result_of(check, own, status, behind, beside, did_fail=failed))
    for at in reversed(range(len(found) - 1)):
        (kind, one), (_, other) = results[at], results[at + 1]
        between = joints[found[at].at : found[at + 1].at]
        if between[:1] != ("&&",) or not {"&&", "|"}.issuperset(between):
            continue
        if other.is_counted or (one.passed is None and other.passed is not None):  # it was reached
            results[at] = kind, replace(one, passed=True) if not one.is_counted else one
    for at, ((_, one), (kind, other)) in enumerate(pairwise(results)):
        between = joints[found[at].at : found[at + 1].at]
        if one.passed is False and set(between) == {"&&"} and failed and not other.is_counted:
            results[at + 1] = kind, CheckResult()
    last = own_status(call.command, found[-1].at, call.printed, not failed if is_known else None)
    if is_chain and last is False and all(result.passed is not False for _, result in results):
        begun = max((at + 1 for at, joint in enumerate(joints[:-1]) if joint != "&&"), default=0)
        results = [
            (kind, replace(result, passed=False) if check.at >= begun else result)
            for check, (kind, result) in zip(found, results, strict=True)
        ]
    return results


def _part(commands: Sequence[Command], at: int, text: str) -> str:
    """Return the part of an output that a command printed, where ``echo`` marks its bounds."""
    lines = text.split("\n")
    marks = [
        (mark, place)
        for mark, each in enumerate(commands)
        if each.words[:1] == ("echo",)
        and (said := " ".join(each.words[1:]).partition("$")[0].strip())
        and (place := next((i for i, line in enumerate(lines) if line.startswith(said)), -1)) >= 0
    ]
    begins = max((place + 1 for mark, place in marks if mark < at), default=0)
    ends = min(
        (place for mark, place in marks if mark > at and place >= begins), default=len(lines)
    )
    return "\n".join(lines[begins:ends])


def _own_lines(text: str, task: str, tasks: Sequence[str]) -> str:
    """Return a text without lines that a task runner labels with the name of another task."""
    others = {each for each in tasks if each != task}
    if not others:
        return text
    lines = text.split("\n")
    labels = [found[1] if (found := _TASK.match(line)) else "" for line in lines]
    return "\n".join(
        line
        for line, label in zip(lines, labels, strict=True)
        if not any(label == each or label.startswith(f"{each}:") for each in others)
        or label.startswith(task)
    )


def _result_of(
    check: _Found,
    text: str,
    status: bool | None,
    behind: Sequence[str],
    beside: Collection[CheckKind],
    *,
    did_fail: bool,
) -> tuple[CheckKind, CheckResult]:
    """Return the kind of a check, which a task shows by what it prints, and its result."""
    if check.kind == "test":
        result = read_test_result(text, status, is_cut=bool(behind), is_alone=not beside)
        is_program = check.is_script or re.search(r"verif|validat|repro", check.tool)
        return ("run" if is_program and not result.is_counted else "test"), result
    if not beside and check.kind in ("lint", "build"):
        result = read_test_result(text, status, is_cut=bool(behind))
        if result.ran:
            return "test", result
    return check.kind, read_other_result(
        text,
        check.tool,
        status,
        is_strict=check.kind == "run",
        did_fail=did_fail,
        is_alone=not beside,
        is_alone_of_kind=_READ.isdisjoint(beside) and check.kind in _READ,
        is_filtered=not _CUTS.issuperset(behind),
        is_piped=bool(behind),
    )


def _untold(call: ToolCall, text: str) -> CheckResult | None:
    """Return the result of a call that says nothing of how its checks ended; None for others."""
    if call.result is None:
        return CheckResult()
    is_over = bool(call.late_result) or call.exit_code is not None
    if not is_over and (running := pattern("outcomes", "running").search(text)):
        return CheckResult(quote=line_at(text, running))
    return None


def _is_of_script(call: ToolCall) -> bool:
    """Return whether a status is that of a script around the command."""
    return call.exit_code is None and bool(pattern("outcomes", "script").search(call.printed))


def _is_stopped(call: ToolCall, failed: bool, text: str) -> bool:
    """Return whether a call ran out of time, so that it failed by no check's fault."""
    stopped = pattern("stopped", "timeout").search(text[-300:]) or pattern(
        "stopped", "timeout"
    ).search(text[:200])
    return failed and (call.exit_code in (124, 137, 143) or bool(stopped))


def own_status(command: str, at: int, text: str, is_ok: bool | None) -> bool | None:
    """Return whether a command of a call ended with success, as far as exit statuses tell.

    Args:
        command: the whole call's.
        at: position of the simple command in it.
        text: what the call printed.
        is_ok: the call ended with success; None where that is not known.
    """
    commands, joints = commands_in(command), joints_in(command)
    is_strict = bool(_STRICT.search(command))
    for next_at in range(at, len(commands)):
        joint = joints[next_at]
        if next_at == len(commands) - 1:
            return None if joint == "&" else is_ok
        following = commands[next_at + 1].words
        said = _echoed(following)
        if joint == "|":
            if "pipefail" not in command:
                return _told_status(commands, joints, next_at, text)
        elif joint in ("&&", "||") and said:
            if any(line.strip() == said for line in text.split("\n")):
                return joint == "&&"
            if joint == "||":
                return True if next_at + 2 == len(commands) else None
        elif joint == "&&":
            if is_ok is False and not _HARMLESS.issuperset(following[:1]):
                return None
        elif joint == ";" and following[:1] == ("echo",) and "$?" in " ".join(following):
            return _told_status(commands, joints, next_at, text)
        elif joint != ";" or not is_strict or is_ok is not True:
            return None
    return is_ok


def _told_status(
    commands: Sequence[Command], joints: Sequence[str], at: int, text: str
) -> bool | None:
    """Return the status that an ``echo`` of the next commands printed; None without one."""
    while joints[at] == "|" and at + 1 < len(joints):
        at += 1
    following = commands[at + 1].words if at + 1 < len(commands) else ()
    words = " ".join(following[1:])
    told = _STATUS.search(words)
    if following[:1] != ("echo",) or told is None:
        return None
    if "PIPESTATUS" not in told[0] and at > 0 and joints[at - 1] == "|":
        return None
    form = re.escape(words[: told.start()].strip()) + r"\s*(\d+)"
    found = re.findall(form, text) if form else []
    return int(found[-1]) == 0 if found else None


def _echoed(words: Sequence[str]) -> str:
    """Return the plain words that an ``echo`` prints; empty for other commands."""
    said = " ".join(words[1:])
    return said if words[:1] == ("echo",) and "$" not in said else ""


def _behind(commands: Sequence[Command], joints: Sequence[str], at: int) -> list[str]:
    """Return the programs that a command's output goes through."""
    names = []
    while joints[at] == "|" and at + 1 < len(commands):
        at += 1
        words = commands[at].words
        names.append(words[0].rpartition("/")[2] if words else "")
    return names


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
) -> Iterator[_Found]:
    """Yield the commands that run a changed program itself, or a script again."""
    names = {_name(path) for path in changed if language_of(path)}
    for at, command in enumerate(commands):
        script = script_of(command.words)
        if script is not None and (script in known or _name(script) in names):
            yield _Found(at, "run", script, is_dry="--dry-run" in command.words)


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
