"""The rules of redaction: known formats, and contexts that give a secret away.

A secret with a format announces itself by a prefix or a shape: a row of ``formats.toml``. One
without is given away by a name (``password = …``) or by what is beside it: a row of
``contexts.toml``, which says where to look (for the prefilter), with an expression and a check of
its value, or a careful reader of the place from ``readers.py``.
"""

from __future__ import annotations

import base64
import re
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files
from typing import Any, Literal

from msgspec import Struct, convert

from debrief.redaction.plausibility import (
    KEYWORDS,
    WORDS,
    entropy,
    is_given,
    is_password,
    is_placeholder,
    is_random,
    is_sample,
)
from debrief.redaction.readers import READERS, is_basic, line_before
from debrief.redaction.spans import SecretSpan

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=/bot))"
_LONGEST = 4096
_OPEN = re.compile(r"\{(\d+),\}")
_B62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Format(Struct, forbid_unknown_fields=True, dict=True):
    """One known format; ``formats.toml`` explains the fields."""

    kind: str
    start: str
    rest: str
    lead: str = ""
    edge: bool = False
    check: str = "plausible"

    def __post_init__(self) -> None:
        bounded = _OPEN.sub(rf"{{\1,{_LONGEST}}}+", self.start + self.rest)
        self.pattern = re.compile((_EDGE if self.edge else "") + bounded)
        """The whole secret, matched at its start."""
        self.before = re.compile(self.lead + r"\Z") if self.lead else None

    def judged(self, text: str, found: re.Match[str]) -> tuple[int, int] | None:
        """Return where the secret is that the pattern matched, if it is no mere sample."""
        start, end = found.span()
        if self.before:
            lead = self.before.search(text, max(0, start - 120), start)
            start = lead.start() if lead else len(text)
        secret = text[start:end]
        return (start, end) if secret and _CHECKS[self.check](secret) else None


def _is_plausible(secret: str) -> bool:
    return not is_sample(secret) and entropy(secret[4:]) >= 2.5


def _is_mixed(secret: str) -> bool:
    body = secret[3:]
    has_both = any(c.isdigit() for c in body) and any(c.isalpha() for c in body)
    return has_both and _is_plausible(secret)


def has_crc(secret: str) -> bool:
    """Return whether the last six characters are the base-62 CRC-32 of those after the prefix.

    GitHub and npm sign their tokens so; a match proves the format, however dull the token is.
    """
    body = secret.rpartition("_")[2]
    number, digits = zlib.crc32(body[:-6].encode()), ""
    for _ in range(6):
        number, rest = divmod(number, 62)
        digits = _B62[rest] + digits
    return len(body) > 6 and digits == body[-6:]


def _is_jwt(secret: str) -> bool:
    head = secret.split(".", 1)[0]
    try:
        return b'"' in base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except ValueError:
        return False


def _is_pem(secret: str) -> bool:
    body = secret.partition("KEY")[2].rpartition("END")[0] or secret
    runs = re.findall(r"[A-Za-z0-9+/]{16,}", body)
    return sum(map(len, runs)) >= 40 and "..." not in body and len(set("".join(runs))) > 12


class Context(Struct, forbid_unknown_fields=True, dict=True):
    """A rule that finds a secret by what is beside it; ``contexts.toml`` explains the fields."""

    anchor: str
    tracked: bool = True
    reach: int = 0
    find: str = ""
    value: str = ""
    kind: str = ""
    check: str = "password"
    trim: str = ""

    def __post_init__(self) -> None:
        self.anchor = self.anchor.replace("{KEYWORD}", f"(?:{KEYWORDS})")
        self._value = re.compile(self.value, re.IGNORECASE | re.VERBOSE)

    def read(self, text: str, at: int, since: int = 0) -> Iterable[SecretSpan]:
        """Return the secrets at a place.

        Args:
            text: the whole text.
            at: where the anchor starts; where that is not tracked, where it ends.
            since: where the anchor may start, where that is not tracked.
        """
        if self.find:
            return READERS[self.find](text, at, since)
        match = self._value.match(text, at)
        if match:
            value, start = match["v"].rstrip(self.trim), match.start("v")
            if _CHECKS[self.check](value):
                return [SecretSpan(start, start + len(value), self.kind)]
        return ()


class Line(Struct, forbid_unknown_fields=True, dict=True):
    """A rule for a secret on the same line as a command, a call or a phrase.

    ``contexts.toml`` explains the fields.
    """

    names: str
    after: list[str] = []
    before: list[str] = []
    unless: str = ""
    reach: int = 300
    check: str = "password"
    kind: str = "password"
    form: Literal["command", "call", "phrase"] = "command"
    next: bool = False
    tracked: bool = False

    def __post_init__(self) -> None:
        self.names = _FORMS[self.form].replace("{}", _filled(self.names))
        self.anchor = f"(?i){self.names}"
        self._after = _any_of(self.after, "")
        self._before = _any_of(self.before, rf"(?:{self.names})\Z")
        self._unless = _any_of([self.unless], rf"(?:{self.names})\Z")

    @property
    def expressions(self) -> list[re.Pattern[str]]:
        """What it reads with."""
        return [form for form in (self._after, self._before) if form.pattern]

    @property
    def is_within_line(self) -> bool:
        """Whether what is found depends on nothing but its line."""
        return self.form == "phrase" and not self.next

    def end(self, text: str, at: int, since: int) -> int:
        """Return how far to read behind a name that ends at a place; ``since`` as of ``read``."""
        if self.next or not self.after:
            return at
        stop = _STOPS[self.form].search(text, max(at, since - _LONGEST_STOP), at + self.reach)
        return stop.start() if stop else min(len(text), at + self.reach)

    def read(self, text: str, at: int, since: int, end: int) -> Iterator[SecretSpan]:
        """Yield the secrets on the line before and after a place.

        Args:
            text: the whole text.
            at: where the name ends.
            since: what is before was read, behind a name before this one.
            end: how far to read.
        """
        found: list[re.Match[str]] = []
        if self.unless and self._unless.search(line_before(text, at, 160)):
            return
        if self.next:
            found += filter(None, [self._after.match(text, at)])
        elif self.after:
            found += self._after.finditer(text, max(since, at - 1), end)
        if self.before:
            start = at - len(line_before(text, at, 160))
            found += self._before.finditer(text, start, at)
        for match in found:
            for group in range(1, match.re.groups + 1):
                value = (match[group] or "").rstrip(_BEHIND)
                if value and _CHECKS[self.check](value):
                    start = match.start(group)
                    yield SecretSpan(start, start + len(value), self.kind)


_BEHIND = ".,;:)]}\"'`*"
"""What is no part of a value at its end."""
_FORMS = {
    "command": r"(?:\b|\\[nrt])(?:{})(?:\.exe|\.py)?[\s\"'\\`,]",
    "call": r"(?:\b|\\[nrt])(?:{})\s?\(",
    "phrase": "{}",
}
"""The names of each form of line with their boundaries: in JSON, a line begins behind two signs."""
_STOPS = {
    "command": re.compile(r"(?<!\\)\r?\n|[ \t](?:\|\|?|&&)[ \t]|;[ \t]"),
    "call": re.compile(r"\n\s{0,8}\n|;\n|\)\n"),
    "phrase": re.compile(r"\n"),
}
"""How far a line goes."""
_LONGEST_STOP = 10


def _any_word(name: str) -> str:
    return "|".join(sorted(WORDS[name], reverse=True)).replace("_", " ")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / name).read_text("utf-8"))


_TABLES = _read("contexts.toml")
_PIECES = {f"{{{name}}}": _any_word(name) for name in WORDS if name.startswith("spoken")}
_PIECES = {**_TABLES["pieces"], **_PIECES}
"""What the forms of ``contexts.toml`` are made of."""


def _filled(form: str) -> str:
    for name, piece in _PIECES.items():
        form = form.replace(name, piece)
    return form


def _any_of(forms: list[str], end: str) -> re.Pattern[str]:
    return re.compile("|".join(_filled(form) + end for form in forms), re.IGNORECASE)


def _is_encoded(value: str) -> bool:
    """Return whether a value is base64 of some words, which the view of it shows."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return False
    return b" " in plain and plain.isascii() and plain.decode().isprintable()


_SYMBOL = re.compile(r"\d[!#$%*+?^&]|[!#$%*+?^&]\d|\d[!#$%*+?^&]\Z")
_CHECKS: dict[str, Callable[[str], bool]] = {
    "plausible": _is_plausible,
    "mixed": _is_mixed,
    "signed": lambda secret: has_crc(secret) or _is_plausible(secret),
    "varied": lambda secret: not is_sample(secret) and len(set(secret)) > 7,
    "dense": lambda secret: _is_mixed(secret) and entropy(secret) >= 3.8,
    "padded": lambda secret: _is_mixed(secret.lstrip("A")) and entropy(secret) >= 3.8,
    "sas": lambda secret: "sig=" in secret,
    "facebook": lambda secret: _is_mixed(secret) and "AAA" not in secret[4:],
    "jwt": _is_jwt,
    "pem": _is_pem,
    "password": lambda value: is_password(value, 6),
    "strong password": lambda value: is_password(value, strict=True) and not _is_encoded(value),
    "chosen": lambda value: is_password(value, strict=True) or is_random(value),
    "quoted": lambda value: (
        is_given(value) or (len(value.split()) > 2 and not is_placeholder(value))
    ),
    "random": is_random,
    "basic": is_basic,
    "header": lambda value: is_basic(value) or is_random(value),
    "given": is_given,
    "long": lambda value: is_given(value, 8),
    "literal": lambda value: (
        is_password(value, strict=True)
        or (_SYMBOL.search(value) is not None and is_given(value, 8))
    ),
    "said": lambda value: any(map(str.isdigit, value)) and is_given(value, 8),
    "phrase": lambda value: len(set(value.split())) > 9 and len(value.split()) % 3 == 0,
}
FORMATS = convert(_read("formats.toml")["formats"], list[Format])
CONTEXTS: list[Context | Line] = [
    *convert(_TABLES["contexts"], list[Context]),
    *convert(_TABLES["lines"], list[Line]),
]
