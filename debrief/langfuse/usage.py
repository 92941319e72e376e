"""Tokens as observations tell them, under the names that integrations use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.values import whole_number

_NAMES = {
    "input": ("input", "input_tokens", "prompt_tokens"),
    "output": ("output", "output_tokens", "completion_tokens"),
    "cache_write": ("cache_creation_input_tokens", "input_cache_creation"),
    "cache_read": ("cache_read_input_tokens", "input_cached_tokens", "input_cache_read"),
}


def usage_of(row: Mapping[str, Any]) -> Usage:
    """Return the tokens of one observation; none where it tells none."""
    details = row.get("usageDetails") or row.get("usage") or {}
    if not isinstance(details, dict):
        return Usage()
    found = {
        name: next((count for key in keys if (count := whole_number(details.get(key)))), 0)
        for name, keys in _NAMES.items()
    }
    return Usage(**found)
