"""Digests of values: what decides whether a stage has anything to do."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="deterministic")


def digest_of(*values: Any) -> str:
    """Return the SHA-256, in hex, of ``values`` in their canonical JSON form.

    Takes whatever msgspec encodes: structs, builtins, dates. Keys are sorted, so the digest
    depends on the values alone.
    """
    return hashlib.sha256(_ENCODER.encode(values)).hexdigest()
