"""Decide how each check of a call ended, by what it printed and by the exit status.

A call has one exit status, and often several commands: what follows each (``&&``, ``;``, a pipe),
marks that ``echo`` printed and the labels of a task runner say which check an end belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from debrief.sessions.model import ToolCall
from debrief.signals.check_results import CheckResult, read_other_result, read_test_result
from debrief.signals.excerpts import line_at
from debrief.signals.schema import CheckKind
from debrief.signals.shell import Command, commands_in, joints_in, pattern

_STRICT = re.compile(r"\bset -[a-z]*e")
_STATUS = re.compile(r"\$\?|\$\{PIPESTATUS\[0\]\}|\$\{pipestatus\[1\]\}")
_HARMLESS = frozenset(["echo", "printf", "true", "date", "cat", "ls", "tail", "head"])
"""Programs that hardly ever fail behind a check."""
_CUTS = frozenset(["tail", "head", "tee", "cat", "less", "more"])
"""Programs that pass on what they are given, or a part of it by its place alone."""
_TASK = re.compile(r"\[([\w:-]+)\] ")
_READ: frozenset[CheckKind] = frozenset(["lint", "types"])
"""Checks that read code and run nothing."""


Outcome = tuple[CheckKind, CheckResult]
"""What kind of check it turned out to be, and its result."""


class FoundCheck(NamedTuple):
    """A check in a call: the command's position in it, and what it is."""

    at: int
    kind: CheckKind
    tool: str
    is_dry: bool = False
    is_script: bool = False
    """A program of the session's own, which its name alone makes a check."""


def results_of(
    call: ToolCall, found: Sequence[FoundCheck], failed: bool, text: str
) -> list[Outcome]:
    """Return the kind and the result of each check of a call.

    Where a chain of several failed and none of them is seen to, each of them failed.
    """
    if pending := _pending_result(call, text):
        return [(check.kind, pending) for check in found]
    joints = joints_in(call.command)
    is_known = not _is_of_script(call) and not _is_stopped(call, failed, text)
    statuses = [
        _own_status(call.command, check.at, call.printed, not failed if is_known else None)
        for check in found
    ]
    is_chain = failed and len({check.at for check in found}) > 1
    seen = [None if is_chain and status is False else status for status in statuses]
    results = _reached(_seen_results(call, found, seen, failed, text), found, joints)
    if not is_chain:
        return results
    results = _not_reached(results, found, joints)
    if statuses[-1] is not False or any(result.passed is False for _, result in results):
        return results
    begun = max((at + 1 for at, joint in enumerate(joints[:-1]) if joint != "&&"), default=0)
    return [
        (kind, replace(result, passed=False) if check.at >= begun else result)
        for check, (kind, result) in zip(found, results, strict=True)
    ]


def _seen_results(
    call: ToolCall,
    found: Sequence[FoundCheck],
    statuses: Sequence[bool | None],
    failed: bool,
    text: str,
) -> list[Outcome]:
    """Return how each check ended by its own part of the output, and by its own status."""
    commands, joints = commands_in(call.command), joints_in(call.command)
    tasks = [check.tool.rpartition(" ")[2] for check in found]
    parts = [_part(commands, check.at, text) for check in found]
    results: list[Outcome] = []
    for check, task, part, status in zip(found, tasks, parts, statuses, strict=True):
        if check.is_dry:
            results.append((check.kind, CheckResult()))
            continue
        behind = _behind(commands, joints, check.at)
        beside = [
            each.kind
            for each, its in zip(found, parts, strict=True)
            if its == part and each is not check
        ]
        own = _own_lines(part, task, tasks)
        results.append(_result_of(check, own, status, behind, beside, did_fail=failed))
    return results


def _reached(
    results: list[Outcome], found: Sequence[FoundCheck], joints: Sequence[str]
) -> list[Outcome]:
    """Return results with those as passed behind whose ``&&`` the next check ran."""
    kept = results[-1:]
    for at in reversed(range(len(found) - 1)):
        (kind, one), (_, other) = results[at], kept[0]
        between = joints[found[at].at : found[at + 1].at]
        is_joined = between[:1] == ("&&",) and {"&&", "|"}.issuperset(between)
        did_run = other.is_counted or (one.passed is None and other.passed is not None)
        if is_joined and did_run and not one.is_counted:
            one = replace(one, passed=True)
        kept.insert(0, (kind, one))
    return kept


def _not_reached(
    results: list[Outcome], found: Sequence[FoundCheck], joints: Sequence[str]
) -> list[Outcome]:
    """Return results without those of checks behind the ``&&`` of one that failed."""
    kept = results[:1]
    for at, ((_, one), (kind, other)) in enumerate(pairwise(results)):
        is_joined = set(joints[found[at].at : found[at + 1].at]) == {"&&"}
        did_run = one.passed is not False or not is_joined or other.is_counted
        kept.append((kind, other if did_run else CheckResult()))
    return kept


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
    check: FoundCheck,
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


def _pending_result(call: ToolCall, text: str) -> CheckResult | None:
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


def _own_status(command: str, at: int, text: str, is_ok: bool | None) -> bool | None:
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
        said = _echoed_words(following)
        if joint == "|":
            if "pipefail" not in command:
                return _echoed_status(commands, joints, next_at, text)
        elif joint in ("&&", "||") and said:
            if any(line.strip() == said for line in text.split("\n")):
                return joint == "&&"
            if joint == "||":
                return True if next_at + 2 == len(commands) else None
        elif joint == "&&":
            if is_ok is False and not _HARMLESS.issuperset(following[:1]):
                return None
        elif joint == ";" and following[:1] == ("echo",) and "$?" in " ".join(following):
            return _echoed_status(commands, joints, next_at, text)
        elif joint != ";" or not is_strict or is_ok is not True:
            return None
    return is_ok


def _echoed_status(
    commands: Sequence[Command], joints: Sequence[str], at: int, text: str
) -> bool | None:
    """Return the status that an ``echo`` of the next commands printed; None without one."""
    while joints[at] == "|" and at + 1 < len(joints):
        at += 1
    following = commands[at + 1].words if at + 1 < len(commands) else ()
    words = " ".join(following[1:])
    status = _STATUS.search(words)
    if following[:1] != ("echo",) or status is None:
        return None
    if "PIPESTATUS" not in status[0] and at > 0 and joints[at - 1] == "|":
        return None
    form = re.escape(words[: status.start()].strip()) + r"\s*(\d+)"
    found = re.findall(form, text) if form else []
    return int(found[-1]) == 0 if found else None


def _echoed_words(words: Sequence[str]) -> str:
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
