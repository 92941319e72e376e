"""Secrets without a format, given away by what is beside them.

A context is a row of ``contexts.toml``: where to look (for the prefilter), and an expression with
a check of its value, or a careful reader of the place from here. Readers look at a bounded
stretch around the place, so a hit costs the same in a text of any length.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files

from msgspec import Struct, convert

from debrief.redaction.assignments import assignments, is_basic, paired_values
from debrief.redaction.names import KEYWORDS
from debrief.redaction.plausibility import (
    is_password,
    is_placeholder,
    is_random,
    is_weak,
    wordiness,
)
from debrief.redaction.spans import SecretSpan


class Context(Struct, forbid_unknown_fields=True, dict=True):
    """A rule that finds a secret by what is beside it; ``contexts.toml`` explains the fields."""

    anchor: str
    tracked: bool = True
    reach: int = 0
    find: str = ""
    value: str = ""
    kind: str = ""
    check: str = "password"
    line_has: str = ""
    trim: str = ""

    def __post_init__(self) -> None:
        self.anchor = self.anchor.replace("{KEYWORD}", f"(?:{KEYWORDS})")
        self._value = re.compile(self.value, re.IGNORECASE | re.VERBOSE)
        self._line_has = re.compile(self.line_has)

    def read(self, text: str, at: int, since: int = 0) -> Iterator[SecretSpan]:
        """Yield the secrets at a place.

        Args:
            text: the whole text.
            at: where the anchor starts; where that is not tracked, where it ends.
            since: where the anchor may start, where that is not tracked.
        """
        if self.find:
            yield from _READERS[self.find](text, at, since)
            return
        match = self._value.match(text, at)
        if match:
            value, start = match["v"].rstrip(self.trim), match.start("v")
            if _CHECKS[self.check](value) and self._line_has.search(_line_before(text, at, 300)):
                yield SecretSpan(start, start + len(value), self.kind)


def _line_before(text: str, at: int, most: int) -> str:
    low = max(0, at - most)
    return text[max(low, text.rfind("\n", low, at) + 1) : at]


def _line_end(text: str, at: int, most: int) -> int:
    end = text.find("\n", at, at + most)
    return end if end >= 0 else min(len(text), at + most)


_COOKIES = re.compile(
    r"cookies?[\"'\\]{0,3}\s{0,2}[:=]\s{0,2}[\"'\\]{0,3}(?P<rest>[^\n\"']{8,4096})", re.IGNORECASE
)
_PAIR = re.compile(r"(?P<name>[\w.\-]{1,64})=(?P<v>[^\s;,\"'\\]{16,2048})")
_TRACKING = re.compile(r"_{0,2}(?:ga|gid|fbp|utm|gcl|hj|cf_bm|cfduid|cfruid)", re.IGNORECASE)


def _cookies(text: str, at: int, since: int) -> Iterator[SecretSpan]:
    """Read the session cookies of a header; those that only track are left."""
    header = _COOKIES.match(text, at)
    for pair in _PAIR.finditer(text, *header.span("rest")) if header else ():
        value = pair["v"]
        if not _TRACKING.match(pair["name"]) and (is_random(value) or is_random(value[:64])):
            yield SecretSpan(*pair.span("v"), "cookie")


_URL = re.compile(r"://(?P<user>[^\s/@:\"'<>`]{0,64}):(?P<v>[^\s\"'<>`/]{2,200})@(?=[\w\[.\-])")


def _url(text: str, end: int, since: int) -> Iterator[SecretSpan]:
    """Read the password, or the token, before the host of a URL; ``end`` is behind an ``@``."""
    at = text.rfind("://", max(0, end - 220), end)
    match = _URL.match(text, at) if at >= 0 else None
    if match is None:
        return
    user, password = match["user"], match["v"]
    if is_random(user, 20):
        yield SecretSpan(*match.span("user"), "token")
    if password == user or is_weak(password) or is_placeholder(password):
        return
    if password.isdigit() and len(password) < 6:
        return
    if _CHECKS["login"](password):
        yield SecretSpan(*match.span("v"), "url-password")
    elif len(password) >= 6 and wordiness(password) < 0.5:
        yield SecretSpan(*match.span("v"), "url-password", sure=False)


_PGPASS = re.compile(
    r"[\w.*\-]{1,80}:(?:\d{2,5}|\*):[\w*\-]{1,63}:[\w*\-]{1,63}:(?P<v>\S{6,128})[ \t\r]*\Z"
)


def _pgpass(text: str, at: int, since: int) -> Iterator[SecretSpan]:
    """Read a line of a PostgreSQL password file."""
    start = at - len(_line_before(text, at, 100))
    match = _PGPASS.match(text, start, _line_end(text, at, 400))
    if match and is_password(match["v"]):
        yield SecretSpan(*match.span("v"), "password")


_OPTION = re.compile(r"\s-(?:a|P|w|W|bp?)[ =]?\\*[\"']?(?:\S+[ ]\S+[ ])?(?P<v>[^\s\"'\\]{6,128})")


def _other_options(text: str, at: int, since: int) -> Iterator[SecretSpan]:
    """Read the password of tools with options of their own, such as ``redis-cli -a …``."""
    for match in _OPTION.finditer(text, at, _line_end(text, at, 300)):
        if is_password(match["v"], 8):
            yield SecretSpan(*match.span("v"), "password")


_SUDO = re.compile(
    r"(?:echo|printf|<<<)\s{1,3}\\*[\"']?(?P<v>[^\s\"'\\]{4,128})\\*[\"']?\s{0,3}\|\s{0,3}sudo\s{1,3}-\w*S"
)


def _sudo(text: str, at: int, since: int) -> Iterator[SecretSpan]:
    """Read the password that a command line pipes into ``sudo -S``."""
    match = _SUDO.search(text, max(0, at - 160), at + 24)
    if match and is_password(match["v"], 6):
        yield SecretSpan(*match.span("v"), "password")


_READERS: dict[str, Callable[[str, int, int], Iterator[SecretSpan]]] = {
    "assignments": assignments,
    "paired_values": paired_values,
    "cookies": _cookies,
    "url": _url,
    "pgpass": _pgpass,
    "other_options": _other_options,
    "sudo": _sudo,
}
_CHECKS: dict[str, Callable[[str], bool]] = {
    "password": lambda value: is_password(value, 6),
    "strong password": lambda value: is_password(value, strict=True),
    "random": is_random,
    "basic": is_basic,
    "header": lambda value: is_basic(value) or is_random(value),
    "login": lambda value: is_password(value, 6) or is_random(value),
    "phrase": lambda value: value.islower() and len(value.split()) in (12, 15, 18, 21, 24),
}
CONTEXTS: list[Context] = convert(
    tomllib.loads((files(__package__) / "contexts.toml").read_text("utf-8"))["contexts"],
    list[Context],
)
