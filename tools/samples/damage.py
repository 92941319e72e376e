"""Breaks a transcript in the ways in which real ones are found broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from debrief.errors import InputError


def damaged(data: bytes, kinds: tuple[str, ...]) -> bytes:
    """Return JSON lines with the named damage done to them, in the order named."""
    lines = data.splitlines(keepends=True)
    for kind in kinds:
        if kind not in _KINDS:
            raise InputError(kind, "no such damage", f"Choose from {', '.join(_KINDS)}.")
        lines = _KINDS[kind](lines)
    return b"".join(lines)


def _doubled(lines: list[bytes]) -> list[bytes]:
    """Two objects on one line: the newline between two writes was lost."""
    middle = len(lines) // 3
    return [*lines[:middle], lines[middle].rstrip(b"\n") + lines[middle + 1], *lines[middle + 2 :]]


def _not_utf8(lines: list[bytes]) -> list[bytes]:
    """A line of ISO 8859-1: a tool printed bytes that nobody decoded."""
    place = next(index for index, line in enumerate(lines) if "°".encode() in line)
    broken = lines[place].replace("°".encode(), b"\xb0")
    return [*lines[:place], broken, *lines[place + 1 :]]


def _unknown_type(lines: list[bytes]) -> list[bytes]:
    """A record type that came with some later version."""
    session = next(
        record["sessionId"] for record in map(json.loads, lines[:1]) if "sessionId" in record
    )
    record = {"type": "workspace-pulse", "sessionId": session, "pulse": {"beats": 3}}
    middle = 2 * len(lines) // 3
    return [*lines[:middle], json.dumps(record).encode() + b"\n", *lines[middle:]]


def _leading_type(line: bytes) -> str | None:
    """Return the type that a line's record names, or None where the line is no record."""
    found = re.match(rb'\{"type":"([a-z-]+)"', line)
    return found[1].decode() if found else None


def _truncated(lines: list[bytes]) -> list[bytes]:
    """A last line cut short: the process was killed while it wrote, and closed nothing."""
    written = [line for line in lines if _leading_type(line) != "last-prompt"]
    return [*written[:-1], written[-1][: len(written[-1]) * 3 // 5]]


_KINDS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "doubled": _doubled,
    "not-utf8": _not_utf8,
    "unknown-type": _unknown_type,
    "truncated": _truncated,
}
