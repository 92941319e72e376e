"""Calls that failed: commands, edits that miss, tools that are not there, refused permissions.

What is no trouble is left out: a search without a match, a check that found something, looked at
once, a call that was called off because another one failed. A failure that says no more than that
it failed has the reason ``unsaid``: whether it is the same as another is not known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import shorten
from debrief.sessions.model import ToolCall
from debrief.sessions.readers.edit_arguments import OLD
from debrief.signals.excerpts import first_line
from debrief.signals.shell import writes_of
from debrief.troubles.absent import absent_in, absent_lines
from debrief.troubles.background import Background
from debrief.troubles.check_findings import did_its_work, found_by_check, is_check, runs_check
from debrief.troubles.failed_calls import (
    check_behind_a_pipe,
    has_failed,
    is_answer,
    is_denied,
    is_stopped,
    went_well,
)
from debrief.troubles.model import TroubleKind, TroubleReason
from debrief.troubles.naming import (
    culprit,
    error_line,
    forms,
    is_outside,
    is_plain,
    name_of,
    parts_of,
    pattern,
    plain_error,
    program_of,
    says_why,
    shown,
    text_of_blocks,
)
from debrief.troubles.steps import CallMade, Mishap
from debrief.troubles.what_worked import in_another_folder, until_it_passed, what_worked

_CALLED_OFF = re.compile(
    r"\A\W*(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call)"
)
_NEAR = 12
"""Calls within which what did it in the end is looked for."""
_GUESSES = 3
"""Times that one test fails, with a change in between, from which on it is no test-first work."""
_UNTOUCHED = -1
"""Place of the last edit where there was none."""
_SHOWS_LOGS = re.compile(r"(?:^|[\s-])(?:logs?|inspect|view|journalctl)\b")
"""Commands that print what happened elsewhere."""
_UNKNOWN_OPTION = re.compile(
    r"\b(?:unknown|unrecogni[sz]ed|unexpected|invalid|no such|undefined)\W+"
    r"(?:\w+ )?(?:flag|option|argument|parameter)s?\b[\s:=]*['\"`‘]?(?P<it>--?\w[\w-]*)",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"\bno such\b|\bnot found\b|did not match|\bcannot find\b|could ?n.t find|could not find"
    r"|\bnot exist|not a git repository",
    re.IGNORECASE,
)
"""What a command may say that works in another folder."""
_ENDED = re.compile(r"\bexit(?:ed)?\b.{0,20}\b(?:code|status)\b", re.IGNORECASE)
"""A line that says no more than that a program failed."""
_NO_FILE = re.compile(
    r"[Nn]o such file|cannot (?:access|open|stat|find)|can't (?:read|open)|not exist"
)


def failures(strand: Sequence[CallMade]) -> list[Mishap]:
    """Return what failed of what one agent did, in order; the same of several calls that it made
    at once happened once."""
    found: dict[tuple[str, str, str, int, int], Mishap] = {}
    for number, mishap in enumerate(_failures(strand)):
        is_test = mishap.reason in ("test", "unsteady_test")
        message = mishap.steps[0].message
        key = (mishap.kind, mishap.subject, mishap.name, message, number if is_test else -1)
        first = found.get(key)
        steps = {step.call.id: step for step in (*first.steps, *mishap.steps)} if first else {}
        found[key] = replace(first, steps=tuple(steps.values())) if first else mishap
    return list(found.values())


def _failures(strand: Sequence[CallMade]) -> Iterator[Mishap]:
    # A subagent has what the session's own agent changed, or another subagent.
    edited = _UNTOUCHED if not (strand and strand[0].agent) else _UNTOUCHED - 1
    fine = _that_went_well(strand)
    background = Background()
    seen: dict[str, int] = {}
    """Place of the last edit when a check last failed so, by its subject."""
    red: dict[str, list[Mishap]] = {}
    """The failures of each test, by its subject."""
    counted: list[Mishap] = []
    """Those that were yielded."""
    for place, step in enumerate(strand):
        call = step.call
        result = call.result or ""
        if call.status == "rejected" or (call.status == "failed" and is_denied(result)):
            continue  # the person's doing
        if not has_failed(call):
            if _has_changed_files(call):
                edited = place
            if call.action == "run":
                background.start(step)
                yield from _behind_a_pipe(step, strand[place + 1 : place + 1 + _NEAR])
            if not check_behind_a_pipe(call):
                continue
        if _CALLED_OFF.search(result[:120]) or is_stopped(call):
            continue
        if call.action == "edit":
            yield from _missed(step, strand[place + 1 : place + 1 + _NEAR])
            continue
        rest = strand[place + 1 : place + 1 + _NEAR]
        if call.action == "wait":
            begun = background.behind(call)
            if begun is None:
                continue  # what failed is what it waited for
            call = replace(call, action="run", command=begun.call.command)
            step = replace(step, call=call)
        for found in _command(step, rest, fine) if call.action == "run" else _tool(step):
            if found.kind == "failing_command" and runs_check(found.command):
                if seen.get(found.subject) == edited:
                    continue  # nothing was changed since: the same failure, looked at again
                seen[found.subject] = edited
            if found.reason == "test":
                if edited == _UNTOUCHED or _passes_unchanged(step, rest):
                    found = replace(found, reason="unsteady_test")
                held = red.setdefault(found.subject, [])
                held.append(found)
                if found.reason == "test" and len(held) < _GUESSES:
                    continue  # a test that fails is what tests are for
                if len(held) == _GUESSES:
                    yield from (early for early in held[:-1] if early not in counted)
                counted.append(found)
            yield found


def _that_went_well(strand: Sequence[CallMade]) -> frozenset[tuple[str, ...]]:
    """Return the simple commands, as typed, that went well at least once, alone on their line."""
    parts = (parts_of(step.call.command) for step in strand if went_well(step.call))
    return frozenset(words for (words, *others) in filter(None, parts) if not others)


def _has_changed_files(call: ToolCall) -> bool:
    is_edit = call.action == "edit" or call.path is not None
    is_write = call.action == "run" and any(write.is_edit for write in writes_of(call.command))
    return call.status == "ok" and (is_edit or is_write)


def _passes_unchanged(step: CallMade, rest: Sequence[CallMade]) -> bool:
    """Return whether the same check passed the next time, and nothing was changed in between."""
    asked = parts_of(step.call.command)
    for later in rest:
        if later.call.action == "edit" or _has_changed_files(later.call):
            return False
        if later.call.action == "run" and parts_of(later.call.command) == asked:
            return went_well(later.call) and not check_behind_a_pipe(later.call)
    return False


def _behind_a_pipe(step: CallMade, rest: Sequence[CallMade]) -> Iterator[Mishap]:
    """Yield a tool that is not there although the call went well: its output went into another
    program, whose exit status is that of the line."""
    call = step.call
    if call.status != "ok" or "|" not in call.command:
        return
    lines = absent_lines(call)
    for words in parts_of(call.command) if lines else ():
        for line in lines if not is_plain(words) else ():
            absent = absent_in(line, program_of(words))
            if absent is None or not absent.is_asked_for_by(words):
                continue
            until, worked = what_worked(words, rest)
            cause = _Cause(absent.subject, absent.name, absent.reason, kind="missing_tool")
            yield _mishap(cause, step, line, command=shown(words), until=until, worked=worked)
            return


def _missed(step: CallMade, rest: Sequence[CallMade]) -> Iterator[Mishap]:
    call, result = step.call, step.call.result or ""
    head = result[:2_000]
    known = (form for form in forms("missed_edit") if any(p.search(head) for p in form.patterns))
    form = next(known, None)
    path = call.path or next(iter(call.paths), "")
    if form is None or not path:
        return  # misses of files that are not known have nothing in common
    if form.reason == "not_read" and not _replaces_text(call):
        return  # a file that was to be made, and that something else had made
    file = step.below(path)
    what = file if is_outside(file) else "an edit"  # whichever file of the repository it is
    yield Mishap(
        kind="missed_edit",
        subject=f"{what}: {form.subject}",
        name=file,
        reason=form.reason,
        at=step.at,
        evidence=step.evidence(first_line(re.sub(r"</?tool_use_error>", "", head))),
        steps=(step, *_next_edit(path, rest)),
        file=file,
    )


def _replaces_text(call: ToolCall) -> bool:
    """Return whether an edit names the text that it replaces; else it writes a whole file."""
    return any(f'"{name}"' in call.input for name in OLD)


def _next_edit(path: str, rest: Sequence[CallMade]) -> tuple[CallMade, ...]:
    """Return the steps up to the one that edited the file after all; none where none did."""
    for number, step in enumerate(rest):
        call = step.call
        named = (call.path, *call.paths)
        if path and path in named and call.action == "edit":
            return tuple(rest[: number + 1]) if call.status == "ok" else ()
    return ()


class _Cause(Struct, frozen=True):
    """Why a call failed: what makes two failures the same trouble."""

    subject: str
    name: str
    reason: TroubleReason = ""
    file: str = ""
    kind: TroubleKind = "failing_command"


def _tool(step: CallMade) -> Iterator[Mishap]:
    """Yield what a failed call of another tool than a shell shows."""
    call = step.call
    if call.action == "web":
        return  # an address that was guessed
    result = text_of_blocks((call.result or "")[:2_000])
    line = error_line(re.sub(r"</?tool_use_error>", "", result))
    if not line and call.exit_code is None:  # else it is what a program printed
        line = first_line(result)
    if line:
        yield _mishap(_cause_of_tool(step, line), step, line)


def _cause_of_tool(step: CallMade, line: str) -> _Cause:
    call = step.call
    path = step.below(next(iter(call.paths), ""))
    if absent := absent_in(line):
        return _Cause(absent.subject, absent.name, absent.reason, kind="missing_tool")
    if pattern("machine").search(line):
        return _Cause(plain_error(line), call.name, "machine", path)
    is_gone = re.search(r"not (?:found|exist)|no such|does not exist", line, re.IGNORECASE)
    if path and is_gone and call.action in ("read", "search"):
        return _not_there(path)
    if path and pattern("too_large").search(line):
        return _Cause(f"{path}: too large to be read whole", path, "too_large", path)
    # Two files that cannot be read are two troubles; two folders that cannot be searched are one.
    name = f"{call.name} {path}".strip() if call.action == "read" else call.name
    reason: TroubleReason = "" if says_why(line) else "unsaid"
    return _Cause(f"{name}: {plain_error(line)}", name, reason, path)


def _command(
    step: CallMade, rest: Sequence[CallMade], fine: Collection[tuple[str, ...]]
) -> Iterator[Mishap]:
    """Yield what a failed command shows: each thing that a check found, or one error."""
    call = step.call
    result = text_of_blocks(call.result or "")
    line = error_line(result)
    parts = parts_of(call.command)
    check = check_behind_a_pipe(call)
    is_refused = pattern("answers", "failed").search(result[:600])
    if not parts or (not check and is_answer(call) and not is_refused):
        return
    checks = [part for part in parts if is_check(part)]
    words = check or culprit(call.command, line) or (checks[0] if len(checks) == 1 else ())
    name = name_of(words)
    if not name:
        return
    found_by = found_by_check(result) if is_check(words) and not absent_in(line, name) else {}
    until, by = until_it_passed(words, rest) if found_by else ((), "")
    for what, reason in found_by.items():
        is_test = reason == "test"
        subject = f"{what}: the test failed" if is_test else f"{name}: {what}"
        cause = _Cause(subject, what if is_test else name, reason)
        yield _mishap(cause, step, what, command=shown(words), until=until, worked=by)
    is_finding = is_check(words) and (did_its_work(result) or _ENDED.search(line))
    if not found_by and not check and not is_finding:  # a finding in no form that is known
        yield from _error(step, rest, fine, words, line)


def _error(
    step: CallMade,
    rest: Sequence[CallMade],
    fine: Collection[tuple[str, ...]],
    words: tuple[str, ...],
    line: str,
) -> Iterator[Mishap]:
    """Yield the failure of a simple command that says why in one line, and what then did it."""
    is_lost = pattern("wrong_folder").search(line) is not None
    if not line or pattern("answers", "nothing").search(line):
        return
    if is_plain(words) and not is_lost and not _says_itself(words, line):
        return  # it is of a file that it printed
    cause = _cause_of(step, words, line)
    parts = parts_of(step.call.command)
    if cause.kind == "missing_tool" and any(_SHOWS_LOGS.search(shown(part)) for part in parts):
        return  # it was not there on another machine
    until, by = what_worked(words, rest)
    if words in fine and by != shown(words):
        by = ""  # it does work, though not at that time
    is_elsewhere = by == shown(words) and _MISSING.search(line)
    there = in_another_folder(step, words, until) if is_elsewhere else ""
    if by in ("", shown(words)) and not is_plain(words):
        mended, before = until_it_passed(words, rest)
        until, by = (mended, before) if before else (until, by)
    if there:
        by = there
        cause = _Cause(_own_words(words, line), name_of(words), kind="wrong_folder")
    yield _mishap(
        cause,
        step,
        line,
        command=shown(words) if words != ("shell",) else shorten(step.call.command, 200),
        until=until,
        worked=by if by != shown(words) else "",
    )


def _cause_of(step: CallMade, words: tuple[str, ...], line: str) -> _Cause:
    name = name_of(words)
    if absent := absent_in(line, program_of(words)):
        return _Cause(absent.subject, absent.name, absent.reason, kind="missing_tool")
    if pattern("wrong_folder").search(line):
        return _Cause(_own_words(words, line), name, kind="wrong_folder")
    if pattern("machine").search(line):
        return _Cause(plain_error(line), name, "machine")  # whichever command ran into it
    if missing := _missing_file(line, words):
        return _not_there(step.below(missing))
    if option := _refused_option(line, words):
        program = name.partition(" ")[0]
        return _Cause(f"{program}: unknown option {option}", program, "unknown_option")
    reason: TroubleReason = "" if says_why(line, step.call.command) else "unsaid"
    return _Cause(_own_words(words, line), name, reason)


def _own_words(words: tuple[str, ...], line: str) -> str:
    return f"{name_of(words)}: {plain_error(line)}"


def _says_itself(words: Sequence[str], line: str) -> bool:
    """Return whether a line is a program's own error, and none of what it printed of a file."""
    program = words[0].rpartition("/")[2]
    if program in (
        "python",
        "python3",
        "node",
        "ruby",
        "perl",
        "php",
        "bash",
        "sh",
        "zsh",
        "shell",
    ):
        return True
    return line.startswith((f"{program}:", "zsh:", "bash:", "sh:", "(eval)", "Error: "))


def _mishap(
    cause: _Cause,
    step: CallMade,
    quote: str,
    *,
    command: str = "",
    until: Sequence[CallMade] = (),
    worked: str = "",
) -> Mishap:
    return Mishap(
        kind=cause.kind,
        subject=shorten(cause.subject, 200),
        name=shorten(cause.name, 200),
        reason=cause.reason,
        at=step.at,
        evidence=step.evidence(shorten(quote.strip(), 160)),
        steps=(step, *until),
        command=command,
        file=cause.file,
        worked=worked,
    )


def _refused_option(line: str, words: Sequence[str]) -> str:
    """Return the option that a program says it does not know, whatever it was to do; empty where it
    says no such thing."""
    found = _UNKNOWN_OPTION.search(line)
    option = found["it"] if found and not is_plain(words) else ""
    return option if any(word.partition("=")[0] == option for word in words) else ""


def _missing_file(line: str, words: Sequence[str]) -> str:
    """Return the path of a command that an error says is not there; empty where it says none."""
    if not _NO_FILE.search(line):
        return ""
    if of_shell := re.search(r"no such file or directory: (?P<it>\S+)$", line):
        return of_shell["it"]
    paths = [word for word in words[1:] if len(word) > 2 and word in line]
    is_named = (word for word in paths if re.search(r"[/.]", word) or f"{word}: No such" in line)
    return next(is_named, "")


def _not_there(path: str) -> _Cause:
    """Return the cause of a path that is not there, whichever command asked for it: two wrong
    guesses are two troubles, and the same one twice is worth knowing."""
    return _Cause(f"{path}: not there", path, "not_there", path)
