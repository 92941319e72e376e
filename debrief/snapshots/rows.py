"""The rows that the snapshot stage files for each session: its prompts and its circumstances.

What git holds is what was committed before the session began: close to what was in force, and not
the same, since uncommitted edits and the user's own settings are not in it. Prompts from there are
therefore always marked ``reconstructed``. A licence is what the repository's own files state; it is
a hint for a person who publishes, not legal advice.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import orjson
from msgspec import UNSET

from debrief.errors import InputError
from debrief.git import find_commit, git
from debrief.sessions.model import SessionHead
from debrief.snapshots.capture import (
    AGENTS_FOLDER,
    CLAUDE_CODE,
    DROID,
    prompt_files,
    subagent_names,
)
from debrief.snapshots.captures import Captures, repository_of
from debrief.snapshots.fingerprint import FINGERPRINT_LENGTH, prompt_digest
from debrief.snapshots.model import (
    UNKNOWN,
    CommitOrigin,
    PromptSnapshot,
    PromptSnapshotRow,
    SessionMetadata,
    SessionMetadataRow,
    SnapshotOrigin,
    SubagentPrompt,
)

ROWS = "5"
"""Raised when the same session gives other rows."""

_NO_COMMIT: tuple[CommitOrigin, str] = ("", "")
_COMMIT = re.compile(r"[0-9a-f]{7,64}\Z")


def snapshot_row(session: SessionHead, captures: Captures) -> PromptSnapshotRow:
    """Return the prompts a session ran with: captured, else as its transcript holds them, else
    reconstructed, else unknown.

    They are the exact texts, secrets included, to be redacted before they are stored.
    """
    origin, snapshot, note = _prompts_of(session, captures)
    if snapshot is None:
        return PromptSnapshotRow(session_id=session.id, origin=origin, note=note)
    digest = prompt_digest(snapshot)
    return PromptSnapshotRow(
        session_id=session.id,
        origin=origin,
        main=snapshot.main,
        subagents=tuple(
            SubagentPrompt(name, text) for name, text in sorted(snapshot.subagents.items())
        ),
        prompt_fingerprint=digest[:FINGERPRINT_LENGTH],
        prompt_digest=digest,
        note=note,
    )


def _prompts_of(
    session: SessionHead, captures: Captures
) -> tuple[SnapshotOrigin, PromptSnapshot | None, str]:
    """Return where a session's prompts are from, the prompts, and a note."""
    capture = captures.of(session)
    if capture is not None and capture.snapshot is not None:
        note = capture.folder
        stated = capture.metadata.prompt_fingerprint if capture.metadata else None
        if stated and stated != prompt_digest(capture.snapshot)[:FINGERPRINT_LENGTH]:
            note += f" (its metadata.json says {stated}, its prompts say otherwise)"
        return "recorded", capture.snapshot, note
    if session.recorded and session.recorded.system:
        return "recorded", PromptSnapshot(main=session.recorded.system), "the session's record"
    folder = _repository_of(session)
    found = folder and reconstruct(
        folder, session.tool, session.branch, session.started, session.base_commit or ""
    )
    if session.instructions is not UNSET:
        main = _given_main(session)
        subagents = found[0].subagents if found else {}
        note = "the transcript" if main else "the transcript, which shows that there was none"
        return "recorded", PromptSnapshot(main=main, subagents=subagents), note
    names = ", ".join(prompt_files(session.tool).names)
    if found:
        held = f", which holds none of {names}" * (not found[0].main)
        return "reconstructed", found[0], f"commit {found[1]}{held}"
    if not names:
        reason = f"which prompt files {session.tool} reads is not known"
    elif folder is None:
        reason = "none in its transcript, and its repository is not at hand"
    else:
        reason = "none in its transcript, and its folder has no history of that time"
    return "unknown", None, f"no capture; {reason}"


def _given_main(session: SessionHead) -> str:
    """Return the repository's own prompt files as the transcript holds them; empty for none.

    Programs trim a file's end before they send it, so one line end is put back: the fingerprint is
    that of the file then.
    """
    given = (each for each in session.instructions or () if _is_own(each.path, session.cwd))
    main = "\n\n".join(filter(None, (each.text.strip("\n") for each in given)))
    return f"{main}\n" if main else ""


def _is_own(path: str, cwd: str) -> bool:
    """Return whether a prompt file is of the repository, not of the person's home."""
    if not (path.startswith("/") and cwd.startswith("/")):
        return True
    folder, here = PurePosixPath(path).parent, PurePosixPath(cwd)
    folder = folder.parent if folder.name in _PROMPT_FOLDERS else folder
    return folder.is_relative_to(here) or here.is_relative_to(folder)


def metadata_row(
    session: SessionHead, snapshot: PromptSnapshotRow, captures: Captures
) -> SessionMetadataRow:
    """Return a session's circumstances.

    The model is the one that answered most, in the provider's own words; a capture, which has its
    short name (``sonnet``), counts only where the transcript names none.
    """
    capture = captures.of(session)
    stated = capture.metadata if capture is not None else None
    folder = _repository_of(session)
    recorded = session.recorded
    known: dict[CommitOrigin, str] = {
        "recorder": recorded.base_commit if recorded else "",
        "capture": _stated_commit(stated),
        "transcript": session.base_commit or "",
    }
    if folder is not None and not any(known.values()):
        known["history"] = commit_at(folder, session.branch, session.started)
    origin, commit = next((pair for pair in known.items() if pair[1]), _NO_COMMIT)
    return SessionMetadataRow(
        session_id=session.id,
        tool=session.tool,
        model=session.models[0] if session.models else (stated.model if stated else None),
        recorded_at=(capture and capture.recorded_at) or session.started,
        task=session.task,
        repository=session.repository,
        prompt_fingerprint=snapshot.prompt_fingerprint,
        prompt_digest=snapshot.prompt_digest,
        eval_fingerprint=(stated.eval_fingerprint if stated else None) or UNKNOWN,
        base_commit=commit,
        base_commit_origin=origin,
        licence=licence_at(folder, commit) if folder is not None and commit else "",
        status=session.status or "",
        withheld=recorded.withheld if recorded else "",
    )


def _stated_commit(metadata: SessionMetadata | None) -> str:
    """Return the commit that a capture names, as ``eval --export`` and a recorder do."""
    extra = (metadata.model_extra or {}) if metadata is not None else {}
    named = extra.get("base_commit") or extra.get("git_sha")
    return named if isinstance(named, str) and _COMMIT.match(named) else ""


def _repository_of(session: SessionHead) -> Path | None:
    """Return the session's folder, or its repository when the worktree has been removed."""
    folder = Path(session.cwd)
    if not folder.is_absolute():
        return None
    return folder if folder.is_dir() else repository_of(session.cwd)


_PROMPT_FOLDERS = (".claude", ".github")
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
    ("redistribution and use in source and binary forms", "BSD-2-Clause"),
)
_BSD_THIRD = "endorse or promote products"


def reconstruct(
    repository: Path, tool: str, branch: str, moment: datetime, base_commit: str = ""
) -> tuple[PromptSnapshot, str] | None:
    """Return the prompts at the session's commit, and the commit; None without a commit.

    A commit without prompt files has the empty prompt: nothing was put before the first one.

    Args:
        repository: a folder inside the repository's work tree.
        tool: which tool's files to look for.
        branch: the session's branch; HEAD is taken when it is gone.
        moment: when the session began.
        base_commit: where the session says it began; without one that the repository has, the
            last commit before ``moment`` counts.
    """
    commit = base_commit if base_commit and _find_commit(repository, base_commit) else ""
    commit = commit or commit_at(repository, branch, moment)
    snapshot = _snapshot_at(repository, tool, commit) if commit else None
    return (snapshot, commit) if snapshot is not None else None


@lru_cache(maxsize=1024)
def commit_at(repository: Path, branch: str, moment: datetime) -> str:
    """Return the last commit of a branch before a moment; empty when git has none.

    Args:
        repository: a folder inside the repository's work tree.
        branch: HEAD is taken when it is gone.
        moment: with a time zone.
    """
    before = f"--before={int(moment.timestamp())}"
    for revision in dict.fromkeys((branch, "HEAD")):
        if revision and not revision.startswith("-"):
            with suppress(InputError):
                commit = git(repository, "rev-list", "-1", before, revision, "--").strip()
                if commit:
                    return commit.decode("ascii")
    return ""


_find_commit = lru_cache(maxsize=1024)(find_commit)


@lru_cache(maxsize=256)
def _snapshot_at(repository: Path, tool: str, commit: str) -> PromptSnapshot | None:
    agents = f"{_SUBAGENT_FOLDERS[tool]}/" if tool in _SUBAGENT_FOLDERS else ""
    prompts = prompt_files(tool)
    paths = [*prompts.names, *filter(None, [agents])]
    if not paths:
        return None
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
    main = prompts.text(
        {name: _blob(repository, blobs[name]) for name in prompts.names if name in blobs}
    )
    files = {
        path.removeprefix(agents): blob
        for path, blob in blobs.items()
        if agents and path.startswith(agents) and path.endswith(".md")
    }
    names = subagent_names(files)
    return PromptSnapshot(
        main=main or "",
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
    with suppress(InputError):
        return next(filter(None, _licences_at(repository, commit)), "")
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
    found = next((name for words, name in _BEGINNINGS if words in plain), "")
    return "BSD-3-Clause" if found == "BSD-2-Clause" and _BSD_THIRD in plain else found


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
