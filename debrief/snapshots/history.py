"""What a repository's history says of a session: its commit, the prompts in it, its licence.

What git holds is what was committed before the session began: close to what was in force, and not
the same, since uncommitted edits and the user's own settings are not in it. Prompts from here are
therefore always marked ``reconstructed``. A licence is what the repository's own files state; it is
a hint for a person who publishes, not legal advice.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from debrief.errors import InputError
from debrief.git import find_commit, git
from debrief.snapshots.capture import (
    AGENTS_FOLDER,
    CLAUDE_CODE,
    DROID,
    MAIN_FILES,
    OTHER_MAIN_FILES,
    subagent_names,
)
from debrief.snapshots.model import PromptSnapshot

_SUBAGENT_FOLDERS = {CLAUDE_CODE: AGENTS_FOLDER, DROID: ".factory/droids"}
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


def reconstruct(
    repository: Path, tool: str, branch: str, moment: datetime, base_commit: str = ""
) -> tuple[PromptSnapshot, str] | None:
    """Return the prompts at the session's commit, and the commit; None without any.

    Args:
        repository: a folder inside the repository's work tree.
        tool: which tool's files to look for.
        branch: the session's branch; HEAD is taken when it is gone.
        moment: when the session began.
        base_commit: where the session says it began; without one that the repository has, the
            last commit before ``moment`` counts.
    """
    if not repository.is_dir():
        return None
    commit = base_commit if base_commit and _find_commit(repository, base_commit) else ""
    commit = commit or _commit_before(repository, branch, int(moment.timestamp()))
    snapshot = _snapshot_at(repository, tool, commit) if commit else None
    return (snapshot, commit) if snapshot is not None else None


def commit_at(repository: Path, branch: str, moment: datetime) -> str:
    """Return the last commit of a branch before a moment; empty when git has none.

    Args:
        repository: a folder inside the repository's work tree.
        branch: HEAD is taken when it is gone.
        moment: with a time zone.
    """
    if not repository.is_dir():
        return ""
    return _commit_before(repository, branch, int(moment.timestamp()))


@lru_cache(maxsize=1024)
def _commit_before(repository: Path, branch: str, moment: int) -> str:
    for revision in dict.fromkeys((branch, "HEAD")):
        if not revision or revision.startswith("-"):
            continue
        try:
            commit = git(repository, "rev-list", "-1", f"--before={moment}", revision, "--")
        except InputError:
            continue
        if commit.strip():
            return commit.decode("ascii").strip()
    return ""


_find_commit = lru_cache(maxsize=1024)(find_commit)


@lru_cache(maxsize=256)
def _snapshot_at(repository: Path, tool: str, commit: str) -> PromptSnapshot | None:
    main_files = MAIN_FILES.get(tool, OTHER_MAIN_FILES)
    agents = f"{_SUBAGENT_FOLDERS[tool]}/" if tool in _SUBAGENT_FOLDERS else ""
    paths = [*main_files, *filter(None, [agents])]
    try:
        listing = git(repository, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths)
    except InputError:
        return None
    blobs: dict[str, str] = {}
    for entry in listing.split(b"\0")[:-1]:
        about, _, path = entry.partition(b"\t")
        mode, kind, blob = about.decode("ascii").split()
        if kind == "blob" and mode != "120000":
            blobs[path.decode("utf-8", "replace")] = blob
    main = next((blobs[name] for name in main_files if name in blobs), None)
    files = {
        path.removeprefix(agents): blob
        for path, blob in blobs.items()
        if agents and path.startswith(agents) and path.endswith(".md")
    }
    if main is None and not files:
        return None
    names = subagent_names(files)
    return PromptSnapshot(
        main=_blob(repository, main) if main is not None else "",
        subagents={names[path]: _blob(repository, blob) for path, blob in files.items()},
    )


@lru_cache(maxsize=256)
def licence_at(repository: Path, commit: str) -> str:
    """Return the licence of a repository at a commit; empty when its files state none.

    That is an SPDX identifier in a manifest, or of a licence file that begins as a well-known one.

    Args:
        repository: a folder inside the repository's work tree.
        commit: as git names it.
    """
    try:
        return next(filter(None, _licences_at(repository, commit)), "")
    except InputError:
        return ""


def _licences_at(repository: Path, commit: str) -> Iterator[str]:
    listing = git(repository, "ls-tree", "-z", "--full-tree", "--name-only", commit)
    names = [name.decode("utf-8", "replace") for name in listing.split(b"\0") if name]
    for name in sorted(filter(_FILES.match, names)):
        yield licence_of_text(_blob(repository, f"{commit}:{name}")[:_LONGEST])
    for name in _MANIFESTS:
        if name in names:
            yield _stated_in(name, _blob(repository, f"{commit}:{name}"))


def licence_of_text(text: str) -> str:
    """Return the licence that a licence file holds; empty when it is not a well-known one."""
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


def _stated_in(name: str, text: str) -> str:
    try:
        manifest: Any = orjson.loads(text) if name.endswith(".json") else tomllib.loads(text)
        if name != "package.json":
            manifest = manifest.get("project" if name == "pyproject.toml" else "package", {})
        stated = manifest.get("license")
    except (ValueError, AttributeError):
        return ""
    if isinstance(stated, dict):
        stated = stated.get("type") or stated.get("text")
    return stated if isinstance(stated, str) and _IDENTIFIER.match(stated) else ""


def _blob(repository: Path, name: str) -> str:
    return git(repository, "cat-file", "blob", name).decode("utf-8", "replace")
