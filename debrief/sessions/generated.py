"""Recognize files that a program generates: lock files, bundles, vendored code."""

from __future__ import annotations

import re

_GENERATED = re.compile(
    r"(^|/)(node_modules|vendor|dist|build|\.next|target|__snapshots__)/"
    r"|(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock|uv\.lock|cargo\.lock"
    r"|go\.sum|gemfile\.lock|composer\.lock)$"
    r"|\.(min\.(js|css)|map|snap|pb\.go|g\.dart)$|_pb2\.pyi?$",
    re.IGNORECASE,
)


def is_generated(path: str) -> bool:
    """Return whether a file's name says that a program wrote it."""
    return _GENERATED.search(path) is not None
