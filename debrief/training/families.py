"""The family that a model belongs to: its name without versions, dates and sizes."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v?\d[\d.]*[a-z]?")
"""A version, a date or a part of one: ``4``, ``5.1``, ``v2``, ``20250929``, ``4o``."""
_SIZE = re.compile(r"\d[\dx.]*[bm]|a\d+b")
"""A number of parameters: ``70b``, ``8x22b``, ``a35b``."""
_GENERATION = re.compile(r"[a-z]\d[\d.]*")
"""A letter that numbers a generation behind a name: ``k2``, ``r1``."""
_GLUED = re.compile(r"(?<=[a-z]{2})\d[\d.]*\Z")
_CLOUD = re.compile(r"\A[a-z.-]*\.(?=[a-z])")
"""What a cloud puts before a name: ``us.anthropic.``."""
_NO_PART = frozenset(["claude", "latest", "preview"])
"""Claude's programs call its models opus, sonnet and haiku as well, without it."""


def family_of(model: str) -> str:
    """Return a model's family: models of one family differ in version, date or size alone.

    >>> family_of("claude-opus-4-7"), family_of("us.anthropic.claude-opus-4-8-v1:0")
    ('opus', 'opus')
    >>> family_of("openai/gpt-5.1-codex"), family_of("qwen3-coder-480b-a35b")
    ('gpt-codex', 'qwen-coder')
    """
    name = _CLOUD.sub("", model.lower().rpartition("/")[2]).split("[")[0]
    parts = [part for part in re.split(r"[-_:@\s]+", name) if part]
    kept = [
        _GLUED.sub("", part)
        for place, part in enumerate(parts)
        if not (
            part in _NO_PART
            or _VERSION.fullmatch(part)
            or _SIZE.fullmatch(part)
            or (place and _GENERATION.fullmatch(part))
        )
    ]
    return "-".join(kept) or name
