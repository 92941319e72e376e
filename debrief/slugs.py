"""Partition keys: one pure function from any name to a slug.

Dagster accepts keys that its UI cannot launch (``a|b``, commas, dots in a row) and a slash nests
a folder in the lake, so every task name passes through here before it becomes a key.
"""

from __future__ import annotations

import hashlib
import re

SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}\Z")
_DIGEST_LENGTH = 16
_STAMPED = re.compile(rf".*\.[0-9a-f]{{{_DIGEST_LENGTH}}}\Z", re.DOTALL)


def slugify(name: str) -> str:
    """Return the partition key of ``name``: itself when it is a slug already, else stamped.

    A name that has to be changed gets the first 16 hex digits of its SHA-256 behind a dot, and
    so does a slug that merely looks stamped; that is why two different names never share a key.

    >>> slugify("checkout-retries")
    'checkout-retries'
    >>> slugify("fix/bug")
    'fix-bug.ab5c93c9d21eb4b8'
    """
    plain = SLUG.match(name) and not _STAMPED.match(name) and ".." not in name
    if plain and not name.endswith("."):
        return name
    stamp = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[: 62 - _DIGEST_LENGTH].rstrip("-")
    return f"{stem or 'x'}.{stamp}"
