"""Fingerprints: which prompts a session ran with, and which judges it was judged by.

Both are the first 8 hex digits of a SHA-256 over a sequence of byte strings, each written as its
length in decimal ASCII, a colon, and its UTF-8 bytes. Lengths come first so that no two different
inputs give one byte stream: plain concatenation would make ``("ab", "c")`` and ``("a", "bc")``
the same. The whole digest is stored beside the fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Protocol

FINGERPRINT_LENGTH = 8


class FingerprintedPrompts(Protocol):
    """The texts that a session ran with."""

    @property
    def main(self) -> str: ...  # noqa: D102
    @property
    def subagents(self) -> Mapping[str, str]: ...  # noqa: D102


class FingerprintedJudge(Protocol):
    """What of a judge makes its scores comparable with another's."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def weight(self) -> float: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def body(self) -> str: ...  # noqa: D102


def prompt_digest(snapshot: FingerprintedPrompts) -> str:
    """Return the SHA-256, in hex, of a prompt snapshot, whatever the order of its subagents."""
    parts = ["prompt-v1", "main", snapshot.main]
    for name, text in sorted(snapshot.subagents.items()):
        parts += [name, text]
    return hashlib.sha256(framed(parts)).hexdigest()


def eval_digest(judges: Iterable[FingerprintedJudge]) -> str:
    """Return the SHA-256, in hex, of a set of judges, whatever their order.

    The model is part of it: two models' scores are not comparable. So are the criteria of a judge
    that has any, after its body.
    """
    parts = ["eval-v1"]
    for judge in sorted(judges, key=lambda judge: judge.name):
        parts += [judge.name, repr(float(judge.weight)), judge.model, judge.body]
        if criteria := getattr(judge, "criteria", ()):
            parts += ["criteria", str(len(criteria))]
            parts += [text for each in criteria for text in (each.question, repr(each.weight))]
    return hashlib.sha256(framed(parts)).hexdigest()


def compute_prompt_fingerprint(snapshot: FingerprintedPrompts) -> str:
    """Return the prompt fingerprint, 8 hex digits."""
    return prompt_digest(snapshot)[:FINGERPRINT_LENGTH]


def compute_eval_fingerprint(judges: Iterable[FingerprintedJudge]) -> str:
    """Return the eval fingerprint, 8 hex digits."""
    return eval_digest(judges)[:FINGERPRINT_LENGTH]


def framed(parts: Iterable[str]) -> bytes:
    """Return ``parts`` as one byte stream, each with its length before it."""
    encoded = (part.encode("utf-8", "surrogatepass") for part in parts)
    return b"".join(b"%d:%b" % (len(data), data) for data in encoded)


def comparison_key(prompt_fingerprint: str, eval_fingerprint: str) -> str:
    """Return the fingerprint dimension of a training set: its samples are comparable.

    >>> comparison_key("b7d4e2f9", "unknown")
    'b7d4e2f9-unknown'
    """
    return f"{prompt_fingerprint}-{eval_fingerprint}"
