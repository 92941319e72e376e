"""The known formats: secrets that announce themselves by a prefix or a shape.

A format is a row of ``formats.toml``; here are its type and the checks that rows name.
"""

from __future__ import annotations

import base64
import re
import tomllib
import zlib
from collections.abc import Callable
from importlib.resources import files

from msgspec import Struct, convert

from debrief.redaction.plausibility import entropy, is_sample

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
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
        bounded = _OPEN.sub(rf"{{\1,{_LONGEST}}}", self.start + self.rest)
        self.pattern = re.compile((_EDGE if self.edge else "") + bounded)
        """The whole secret, matched at its start."""
        self.before = re.compile(self.lead + r"\Z") if self.lead else None

    def accepts(self, secret: str) -> bool:
        """Return whether a match is a secret, and no sample of a documentation."""
        return _CHECKS[self.check](secret)


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


_CHECKS: dict[str, Callable[[str], bool]] = {
    "plausible": _is_plausible,
    "mixed": _is_mixed,
    "signed": lambda secret: has_crc(secret) or _is_plausible(secret),
    "varied": lambda secret: not is_sample(secret) and len(set(secret)) > 7,
    "dense": lambda secret: _is_mixed(secret) and entropy(secret) >= 3.8,
    "sas": lambda secret: "sig=" in secret,
    "facebook": lambda secret: _is_mixed(secret) and "AAA" not in secret[4:],
    "jwt": _is_jwt,
    "pem": _is_pem,
}
FORMATS: list[Format] = convert(
    tomllib.loads((files(__package__) / "formats.toml").read_text("utf-8"))["formats"], list[Format]
)
