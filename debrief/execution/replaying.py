"""Apply a session's file events to the files that it began with.

Nothing is guessed: an edit that does not fit leaves its file broken until the session writes or
reads it whole. Whether the files to begin with were the right ones shows in what does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice

from msgspec import Struct

from debrief.execution.file_events import (
    FileEvent,
    Moved,
    Patched,
    Removed,
    Replaced,
    Saw,
    Shaken,
    Sought,
    Touched,
    Wrote,
)
from debrief.git.hunks import HunkError, apply_hunks

_LONGEST = 10_000_000
"""Characters of a file: a transcript could ask for any number."""
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


class Replay(Struct):
    """Files after a session's events, by path below the repository's top; None: there is none."""

    began: dict[str, str | None] = {}
    """As they were at the beginning, of all that the events name; what a whole read showed of
    them counts more than the base."""
    files: dict[str, str | None] = {}
    """As they are at the end, of all that the events name."""
    changed: set[str] = set()
    """Some event changed them."""
    unknown: dict[str, datetime | None] = {}
    """Files whose text cannot be known: a command changed them, or an edit does not fit. With the
    moment of that: a commit from before it shows nothing. None: any commit shows it, as a command
    only put another version in place."""
    seen: set[str] = set()
    """Files that were read whole after their last change."""
    misfits: list[str] = []
    """Files that were no such ones to begin with: what was read of them, or what was replaced in
    them before anything else, is not there."""

    def fits(self) -> bool:
        """Return whether the files that the session changed were those to begin with."""
        return not self.changed.intersection(self.misfits)


def replay(events: Iterable[FileEvent], base: Callable[[str], str | None]) -> Replay:
    """Apply events to the files of a base.

    Args:
        events: in their order, with paths below the repository's top.
        base: returns a file's text; None for none.
    """
    found = _Replaying(base)
    for event in events:
        found.apply(event)
    return found.state


class _Replaying:
    def __init__(self, base: Callable[[str], str | None]) -> None:
        self.state, self._base = Replay(), base
        self._is_shaken = False

    def apply(self, event: FileEvent) -> None:
        if isinstance(event, Shaken):
            self._shake(event)
            return
        path, state = event.path, self.state
        if path not in state.files:
            state.files[path] = state.began[path] = self._base(path)
        if isinstance(event, Saw):
            self._see(event)
            return
        if isinstance(event, Touched):
            self._change(event, path, state.files[path], known=False)
        elif isinstance(event, Wrote):
            self._change(event, path, _with_ends_of(state.files[path], event.text))
        elif isinstance(event, Removed):
            self._change(event, path, None, known=event.sure)
        elif isinstance(event, Moved):
            self._move(event)
        else:
            self._edit(event)

    def _shake(self, event: Shaken) -> None:
        """Doubt every file that was changed; before the first change, begin anew: the base is what
        the session changed, not what it looked at before."""
        state = self.state
        self._is_shaken = bool(state.changed)
        since = {path: state.unknown.get(path) for path in state.changed}
        state.unknown |= since if event.keeps_commits else dict.fromkeys(state.changed, event.at)
        state.seen.clear()
        if not state.changed:
            self.state = Replay()

    def _change(self, event: FileEvent, path: str, text: str | None, known: bool = True) -> None:
        state = self.state
        state.files[path] = text
        state.changed.add(path)
        state.seen.discard(path)
        state.unknown.pop(path, None)
        if not known:
            state.unknown[path] = event.at

    def _move(self, event: Moved) -> None:
        state = self.state
        text = state.files[event.path]
        is_known = event.path not in state.unknown and event.sure
        if event.to not in state.files:
            state.files[event.to] = state.began[event.to] = self._base(event.to)
        if text is None:
            self._change(event, event.to, state.files[event.to], known=False)
            return
        self._change(event, event.path, None, known=event.sure)
        self._change(event, event.to, text, known=is_known)

    def _see(self, event: Saw) -> None:
        state, path = self.state, event.path
        text = state.files[path]
        lines = _lines(text)
        there = lines[event.first - 1 : event.first - 1 + len(event.lines)]
        same = _rstripped(there) == _rstripped(event.lines) and (
            not event.whole or len(_rstripped(lines)) == len(_rstripped(event.lines))
        )
        is_first = self._is_first(path)
        if not same and is_first:
            self._misfit(path)
        if event.whole:
            state.files[path] = text if same else _read_text(text, event.lines)
            if is_first:
                state.began[path] = state.files[path]
            state.unknown.pop(path, None)
            state.seen.add(path)
        elif not same and path in state.changed:
            state.unknown[path] = event.at

    def _is_first(self, path: str) -> bool:
        """Return whether nothing has changed a file yet, so that it is as it was to begin with."""
        return not (path in self.state.changed or self._is_shaken)

    def _misfit(self, path: str) -> None:
        if path not in self.state.misfits:
            self.state.misfits.append(path)

    def _edit(self, event: Replaced | Patched | Sought) -> None:
        state, path = self.state, event.path
        text = state.files[path]
        after, stands = _edited(text, event)
        if self._is_first(path) and not stands:
            self._misfit(path)
        if after is None:
            self._change(event, path, text, known=False)
            return
        is_known = path not in state.unknown and stands
        self._change(event, path, after, known=is_known)


def _edited(text: str | None, event: Replaced | Patched | Sought) -> tuple[str | None, bool]:
    """Return a text after an edit, None where it does not fit; and whether the places that the
    edit names are where it says."""
    if text is None:
        return None, False
    ends = "\r\n" if "\r\n" in text else ""
    plain = text.replace("\r\n", "\n") if ends else text
    if isinstance(event, Replaced):
        after = _replaced(plain, event.parts)
        stands = after is not None and _stands(plain, event.patch)
        if after is None and event.patch:
            after = _patched(plain, event.patch)
            stands = after is not None
    elif isinstance(event, Patched):
        after = _patched(plain, event.patch)
        stands = after is not None
    else:
        after = _sought(plain, event.hunks)
        stands = after is not None
    return (after.replace("\n", ends) if ends and after is not None else after), stands


def _replaced(text: str, parts: Sequence[tuple[str, str, bool]]) -> str | None:
    for old, new, everywhere in parts:
        times = text.count(old) if old else 0
        length = len(text) + times * (len(new) - len(old))
        if times == 0 or (times > 1 and not everywhere) or length > _LONGEST:
            return None
        text = text.replace(old, new)
    return text


def _patched(text: str, patch: str) -> str | None:
    try:
        return apply_hunks(text, f"{patch.removesuffix(chr(10))}\n")
    except HunkError:
        return None


def _stands(text: str, patch: str) -> bool:
    """Return whether the old lines of hunks are where their heads say, but for blanks at ends."""
    lines, at = text.split("\n"), 0
    for line in patch.split("\n"):
        if head := _HUNK.match(line):
            at = max(int(head[1]) - 1, 0)
        elif line[:1] in (" ", "-"):
            if at >= len(lines) or lines[at].strip() != line[1:].strip():
                return False
            at += 1
    return True


def _sought(text: str, hunks: Iterable[tuple[str, tuple[str, ...]]]) -> str | None:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    at = 0
    for before, body in hunks:
        if before:
            found = _find(lines, [before], at)
            if found is None:
                return None
            at = found + 1
        old = [line[1:] for line in body if line[0] in " -"]
        new = [line[1:] for line in body if line[0] in " +"]
        if not old:
            lines += new
            at = len(lines)
            continue
        found = _find(lines, old, at)
        if found is None and not old[-1]:
            old, new = old[:-1], new[:-1] if new and not new[-1] else new
            found = _find(lines, old, at) if old else None
        if found is None:
            return None
        lines[found : found + len(old)] = new
        at = found + len(new)
    return "\n".join([*lines, ""])


def _find(lines: Sequence[str], sought: Sequence[str], start: int) -> int | None:
    """Return where lines stand, at or behind ``start``: as they are, else but for blanks."""
    for form in (str, str.rstrip, str.strip):
        block = [form(line) for line in sought]
        among = [form(line) for line in islice(lines, start, None)]
        for at in range(len(among) - len(block) + 1):
            if among[at] == block[0] and among[at : at + len(block)] == block:
                return start + at
    return None


def _lines(text: str | None) -> list[str]:
    return (text or "").replace("\r\n", "\n").split("\n")


def _rstripped(lines: Sequence[str]) -> list[str]:
    """Return lines without the empty ones at the end: reads show them or not."""
    end = len(lines)
    while end and not lines[end - 1].rstrip("\r"):
        end -= 1
    return [line.rstrip("\r") for line in lines[:end]]


def _read_text(before: str | None, lines: Sequence[str]) -> str:
    """Return the text of a whole read, with the line ends that the file had."""
    text = "\n".join(_rstripped(lines))
    text += "\n" if text and (before is None or before.endswith("\n")) else ""
    return _with_ends_of(before, text)


def _with_ends_of(before: str | None, text: str) -> str:
    return text.replace("\n", "\r\n") if before and "\r\n" in before and "\r" not in text else text
