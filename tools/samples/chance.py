"""Chance that falls the same way on every machine and with every version of Python."""

from __future__ import annotations

import hashlib
import uuid

_SPACE = uuid.UUID("6f1d3c52-7f0e-5f0a-9a57-2d7c1b9e4a10")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def fraction(*key: object) -> float:
    """Return a number from 0 up to 1, drawn by ``key``."""
    return int.from_bytes(_digest(key)[:6], "big") / (1 << 48)


def number(low: int, high: int, *key: object) -> int:
    """Return a whole number from ``low`` to ``high``, both included, drawn by ``key``."""
    return low + int(fraction(*key) * (high - low + 1))


def uuid_of(*key: object) -> str:
    """Return the UUID of ``key``."""
    return str(uuid.uuid5(_SPACE, "\x1f".join(map(str, key))))


def letters(length: int, *key: object) -> str:
    """Return an identifier of letters and digits, drawn by ``key``."""
    left = int.from_bytes(hashlib.sha512(_digest(key)).digest(), "big")
    found = []
    for _ in range(length):
        left, place = divmod(left, len(_BASE58))
        found.append(_BASE58[place])
    return "".join(found)


def hexadecimal(length: int, *key: object) -> str:
    """Return hex digits, drawn by ``key``."""
    return _digest(key).hex()[:length]


def _digest(key: tuple[object, ...]) -> bytes:
    return hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
