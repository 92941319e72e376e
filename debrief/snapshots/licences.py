"""Under which licence a repository stands, as its own files say.

Only what is stated is told: an SPDX identifier in ``pyproject.toml``, ``Cargo.toml`` or
``package.json``, or a licence file that begins as a well-known one does. It is a hint for a
person who publishes, not legal advice.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from debrief.errors import InputError
from debrief.git import git

_FILES = re.compile(r"(licen[cs]e|copying|unlicense)([.-].*)?\Z", re.IGNORECASE)
_MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml")
_LONGEST = 4_000
_SPDX = re.compile(r"SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]+)")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+() -]{0,80}\Z")
_BEGINNINGS: tuple[tuple[str, str], ...] = (
    ("gnu affero general public license version 3", "AGPL-3.0"),
    ("gnu lesser general public license version 3", "LGPL-3.0"),
    ("gnu lesser general public license version 2.1", "LGPL-2.1"),
    ("gnu general public license version 3", "GPL-3.0"),
    ("gnu general public license version 2", "GPL-2.0"),
    ("apache license version 2.0", "Apache-2.0"),
    ("mozilla public license version 2.0", "MPL-2.0"),
    ("this is free and unencumbered software", "Unlicense"),
    ("boost software license", "BSL-1.0"),
    ("cc0 1.0 universal", "CC0-1.0"),
    ("permission to use, copy, modify, and/or distribute this software for any purpose", "ISC"),
    ("permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"),
)
_BSD = "redistribution and use in source and binary forms"
_BSD_THIRD = "endorse or promote products"


@lru_cache(maxsize=256)
def licence_at(repository: Path, commit: str) -> str:
    """Return the licence of a repository at a commit; empty when it says none that is known.

    Args:
        repository: a folder inside the repository's work tree.
        commit: as git names it.

    Returns:
        An SPDX identifier, or what a manifest says in its place.
    """
    try:
        listing = git(repository, "ls-tree", "-z", "--full-tree", "--name-only", commit)
        names = [name.decode("utf-8", "replace") for name in listing.split(b"\0") if name]
        for name in sorted(filter(_FILES.match, names)):
            found = licence_of_text(_text(repository, commit, name))
            if found:
                return found
        for name in _MANIFESTS:
            if name in names:
                found = _stated_in(name, _text(repository, commit, name))
                if found:
                    return found
    except InputError:
        return ""
    return ""


def licence_of_text(text: str) -> str:
    """Return the licence that a licence file holds; empty when it is not a known one."""
    tag = _SPDX.search(text)
    if tag:
        return tag[1].strip()
    plain = re.sub(r"[^a-z0-9.,/-]+", " ", text.lower()).replace(
        "license, version", "license version"
    )
    for words, name in _BEGINNINGS:
        if words in plain:
            return name
    if _BSD in plain:
        return "BSD-3-Clause" if _BSD_THIRD in plain else "BSD-2-Clause"
    return ""


def _text(repository: Path, commit: str, name: str) -> str:
    data = git(repository, "cat-file", "blob", f"{commit}:{name}")
    return data[: 1 << 20].decode("utf-8", "replace") if name in _MANIFESTS else _head(data)


def _head(data: bytes) -> str:
    return data[:_LONGEST].decode("utf-8", "replace")


def _stated_in(name: str, text: str) -> str:
    try:
        manifest: dict[str, Any] = (
            orjson.loads(text) if name.endswith(".json") else tomllib.loads(text)
        )
        if name == "package.json":
            stated = manifest.get("license")
        else:
            stated = manifest.get("project" if name == "pyproject.toml" else "package", {}).get(
                "license"
            )
    except (ValueError, AttributeError):
        return ""
    if isinstance(stated, dict):
        stated = stated.get("type") or stated.get("text")
    return stated if isinstance(stated, str) and _IDENTIFIER.match(stated) else ""
