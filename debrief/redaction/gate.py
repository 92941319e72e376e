"""The last gate: the final bytes of a file are searched before anybody gets them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import orjson
from msgspec import structs

from debrief.redaction.finder import find
from debrief.redaction.leaves import visit_strings
from debrief.redaction.redactor import Finding
from debrief.redaction.rules import may_hold_secret

_WORD = 64


def contains_secret(data: bytes) -> list[Finding]:
    """Return the secrets in the final bytes of a file; empty when it may leave the machine.

    Lines that are JSON are searched string by string, with the keys' names beside them, and so
    is JSON inside a string; other lines as text. Placeholders are no secrets. The path of a
    finding begins with the number of its line, from 1; start and end count within the string; in a
    line of text, from the beginning of the file with its JSON lines emptied.
    """
    text = data.decode("utf-8", "replace")
    if not may_hold_secret(text):
        return []
    found: list[Finding] = []
    plain: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip()[:1] in ("{", "[", '"'):
            if may_hold_secret(line):
                found.extend(_in_json(line, str(number)))
            line = ""
        plain.append(line)
    if any(plain):
        text = "\n".join(plain)
        for finding in _in_text(text, "", ""):
            number = text.count("\n", 0, finding.start) + 1
            found.append(structs.replace(finding, path=str(number)))
    return found


def _in_json(text: str, path: str) -> Iterator[Finding]:
    leaves: list[tuple[str, str, str]] = []

    def note(leaf: str, name: str, way: str) -> str:
        leaves.append((leaf, name, way))
        return leaf

    try:
        # Only strings are looked at, so numbers need not stay exact.
        visit_strings(orjson.loads(text), note)
    except (ValueError, RecursionError):
        yield from _in_text(text, "", path)
        return
    for leaf, name, way in leaves:
        yield from _in_text(leaf, name, f"{path}.{way}")
        if leaf[:1] in ("{", "[") and may_hold_secret(leaf):
            yield from _in_json(leaf, f"{path}.{way}")


def _in_text(text: str, name: str, path: str) -> Iterator[Finding]:
    if len(text) <= _WORD and _is_harmless(text, name):
        return
    for span in find(text, name):
        yield Finding(kind=span.kind, start=span.start, end=span.end, sure=span.sure, path=path)


@lru_cache(maxsize=16_384)
def _is_harmless(word: str, name: str) -> bool:
    """Return whether there is no secret in a short string: keys, roles and names come again on
    every line."""
    return not find(word, name)
