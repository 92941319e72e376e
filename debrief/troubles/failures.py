"""Calls that failed: commands, edits that miss, tools that are not there, refused permissions.

What is no trouble is left out: a search without a match, a check that found something, looked at
once, a call that was called off because another one failed. A failure whose result does not say
what was wrong is left out too: whether it is the same as another is not known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from msgspec.structs import replace

from debrief.facts.checks import checks_in
from debrief.facts.quoting import ANSI, first_line, printed_lines
from debrief.facts.shell import bare_words, check_of, commands_in, folder_of, writes_of
from debrief.markdown import shorten
from debrief.sessions.model import ToolCall
from debrief.troubles.model import TroubleKind
from debrief.troubles.naming import (
    culprit,
    error_line,
    forms,
    is_outside,
    is_plain,
    listed,
    name_of,
    parts_of,
    pattern,
    plain_error,
    shown,
    tables,
    text_of_blocks,
    without_diffs,
)
from debrief.troubles.steps import CallMade, Mishap

_ENDED_BADLY = re.compile(r"\A\s*(?:<returncode>(?!0)|Exit code:? [1-9])")
_CALLED_OFF = re.compile(
    r"\A\W*(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call)"
)
_NEAR = 12
"""Calls within which what did it in the end is looked for."""
_CLOSE = 4
"""Calls in between that are all about what failed; of more that is not known."""
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
_NOT_READ = "the file was not read before it was edited"
_RAN = re.compile(
    r"\b\d+ (?:pass|fail|error|warning|problem|test|example|spec)|^(?:FAIL|PASS|ok|---)\b", re.M
)
"""What a check prints that did its work."""
_ENDED = re.compile(r"\bexit(?:ed)?\b.{0,20}\b(?:code|status)\b", re.IGNORECASE)
"""A line that says no more than that a program failed."""
_TO_ROOT = 'cd "$(git rev-parse --show-toplevel)"'
_KEY_WORDS = re.compile(r"[A-Za-z_][\w.-]{1,}")


def failures(strand: Sequence[CallMade]) -> list[Mishap]:
    """Return what failed of what one agent did, in order; the same of several calls that it made
    at once happened once."""
    found: dict[tuple[str, str, int, int], Mishap] = {}
    for number, mishap in enumerate(_failures(strand)):
        message = mishap.steps[0].message
        key = (mishap.kind, mishap.subject, message, number if mishap.is_test else -1)
        first = found.get(key)
        steps = {step.call.id: step for step in (*first.steps, *mishap.steps)} if first else {}
        found[key] = replace(first, steps=tuple(steps.values())) if first else mishap
    return list(found.values())


def _failures(strand: Sequence[CallMade]) -> Iterator[Mishap]:
    # A subagent has what the session's own agent changed, or another subagent.
    edited = _UNTOUCHED if not (strand and strand[0].agent) else _UNTOUCHED - 1
    fine = _that_went_well(strand)
    seen: dict[str, int] = {}
    """Place of the last edit when a check last failed so, by its subject."""
    red: dict[str, list[Mishap]] = {}
    """The failures of each test, by its subject."""
    counted: list[Mishap] = []
    """Those that were yielded."""
    for place, step in enumerate(strand):
        call = step.call
        result = call.result or ""
        if call.status == "rejected" or (call.status == "failed" and _is_denied(result)):
            continue  # the person's doing
        if not has_failed(call):
            if _has_changed_files(call):
                edited = place
            if call.action == "run":
                yield from _behind_a_pipe(step, strand[place + 1 : place + 1 + _NEAR])
            if not _failed_behind_a_pipe(call):
                continue
        if _CALLED_OFF.search(result[:120]) or _is_stopped(call):
            continue
        if call.action == "edit":
            yield from _missed(step, strand[place + 1 : place + 1 + _NEAR])
            continue
        rest = strand[place + 1 : place + 1 + _NEAR]
        if call.action == "wait":
            continue  # what failed is what it waited for
        for found in _command(step, rest, fine) if call.action == "run" else _tool(step):
            if found.kind == "failing_command" and runs_check(found.command):
                if seen.get(found.subject) == edited:
                    continue  # nothing was changed since: the same failure, looked at again
                seen[found.subject] = edited
            if found.is_test:
                held = red.setdefault(found.subject, [])
                held.append(found)
                is_work = edited != _UNTOUCHED and not _passes_unchanged(step, rest)
                if is_work and len(held) < _GUESSES:
                    continue  # a test that fails is what tests are for
                if len(held) == _GUESSES:
                    yield from (early for early in held[:-1] if early not in counted)
                counted.append(found)
            yield found


def _that_went_well(strand: Sequence[CallMade]) -> frozenset[tuple[str, ...]]:
    """Return the simple commands, as typed, that went well at least once, alone on their line."""
    parts = (parts_of(step.call.command) for step in strand if _is_fine(step.call))
    return frozenset(words for (words, *others) in filter(None, parts) if not others)


def _is_fine(call: ToolCall) -> bool:
    return call.action == "run" and call.status == "ok" and not has_failed(call)


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
            return _is_fine(later.call) and not _failed_behind_a_pipe(later.call)
    return False


def _failed_behind_a_pipe(call: ToolCall) -> tuple[str, ...]:
    """Return the check of a command line that printed its failure into another program, whose exit
    status is that of the line; empty where none did."""
    if call.action != "run" or "|" not in call.command:
        return ()
    runs = checks_in(call, turn=0, place=0, failed=False, changed=(), known=())
    if not any(run.passed is False for run in runs):
        return ()
    checks = {words for words in parts_of(call.command) if is_check(words)}
    return checks.pop() if len(checks) == 1 else ()  # of several, which one is not known


def _behind_a_pipe(step: CallMade, rest: Sequence[CallMade]) -> Iterator[Mishap]:
    """Yield a tool that is not there although the call went well: its output went into another
    program, whose exit status is that of the line."""
    call = step.call
    if call.status != "ok" or "|" not in call.command:
        return
    lines = _absent_lines(call)
    for words in parts_of(call.command) if lines else ():
        program = words[0].rpartition("/")[2]
        for line in lines if not is_plain(words) else ():
            absent = _absent(line, program)
            if absent in (
                f"{program}: command not found",
                *(f"{program} {word}: no such subcommand" for word in words),
                *(f"script {word}: not there" for word in words),
            ):
                until, worked = _what_worked(words, rest)
                yield _mishap(
                    "missing_tool",
                    absent,
                    step,
                    line,
                    command=shown(words),
                    until=until,
                    worked=worked,
                )
                return


def has_failed(call: ToolCall) -> bool:
    """Return whether a call failed, by its status or its exit code, and never by its words."""
    if call.status in ("rejected", "unanswered"):
        return False
    return (
        call.status == "failed"
        or bool(call.exit_code)
        or (call.action == "run" and bool(_ENDED_BADLY.search((call.result or "")[:300])))
    )


def _is_stopped(call: ToolCall) -> bool:
    """Return whether the agent itself told a program to stop: a server that it had started."""
    return call.exit_code in (130, 143) or r'"\u0003' in call.input


def _is_denied(result: str) -> bool:
    return bool(pattern("denied").search(result[:400]))


def _missed(step: CallMade, rest: Sequence[CallMade]) -> Iterator[Mishap]:
    call, result = step.call, step.call.result or ""
    head = result[:2_000]
    what = next(
        (name for name, each in forms("missed_edit") if any(form.search(head) for form in each)),
        "",
    )
    path = call.path or next(iter(call.paths), "")
    if not what or not path:
        return  # misses of files that are not known have nothing in common
    file = step.below(path)
    until = _next_edit(path, rest)
    is_habit = what == _NOT_READ and not is_outside(file)  # whichever file it is
    yield Mishap(
        kind="missed_edit",
        subject=f"an edit: {what}" if is_habit else f"{file}: {what}",
        at=step.at,
        evidence=step.evidence(first_line(re.sub(r"</?tool_use_error>", "", head))),
        steps=(step, *until),
        file=file,
    )


def _next_edit(path: str, rest: Sequence[CallMade]) -> tuple[CallMade, ...]:
    """Return the steps up to the one that edited the file after all; none where none did."""
    for number, step in enumerate(rest):
        call = step.call
        named = (call.path, *call.paths)
        if path and path in named and call.action == "edit":
            return tuple(rest[: number + 1]) if call.status == "ok" else ()
    return ()


def _tool(step: CallMade) -> Iterator[Mishap]:
    """Yield what a failed call of another tool than a shell shows."""
    call = step.call
    if call.action == "web":
        return  # an address that was guessed
    result = text_of_blocks((call.result or "")[:2_000])
    line = error_line(re.sub(r"</?tool_use_error>", "", result))
    if not line and call.exit_code is None:  # else it is what a program printed
        line = first_line(result)
    if absent := _absent(line, ""):
        yield _mishap("missing_tool", absent, step, line)
    if absent or not line:
        return
    path = step.below(next(iter(call.paths), ""))
    is_gone = re.search(r"not (?:found|exist)|no such|does not exist", line, re.IGNORECASE)
    if path and is_gone and call.action in ("read", "search"):
        subject = _not_there(path)
    else:
        what = f"{call.name} {path}".strip()  # two files that cannot be read are two troubles
        subject = f"{what}: {plain_error(line)}"
    if pattern("machine").search(line):
        subject = plain_error(line)
    yield _mishap("failing_command", subject, step, line, file=path)


def _command(
    step: CallMade, rest: Sequence[CallMade], fine: Collection[tuple[str, ...]]
) -> Iterator[Mishap]:
    call = step.call
    result = text_of_blocks(call.result or "")
    line = error_line(result)
    parts = parts_of(call.command)
    check = _failed_behind_a_pipe(call)
    is_answer = not check and _is_answer(call)
    if not parts or (is_answer and not pattern("answers", "failed").search(result[:600])):
        return
    checks = [part for part in parts if is_check(part)]
    words = check or culprit(call.command, line) or (checks[0] if len(checks) == 1 else ())
    name = name_of(words)
    if not name:
        return
    found_by = found_by_check(result) if is_check(words) and not _absent(line, name) else {}
    is_unclear = check or (is_check(words) and (_RAN.search(result) or _ENDED.search(line)))
    if is_unclear and not found_by:
        return  # it found something, and does not say it in a form that is known
    if found_by:
        until, by = _steps_until(words, rest)
        for what, is_test in found_by.items():
            found = _mishap(
                "failing_command",
                f"{what}: the test failed" if is_test else f"{name}: {what}",
                step,
                what,
                command=shown(words),
                until=until,
                worked=by,
            )
            yield replace(found, is_test=is_test)
        return
    is_lost = bool(pattern("wrong_folder").search(line))
    if not line or (is_plain(words) and not is_lost and not _says_itself(words, line)):
        return
    worked, by = _what_worked(words, rest)
    if words in fine and by != shown(words):
        by = ""  # it does work, though not at that time
    is_elsewhere = by == shown(words) and _MISSING.search(line)
    there = _elsewhere(step, words, worked) if is_elsewhere else ""
    if by in ("", shown(words)) and not is_plain(words):
        until, before = _steps_until(words, rest)
        worked, by = (until, before) if before else (worked, by)
    kind: TroubleKind = "failing_command"
    absent = _absent(line, words[0].rpartition("/")[2])
    if absent and any(_SHOWS_LOGS.search(shown(part)) for part in parts):
        return  # it was not there on another machine
    subject = f"{name}: {plain_error(line)}"
    file = ""
    if option := _refused_option(line, words):
        subject = f"{name.partition(' ')[0]}: unknown option {option}"
    if there:
        kind, by = "wrong_folder", there
    elif absent:
        kind, subject = "missing_tool", absent
    elif is_lost:
        kind = "wrong_folder"
    elif pattern("machine").search(line):
        subject = plain_error(line)  # whichever command ran into it
    elif missing := _missing_file(line, words):
        file = step.below(missing)
        subject = _not_there(file)
    yield _mishap(
        kind,
        subject,
        step,
        line,
        command=shown(words) if words != ("shell",) else shorten(call.command, 200),
        file=file,
        until=worked,
        worked=by if by != shown(words) else "",
    )


def _elsewhere(step: CallMade, words: Sequence[str], until: Sequence[CallMade]) -> str:
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
    kind: TroubleKind,
    subject: str,
    step: CallMade,
    quote: str,
    *,
    command: str = "",
    file: str = "",
    until: Sequence[CallMade] = (),
    worked: str = "",
) -> Mishap:
    return Mishap(
        kind=kind,
        subject=shorten(subject, 200),
        at=step.at,
        evidence=step.evidence(shorten(quote.strip(), 160)),
        steps=(step, *until),
        command=command,
        file=file,
        worked=worked,
    )


def _absent(line: str, program: str) -> str:
    for name, each in forms("absent"):
        for form in each:
            if found := form.search(line):
                return name.format(it=found["it"], program=program).strip()
    return ""


def _refused_option(line: str, words: Sequence[str]) -> str:
    """Return the option that a program says it does not know, whatever it was to do; empty where it
    says no such thing."""
    found = _UNKNOWN_OPTION.search(line)
    option = found["it"] if found and not is_plain(words) else ""
    return option if any(word.partition("=")[0] == option for word in words) else ""


def _missing_file(line: str, words: Sequence[str]) -> str:
    """Return the path of a command that an error says is not there; empty where it says none."""
    if not re.search(
        r"No such file|cannot (?:access|open|stat|find)|can't (?:read|open)|not exist", line
    ):
        return ""
    return next(
        (word for word in words[1:] if len(word) > 2 and re.search(r"[/.]", word) and word in line),
        "",
    )


def _not_there(path: str) -> str:
    """Return what a path is called that is not there, whichever command asked for it: two wrong
    guesses are two troubles, and the same one twice is worth knowing."""
    return f"{path}: not there"


def _is_answer(call: ToolCall) -> bool:
    """Return whether the status of a command is an answer: it ends with a search, a comparison
    or a test."""
    parts = [command.words for command in commands_in(call.command) if command.words]
    if not parts or call.exit_code not in (None, 1, 8):
        return False
    words = parts[-1]
    names = {words[0], " ".join(words[:2]), " ".join(words[:3])}
    return not _answers().isdisjoint(names)


@cache
def _answers() -> frozenset[str]:
    return frozenset(name.strip() for name in tables()["answers"]["commands"].split(","))


def is_check(words: Sequence[str]) -> bool:
    """Return whether a simple command, as typed, checks the work."""
    return check_of(bare_words(words)) is not None


def runs_check(command: str) -> bool:
    """Return whether a command line checks the work."""
    return bool(command) and any(
        check_of(each.words) is not None for each in commands_in(command) if each.words
    )


_MOST = 6
_MOCHA = re.compile(r"^ +[1-9]\d* failing$", re.MULTILINE)


@cache
def _finding_forms() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the forms of what a check found, each with the name of its list."""
    table = tables()["findings"]
    return tuple(
        (re.compile(form), name) for name in ("tests", "forms", "lines") for form in table[name]
    )


def found_by_check(result: str) -> dict[str, bool]:
    """Return what a check found, each without its place, and whether it is a test's name.

    The first six; empty where it does not say it in a form that is known.
    """
    found: dict[str, bool] = {}
    if pattern("findings", "unformatted").search(result):
        found["not formatted"] = False
    unsaid = pattern("findings", "unsaid")
    text = ANSI.sub("", result)
    if failing := _MOCHA.search(text):
        blocks = pattern("findings", "blocks").finditer(text[failing.end() :][:20_000])
        for block in itertools.islice(blocks, _MOST):
            found[plain_error(block["it"])] = True
    for line in without_diffs(text)[-20_000:].split("\n"):
        if len(line) > 400 or unsaid.search(line):
            continue
        for form, name in _finding_forms():
            if name == "lines" and any(found.values()):
                continue  # tests may print such lines
            if (match := form.search(line.strip())) and (what := _plain_finding(match["it"])):
                found[what] = name == "tests"
                break
        if len(found) >= _MOST:
            break
    return found


def _plain_finding(text: str) -> str:
    """Return what a check found without its place; of a file of tests alone, that file's name."""
    plain = plain_error(text)
    return plain if plain not in ("<path>", "<file>") else text.rpartition("/")[2]


def _steps_until(
    words: Sequence[str], rest: Sequence[CallMade]
) -> tuple[tuple[CallMade, ...], str]:
    """Return the steps up to the next run of the same check; and the command that mended what it
    had found, where the check then passed and nothing else was done."""
    name = name_of(words)
    for number, later in enumerate(rest):
        if later.call.action != "run" or name not in map(name_of, parts_of(later.call.command)):
            continue
        between = rest[:number]
        if has_failed(later.call) or _failed_behind_a_pipe(later.call):
            return tuple(between), ""
        only = between[0].call if len(between) == 1 else None
        is_deed = only is not None and only.action == "run" and only.status == "ok"
        part = parts_of(only.command)[-1:] if is_deed and only is not None else ()
        is_mend = part and pattern("mends").search(" ".join(part[0]))
        by = shown(part[0]) if is_mend else ""
        return tuple(rest[: number + 1]), by
    return (), ""


def _what_worked(
    words: Sequence[str], rest: Sequence[CallMade]
) -> tuple[tuple[CallMade, ...], str]:
    """Return the steps up to the command that did what had failed, and that command.

    It shares at least half of the failed one's words, the program's name counted as one of them,
    does the same with the same program or another runner, and went well; empty where none is seen.
    """
    sought = _key_words(words)
    if not sought or is_look_or_help(words):
        return (), ""
    for number, later in enumerate(rest):
        call = later.call
        if not _is_fine(call):
            if call.action == "run" and name_of(words) in map(name_of, parts_of(call.command)):
                return (), ""  # what works later mends that failure
            continue
        if "||" in call.command or ("|" in call.command and _absent_lines(call)):
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


def _absent_lines(call: ToolCall) -> list[str]:
    """Return the first lines of a result that say that something is not there."""
    return [line for line in printed_lines((call.result or "")[:600])[:3] if _absent(line, "")]


def is_look_or_help(words: Sequence[str]) -> bool:
    """Return whether a command only asks what there is: it looks, or prints a help or a version."""
    known = _answers() | listed("looks")
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
