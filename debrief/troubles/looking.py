"""Calls that succeeded and were not needed: repeated reads, polling, long outputs.

A look was not needed when it showed, word for word, what the same agent had seen before. Only what
nothing speaks for is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import UNSET

from debrief.markdown import shorten
from debrief.sessions.model import Session, ToolCall
from debrief.signals.check_commands import can_check, language_of, languages_of
from debrief.signals.excerpts import label, printed_lines
from debrief.signals.shell import bare_words, check_of, commands_in, pattern, writes_of
from debrief.signals.termination import end_of
from debrief.signals.workplace import is_work
from debrief.troubles.background import Background
from debrief.troubles.failed_calls import has_failed
from debrief.troubles.naming import (
    asked_for,
    is_outside,
    is_plain,
    listed,
    name_of,
    parts_of,
    shown,
)
from debrief.troubles.steps import CallMade, Course, Mishap

_STARTS = 12
"""Calls of a session that are its beginning."""
_POLLS = 3
"""Looks in a row after something that runs from which on it is polling."""
_MANY, _SHORT = 10, 50
"""Looks that are polling however soon they end; seconds from which on fewer are."""
_PAUSE = 20
"""Seconds between two looks, on average, from which on it is waiting and no polling."""
_MUCH = 2_000
"""Characters of a result from which on it was worth not printing twice."""
_LONG = 30_000
"""Characters of a result: some eight thousand tokens."""
_A_TOKEN = 4
"""Characters, about."""
_SOON = 6
"""Calls after a look within which a file is changed because of it."""
_AGAIN = 3
"""Files read again after a compaction from which on work was done twice."""
_AFTER = 40
"""Reads after a compaction that belong to it."""
_UNCHANGED = "unchanged since"
"""What a tool answers that was asked for the same file again."""
DOCUMENT = re.compile(
    r"(?:^|/)(?:README|CHANGELOG|CONTRIBUTING|LICENSE|AUTHORS)[^/]*$|(?:^|/)docs?/.*\.(?:md|rst|txt)$"
)


_CODE = re.compile(r"^\+(?!\+\+)[ \t]*(?!//|#|\*|--|/\*|<!--|\"\"\"|;)\S", re.MULTILINE)
"""A line that was added and is no comment."""
_SMALL = 5
"""Lines of code from which on a change wants a check."""
_HOOK = re.compile(
    r"^(?:\[STARTED\]|[✔❯⚠]) (?!No staged)(?:\S*[ /:])?"
    r"(?:eslint|oxlint|tsc|vue-tsc|vitest|jest|tests?|ruff|mypy|pyright|golangci-lint)\b",
    re.MULTILINE,
)
"""What programs print that check staged files when a commit is made."""
_TASK = re.compile(r"/tasks/[\w-]+\.output\b")
"""Where Claude Code keeps what a program prints that goes on in the background."""
_ANYWAY = re.compile(
    r"^(?:README|AGENTS|CLAUDE|GEMINI|CONTRIBUTING)\b[^/]*$"
    r"|(?:^|/)(?:package\.json|pyproject\.toml|Cargo\.toml|go\.mod|Makefile|Gemfile|mix\.exs)$"
    r"|(?:^|/)skills/",
    re.IGNORECASE,
)
"""Files that agents look up first in any repository, or are sent to by a skill."""
_SKILL = re.compile(r"(?:^|/)skills/(?:[^/]+/)+SKILL\.md$")
_TEMPLATE = re.compile(r"\.(?:html?|s?css|vue|svelte|astro|erb|sql|sh|bash|ipynb|proto)$")
"""Files that programs of another language read."""
_NATIVE = re.compile(r"\.(?:c|cc|cpp|cxx|h|hh|hpp|m|s|asm)$", re.IGNORECASE)
"""Sources that tests of another language may be built with."""


_SHORTENS = ("head", "tail", "sort", "uniq", "cut", "tr", "wc", "xargs", "grep")
"""Programs that what another one prints goes into."""
_PRINTERS = ("cat", "sed", "head", "tail", "nl", "less")
"""Programs that print files."""


def needless(course: Course) -> Iterator[Mishap]:
    """Yield what was looked at for nothing, in no order."""
    for strand in course.strands:
        yield from _reads_again(course, strand)
        yield from _polls(strand)
        yield from _long_outputs(strand)
        yield from _blind_checks(strand)
    yield from _unchecked(course)
    yield from _after_compactions(course)
    yield from _start(course)


def _reads_again(course: Course, strand: Sequence[CallMade]) -> Iterator[Mishap]:
    """Yield looks that showed, word for word, what the same look had shown before; what a
    compaction took away may be looked at again."""
    seen: dict[tuple[str, str], tuple[int, str]] = {}
    compacted = set(course.compactions)
    for place, step in enumerate(strand):
        call = step.call
        if step.message in compacted:
            seen.clear()
        result = call.result or ""
        if call.status != "ok" or (len(result) < _MUCH and call.action != "read"):
            continue
        if not (call.action in ("read", "search") or _is_look(call)):
            continue
        file = _read_by(call)
        if file and any(file in later.call.paths for later in _edits(strand, place)):
            continue  # looked at right before it is changed, as tools ask for
        if _UNCHANGED in result[:200] and call.action == "read" and len(result) < _MUCH:
            yield _read_again(step)
        if len(result) < _MUCH:
            continue
        what = _look_of(call)
        message, before = seen.get(what, (step.message, ""))
        if message != step.message and printed_lines(before) == printed_lines(result):
            yield _read_again(step)
        seen[what] = step.message, result


def _edits(strand: Sequence[CallMade], place: int) -> Iterator[CallMade]:
    """Yield the edits among the next few steps."""
    near = strand[place + 1 : place + 1 + _SOON]
    return (step for step in near if step.call.action == "edit")


def _read_again(step: CallMade) -> Mishap:
    call = step.call
    file = step.below(_read_by(call))
    words = next(iter(parts_of(call.command)), ()) if call.command else ()
    name = shown(words) if is_plain(words) else name_of(words)
    what = file or name or call.name
    if _SKILL.search(file):  # whichever was read anew: what stops it is the same
        what, file = "skills", ""
    return Mishap(
        kind="repeated_read",
        subject=f"{shorten(what, 150)}: looked at again, unchanged",
        name=shorten(what, 150),
        at=step.at,
        evidence=step.evidence(shorten(label(call), 120)),
        steps=(step,),
        command=shown(words) if words else "",
        file=file,
    )


def _is_look(call: ToolCall) -> bool:
    """Return whether a command only looks."""
    if call.action != "run" or not call.command:
        return False
    known = listed("looks")
    parts = [command.words for command in commands_in(call.command) if command.words]
    names = ({words[0], " ".join(words[:2])} for words in parts)
    is_known = bool(parts) and all(not known.isdisjoint(name) for name in names)
    return is_known and not _writes(call)


def _polls(strand: Sequence[CallMade]) -> Iterator[Mishap]:
    """Yield runs of waiting: the same agent looks after what runs again and again."""
    begun = "a command"
    background = Background()
    run: list[CallMade] = []
    for step in [*strand, None]:
        if step is not None and _is_wait(step.call, run):
            run.append(step)
            continue
        rounds = len({look.message for look in run})  # several of one message are one look
        if rounds >= _POLLS and not _is_patient(run, rounds):
            name = _polled(run[0].call, background, begun)
            yield Mishap(
                kind="polling",
                subject="commands that take longer: looked at every few seconds",
                name=name,
                at=run[0].at,
                evidence=run[0].evidence(f"{rounds} looks in a row: {label(run[0].call)}"),
                steps=tuple(run),
                command=shorten(run[0].call.command, 200),
            )
        run = []
        if step is not None and step.call.action == "run":
            begun = name_of(asked_for(step.call.command)) or begun
            background.start(step)
            run = [step] if _can_poll(step.call) else []


def _is_patient(run: Sequence[CallMade], rounds: int) -> bool:
    """Return whether it was soon over, or looked at with pauses: that is no waste."""
    first, last = run[0].at, run[-1].at
    if first is None or last is None:
        return rounds < _MANY
    seconds = (last - first).total_seconds()
    return seconds / (rounds - 1) >= _PAUSE or (rounds < _MANY and seconds < _SHORT)


def _can_poll(call: ToolCall) -> bool:
    return any(words[0] == "sleep" or _polling_name(words) for words in _all_words(call))


def _is_wait(call: ToolCall, run: Sequence[CallMade]) -> bool:
    if call.action == "wait" and call.exit_code is None:  # else it had come to its end
        return not run or run[-1].call.action == "wait"
    same = bool(run) and run[-1].call.action == "run" and run[-1].call.command == call.command
    return same and _can_poll(call)


def _all_words(call: ToolCall) -> list[tuple[str, ...]]:
    return [command.words for command in commands_in(call.command) if command.words]


def _polling_name(words: Sequence[str]) -> bool:
    return not listed("polled").isdisjoint({" ".join(words[:2]), " ".join(words[:3])})


def _polled(look: ToolCall, background: Background, begun: str) -> str:
    if look.action == "wait":
        step = background.behind(look)
        return (name_of(asked_for(step.call.command)) if step is not None else "") or begun
    words = next((word for word in _all_words(look) if word[0] != "sleep"), ())
    return name_of(words) or begun


def _long_outputs(strand: Sequence[CallMade]) -> Iterator[Mishap]:
    edited = {
        step.below(path)
        for step in strand
        if step.call.action == "edit"
        for path in step.call.paths
    }
    for step in strand:
        call = step.call
        size = len(call.result or "")
        if (
            size < _LONG
            or call.status != "ok"
            or call.action in ("delegate", "web", "edit", "wait")
        ):
            continue
        parts = [part for part in parts_of(call.command) if part[0] not in _SHORTENS]
        if len({name_of(part) for part in parts}) > 1:
            continue  # whose output it is is not known
        if call.action == "run" and not parts:
            continue  # a script, of which nothing is known
        words = next(iter(parts or parts_of(call.command)), ())
        is_read = call.action == "read" or (bool(words) and words[0] in _PRINTERS)
        path = _read_by(call) if is_read else next(iter(call.paths), "")
        file = step.below(path)
        if is_read and (not file or size < 2 * _LONG or file in edited):
            continue  # what is worked on may be read whole
        name = name_of(words) if words else ""
        what = file if is_read else f"{call.name} {file}" if file else name or call.name
        yield Mishap(
            kind="long_output",
            subject=f"{what}: long output",
            name=what,
            at=step.at,
            evidence=step.evidence(f"{size:,} characters: {label(call)}"),
            steps=(step,),
            command=shown(words) if words else "",
            file=file,
            put_in=size // _A_TOKEN,
        )


def _after_compactions(course: Course) -> Iterator[Mishap]:
    """Yield compactions after which files were read again by the same calls as before."""
    own = [step for step in course.strands[0] if _read_by(step.call) and step.call.status == "ok"]
    for number in course.compactions:
        known = {_look_of(step.call) for step in own if step.message < number}
        after = [step for step in own if step.message >= number][:_AFTER]
        again = {_read_by(step.call): step for step in after if _look_of(step.call) in known}
        if len(again) < _AGAIN:
            continue
        first = next(iter(again.values()))
        file = first.below(next(iter(again)))
        files = ", ".join(step.below(path) for path, step in list(again.items())[:3])
        yield Mishap(
            kind="work_done_twice",
            subject=f"{file} and others: read again after a compaction",
            name=file,
            at=first.at,
            evidence=first.evidence(f"{len(again)} files read again: {files}"),
            steps=tuple(again.values()),
            file=file,
        )


def _look_of(call: ToolCall) -> tuple[str, str]:
    return call.name, call.command or call.input


def _start(course: Course) -> Iterator[Mishap]:
    """Yield what a session looks up before its first edit, unless it was told to."""
    own = course.strands[0]
    given = _given(course.session, until=own[0].turn) if own else ""
    edited = {
        step.below(path) for step in own if step.call.action == "edit" for path in step.call.paths
    }
    known: set[str] = set()
    for step in own[:_STARTS]:
        call = step.call
        if call.action == "edit":
            return
        if call.status != "ok" or has_failed(call):
            continue
        if any(words[0] == "git" for words in parts_of(call.command)):
            given += call.result or ""  # the files that were changed
        file = step.below(_read_by(call))
        if (
            not file
            or file in edited
            or is_outside(file)
            or file in known
            or _ANYWAY.search(file)
            or file in given
        ):
            given += call.result or "" if file else ""
            continue
        given += call.result or ""
        known.add(file)
        yield Mishap(
            kind="same_start",
            subject=f"{shorten(file, 150)}: looked up at the beginning",
            name=shorten(file, 150),
            at=step.at,
            evidence=step.evidence(shorten(label(call), 120)),
            steps=(step,),
            file=file,
            put_in=len(call.result or "") // _A_TOKEN,
        )


def _given(session: Session, until: int) -> str:
    """Return what a session was given up to a turn: prompt files, and the person's words."""
    files = session.instructions if session.instructions is not UNSET else ()
    system = session.system_prompt if session.system_prompt is not UNSET else ""
    prompts = (turn.prompt for turn in session.turns if turn.number <= until)
    return "\n".join([system, *(file.text for file in files), *prompts])


def _read_by(call: ToolCall) -> str:
    """Return the file that a call reads, by a tool or by a command that prints one; empty where it
    reads none, or several."""
    if call.action == "read":
        return next(iter(call.paths), "")
    parts = parts_of(call.command) if call.action == "run" else []
    if len(parts) != 1 or parts[0][0] not in _PRINTERS:
        return ""
    files = [word for word in parts[0][1:] if re.search(r"^[\w./~-]*\.\w+$|/", word)]
    return files[0] if len(files) == 1 and not _writes(call) else ""


def _writes(call: ToolCall) -> bool:
    return any(True for _ in writes_of(call.command))


def _blind_checks(strand: Sequence[CallMade]) -> Iterator[Mishap]:
    """Yield checks that passed and cannot see what was changed before them, where nothing else was
    run that could: the first since the change."""
    changed: list[str] = []
    has_run, blind = False, None
    for step in strand:
        files = _changed_by(step.call)
        if files and has_run:
            yield from [blind] if blind is not None else ()
            changed, has_run, blind = [], False, None
        changed += files
        if not files and changed and can_check(step.call) and not _is_look(step.call):
            found = _blind_check(step, changed)
            blind = (blind or found) if found and (blind or not has_run) else None
            has_run = True
    if blind is not None:
        yield blind


def _changed_by(call: ToolCall) -> list[str]:
    if call.action == "edit" and call.status == "ok":
        return list(call.paths)
    is_write = call.command and any(write.is_edit for write in writes_of(call.command))
    is_check = any(check_of(bare_words(words)) for words in parts_of(call.command))
    return ["a file, by a command"] if is_write and not is_check else []


def _blind_check(step: CallMade, changed: Sequence[str]) -> Mishap | None:
    """Return a check that passed and cannot see any of these changes; None where a command may."""
    call = step.call
    tests = [
        (words, check[1])
        for words in parts_of(call.command)
        if (check := check_of(bare_words(words))) and check[0] != "lint"
    ]
    if not tests or has_failed(call):
        return None
    if all(map(DOCUMENT.search, changed)):
        return None  # it checks what was there before
    if any(not _is_unseen(path, tool) for path in changed for _, tool in tests):
        return None
    words = tests[0][0]
    return Mishap(
        kind="blind_check",
        subject=f"{name_of(words)}: cannot see what was changed",
        name=name_of(words),
        at=step.at,
        evidence=step.evidence(f"{label(call)}, after {', '.join(map(step.below, changed[:2]))}"),
        steps=(step,),
        command=shown(words),
        file=step.below(changed[-1]),
    )


def _unchecked(course: Course) -> Iterator[Mishap]:
    """Yield the last change of each language after which nothing ran that could have seen it, of
    a session that ends with an answer."""
    if end_of(course.turns).ending != "answered":
        return
    changed: dict[str, CallMade] = {}
    lines: Counter[str] = Counter()
    for step in course.strands[0]:
        call = step.call
        if call.action == "edit" and call.status == "ok":
            if call.patch and not _CODE.search(call.patch):
                continue  # comments alone, or lines taken out
            for path in call.paths:
                language = "" if _TEMPLATE.search(path) else language_of(path)
                if language not in ("", "other") and is_work(path, step.folder):
                    changed[language] = step
                    lines[language] += len(_CODE.findall(call.patch)) if call.patch else _SMALL
        elif call.action == "run" and changed:
            printed = pattern("outcomes", "passed").search((call.result or "")[-4_000:])
            hook = _HOOK.search((call.result or "")[:4_000])
            if call.status == "unanswered" or can_check(call) or printed or hook:
                changed.clear()  # a check, or a commit whose hook is one
        if (changed and _TASK.search(call.command or call.input)) or (
            call.action not in ("run", "read", "search", "plan", "ask", "edit")
        ):
            changed.clear()  # a browser, another agent or a server may have looked
    for language, last in changed.items():
        if lines[language] < _SMALL:
            continue
        file = last.below(last.call.paths[-1])
        yield Mishap(
            kind="blind_check",
            subject=f"{language} was changed, and nothing was run that could see it",
            name=language,
            at=last.at,
            evidence=last.evidence(f"the last change: {file}"),
            steps=(last,),
            file=file,
        )


def _is_unseen(path: str, tool: str) -> bool:
    """Return whether a check surely cannot fail because of a change of a file."""
    if DOCUMENT.search(path):
        return True
    if _TEMPLATE.search(path) or _NATIVE.search(path):
        return False
    language, seen = language_of(path), languages_of(tool)
    return bool(language) and "any" not in seen and language not in seen
