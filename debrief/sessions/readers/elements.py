"""Elements such as ``<system-reminder>…</system-reminder>`` that programs put into texts.

Looked for by their words and not by a pattern: where thousands are opened and none is closed, a
pattern would look for the end of each from there to the end of the text.
"""

from __future__ import annotations

from collections.abc import Iterable


def inside(text: str, name: str) -> str | None:
    """Return what stands in the first element of a name; None when there is no whole one."""
    found = _find(text, name, 0)
    if found is None:
        return None
    begin, end = found
    return text[begin + len(name) + 2 : end - len(name) - 3]


def without(text: str, names: Iterable[str]) -> str:
    """Return a text without the elements of some names, nor the white space before these."""
    for name in names:
        kept: list[str] = []
        done = 0
        while (found := _find(text, name, done)) is not None:
            kept.append(text[done : found[0]].rstrip())
            done = found[1]
        text = "".join([*kept, text[done:]]) if done else text
    return text


def without_leading(text: str, names: Iterable[str]) -> str:
    """Return a text without the elements of some names that it begins with, nor the white space
    around these."""
    opened = tuple((name, f"<{name}>") for name in names)
    done = 0
    while True:
        start = _after_space(text, done)
        name = next((name for name, begins in opened if text.startswith(begins, start)), None)
        found = _find(text, name, start) if name is not None else None
        if found is None:
            return text[start:] if done else text
        done = found[1]


def _find(text: str, name: str, start: int) -> tuple[int, int] | None:
    """Return where the next whole element begins and ends."""
    begin = text.find(f"<{name}>", start)
    end = text.find(f"</{name}>", begin) if begin >= 0 else -1
    return None if end < 0 else (begin, end + len(name) + 3)


def _after_space(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start
